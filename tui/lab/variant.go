package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/tui/widget"
)

// variant is a source of a kernel that the user tried, and the result of running it. Until the source has
// run, tried and err are both nil.
type variant struct {
	number   int    // counts the variants of the session from 1; 0 until the source has run
	kernel   string // name of the original kernel
	original string // source of the original kernel
	text     string
	tried    *session.Tried
	err      error
	warned   bool     // the user has already seen a warning that the result is wrong
	before   *variant // newest earlier variant of the kernel that ran, or nil
}

// ran returns the newest variant whose source ran: v itself or an earlier one. It returns nil if no source
// ran.
func (v *variant) ran() *variant {
	if v == nil || v.tried != nil {
		return v
	}
	return v.before
}

// name returns the name of the edited kernel in the trace, or the name of its file if the source was refused.
func (v *variant) name() string {
	if v.tried != nil {
		return v.tried.Name
	}
	return v.kernel + session.KernelSuffix
}

// variantOf returns the variant of a kernel with the given source, or nil if this source was never tried.
func (l *Lab) variantOf(kernel, text string) *variant {
	i := slices.IndexFunc(l.list, func(v *variant) bool { return v.kernel == kernel && v.text == text })
	if i < 0 {
		return nil
	}
	return l.list[i]
}

// keep adds a variant to the list if its source ran or was refused. Other errors, such as a crash, say
// nothing about the source.
func (l *Lab) keep(v *variant) {
	l.version++
	if v.number == 0 && (v.err == nil || errors.Is(v.err, session.ErrUsage)) {
		l.list = append(l.list, v)
		v.number = len(l.list)
	}
}

// change is the difference between the source of a variant and that of the original kernel.
type change struct {
	added, removed int
	first          string   // the first line that is added or, if none is, the first that is removed
	lines          []string // a unified diff
	marks          [][]widget.Stretch
}

// diffContext is the number of equal lines around each difference.
const diffContext = 3

// changeOf compares the sources `from` and `to`.
func changeOf(from, to string) change {
	var c change
	u, err := udiff.ToUnifiedDiff("", "", from, udiff.Lines(from, to), diffContext)
	if err != nil { // the edits do not fit the text, which would be a bug of the library
		c.lines, c.marks = []string{"no diff: " + err.Error()}, make([][]widget.Stretch, 1)
		return c
	}
	firstRemoved := ""
	add := func(l string, p widget.Paint) {
		l = printable.Clean(strings.ReplaceAll(strings.TrimRight(l, "\r\n"), "\t", "    "))
		c.lines = append(c.lines, l)
		var marks []widget.Stretch
		if p != widget.Plain {
			marks = []widget.Stretch{{To: len(l), Paint: p}}
		}
		c.marks = append(c.marks, marks)
	}
	for _, h := range u.Hunks {
		add(hunkHead(h), widget.Accent)
		for _, l := range h.Lines {
			text := strings.TrimSpace(l.Content)
			switch l.Kind {
			case udiff.Insert:
				if c.added++; c.first == "" {
					c.first = text
				}
				add("+ "+l.Content, widget.Good)
			case udiff.Delete:
				if c.removed++; firstRemoved == "" {
					firstRemoved = text
				}
				add("- "+l.Content, widget.Bad)
			default:
				add("  "+l.Content, widget.Plain)
			}
		}
	}
	if c.first == "" && firstRemoved != "" {
		c.first = "without: " + firstRemoved
	}
	c.first = printable.Clean(c.first)
	return c
}

// hunkHead returns the heading of a group of differences: the number of its first line in each of the two
// sources.
func hunkHead(h *udiff.Hunk) string {
	return fmt.Sprintf("@@ line %d, now %d @@", h.FromLine, h.ToLine)
}
