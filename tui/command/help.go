package command

import (
	"slices"
	"strings"

	"gpuscope/tui/widget"
)

// Section is a part of the help: a heading, and rows of a sign or key and its meaning.
type Section struct {
	Name string
	Rows [][2]string
}

// Help returns the sections of the help for a view: its keys, the questions, the mouse, the signs and the
// terms. offers reports whether the view offers a command. why returns the reason that a command is not
// available now, or "". `screen` is the text of the screen; the signs that occur in it come first.
func Help(
	view string, offers func(name string) bool, why func(*Row) string, mouse [][2]string, screen string,
) []Section {
	asked := Section{Name: Keyed("How do I ...? ({how do I} chooses a question and presses its keys)")}
	for i := range Questions {
		q := &Questions[i]
		asked.Rows = append(asked.Rows, [2]string{
			"", strings.ReplaceAll(q.Ask, "`", "") + " " + strings.ReplaceAll(Keyed(q.Do), "*", ""),
		})
	}
	list := []Section{}
	keys := func(name string, rows []*Row) {
		s := Section{Name: name}
		for _, r := range rows {
			text := Keyed(r.Doc)
			if reason := why(r); reason != "" {
				text += " (not now: " + reason + ")"
			}
			s.Rows = append(s.Rows, [2]string{r.KeyNames(), text})
		}
		list = append(list, s)
	}
	keys("In "+view, slices.DeleteFunc(Under(InViews, func(of string) bool { return of != "" }),
		func(r *Row) bool { return !offers(r.Name) }))
	list = append(list, Section{"In the three lines at the top", keyedRows(Top)}, asked)
	for _, p := range []Place{InViews, Moving, Overlays, Anywhere} {
		keys(p.String(), Under(p, General))
	}
	shown := func(sign [2]string) bool {
		return slices.ContainsFunc(strings.Fields(sign[0]), func(s string) bool {
			return strings.Contains(screen, s)
		})
	}
	here := slices.DeleteFunc(keyedRows(Signs), func(s [2]string) bool { return !shown(s) })
	return append(list, Section{"Mouse", mouse}, Section{"Signs on this screen", here},
		Section{"Other signs", slices.DeleteFunc(keyedRows(Signs), shown)},
		Section{"Terms", keyedRows(Terms)})
}

// keyedRows replaces each {command} in the meanings with the key of the command.
func keyedRows(rows [][2]string) [][2]string {
	out := make([][2]string, len(rows))
	for i, r := range rows {
		out[i] = [2]string{r[0], Keyed(r[1])}
	}
	return out
}

// Signed is the column, in a line of the help, at which the explanation of a key or sign begins.
const Signed = 16

// HelpLines returns the lines of the help. Sections without rows are left out.
func HelpLines(sections []Section) (lines []string) {
	for _, s := range sections {
		if len(s.Rows) == 0 {
			continue
		}
		lines = append(lines, "", s.Name)
		for _, r := range s.Rows {
			lines = append(lines, "  "+widget.Fit(r[0], Signed-4)+"  "+r[1])
		}
	}
	return lines[1:]
}

// WrapSigned wraps a line of the help to w cells. It indents continuation lines to the column Signed.
func WrapSigned(l string, w int) []string {
	if widget.Width(l) <= w || !strings.HasPrefix(l, " ") {
		return []string{widget.Cut(l, w)}
	}
	lines := widget.WrapText(widget.CutLeft(l, Signed), w-Signed)
	for i := range lines {
		head := widget.Blank(Signed)
		if i == 0 {
			head = widget.CutRight(l, Signed)
		}
		lines[i] = head + lines[i]
	}
	return lines
}
