package tui

import (
	"context"
	"fmt"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// markTemplated stands before a line of a kernel of which constants made something.
const markTemplated = "▎"

// sourceOf is a kernel's source, with numbers to its lines. What a constant filled in is painted, and so is
// what was taken in for one: the rest is the same in every kernel of the template.
func sourceOf(name string, k *trace.Kernel) text {
	none := "the trace does not carry the source of " + name
	return text{code: true, none: none, of: func(ctx context.Context) (page, error) {
		if k == nil || k.Source == "" {
			return page{}, ctx.Err()
		}
		p := page{title: "WGSL " + name, whole: k.Source}
		if len(k.Filled)+len(k.Taken) > 0 {
			p.title += fmt.Sprintf(" · %s of its constants: %s", markTemplated, k.Constants)
		}
		own := overlaid(stretches(k.Taken, stretch{paint: graphA}),
			stretches(k.Filled, stretch{paint: accent, quoted: true}))
		lines := strings.Split(strings.TrimRight(k.Source, "\n"), "\n")
		digits := len(fmt.Sprint(len(lines)))
		at := 0
		for i, l := range lines {
			if i%100 == 0 && ctx.Err() != nil {
				return page{}, ctx.Err()
			}
			line, marks := "", []stretch(nil)
			for _, s := range within(own, at, at+len(l)) {
				code := printableCode(l[s.from-at : s.to-at])
				s.from, s.to = len(line), len(line)+len(code)
				if line += code; s.paint != plain && code != "" {
					marks = append(marks, s)
				}
			}
			gutter := " "
			if marks != nil {
				gutter = markTemplated
			}
			head := fmt.Sprintf("%*d %s", digits, i+1, gutter)
			for j := range marks {
				marks[j].from += len(head)
				marks[j].to += len(head)
			}
			p.lines, p.marks = append(p.lines, head+line), append(p.marks, marks)
			at += len(l) + 1
		}
		return p, ctx.Err()
	}}
}

// printableCode is source without control characters.
func printableCode(s string) string {
	return printable.Clean(strings.ReplaceAll(s, "\t", "    "))
}
