package view

import (
	"context"
	"fmt"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/tui/widget"
)

// markTemplated is the sign before a source line that was generated from constants.
const markTemplated = "▎"

// SourceOf returns a kernel's source with line numbers. It highlights the parts that differ between kernels
// of one template: the text that constants filled in, the included files, and the branches that constants
// selected.
func SourceOf(name string, k *trace.Kernel) Text {
	none := "the trace does not contain the source of " + name
	return Text{Code: true, None: none, Of: func(ctx context.Context) (Page, error) {
		if k == nil || k.Source == "" {
			return Page{}, ctx.Err()
		}
		p := Page{Title: "WGSL " + name, Whole: k.Source}
		if len(k.Filled)+len(k.Taken) > 0 {
			p.Title += fmt.Sprintf(" · %s marks lines generated from the constants: %s", markTemplated,
				k.Constants)
		}
		own := widget.Overlaid(widget.Stretches(k.Taken, widget.Stretch{Paint: widget.GraphA}),
			widget.Stretches(k.Filled, widget.Stretch{Paint: widget.Accent, Quoted: true}))
		lines := strings.Split(strings.TrimRight(k.Source, "\n"), "\n")
		digits := len(fmt.Sprint(len(lines)))
		at := 0
		for i, l := range lines {
			if i%100 == 0 && ctx.Err() != nil {
				return Page{}, ctx.Err()
			}
			line, marks := "", []widget.Stretch(nil)
			for _, s := range widget.Within(own, at, at+len(l)) {
				code := printableCode(l[s.From-at : s.To-at])
				s.From, s.To = len(line), len(line)+len(code)
				if line += code; s.Paint != widget.Plain && code != "" {
					marks = append(marks, s)
				}
			}
			gutter := " "
			if marks != nil {
				gutter = markTemplated
			}
			head := fmt.Sprintf("%*d %s", digits, i+1, gutter)
			for j := range marks {
				marks[j].From += len(head)
				marks[j].To += len(head)
			}
			p.Lines, p.Marks = append(p.Lines, head+line), append(p.Marks, marks)
			at += len(l) + 1
		}
		return p, ctx.Err()
	}}
}

// printableCode replaces tabs and removes control characters.
func printableCode(s string) string {
	return printable.Clean(strings.ReplaceAll(s, "\t", "    "))
}
