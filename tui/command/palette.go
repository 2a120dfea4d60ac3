package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sahilm/fuzzy"

	"gpuscope/tui/widget"
)

// Palette is the dialog that finds a command by its name.
type Palette struct {
	why   func(*Row) string // returns why a command is not available now
	do    func(*Row)        // runs a command and closes the palette
	line  widget.InputLine
	all   []*Row
	found []*Row
	widget.Picker
}

// NewPalette returns a palette that offers the given commands.
func NewPalette(rows []*Row, why func(*Row) string, do func(*Row)) *Palette {
	return &Palette{why: why, do: do, all: rows, found: rows}
}

// Typed handles a key press in the palette. It returns true if the palette is no longer needed.
func (p *Palette) Typed(k widget.Key) (closed bool) {
	switch k.Name {
	case "enter":
		if p.Cursor < len(p.found) {
			p.do(p.found[p.Cursor])
			return false
		}
		return true
	case "esc":
		return true
	case "up", "ctrl+p":
		p.Cursor = max(0, p.Cursor-1)
	case "down", "ctrl+n":
		p.Cursor = min(p.Cursor+1, max(0, len(p.found)-1))
	default:
		if p.line.Handle(k) {
			p.search()
		}
	}
	return false
}

// search ranks the commands by how well the name and the description match the typed text. The best match is
// a name that equals the text. Next come a name that starts with the text, a word that starts with the text,
// and the letters of the text scattered over the name or description.
func (p *Palette) search() {
	p.Cursor = 0
	if p.line.Text() == "" {
		p.found = p.all
		return
	}
	texts := make([]string, len(p.all))
	for i, act := range p.all {
		texts[i] = act.Name + " " + act.Doc
	}
	p.found = nil
	for _, m := range fuzzy.Find(p.line.Text(), texts) {
		p.found = append(p.found, p.all[m.Index])
	}
	rank := func(act *Row) int {
		name, doc := strings.ToLower(act.Name), strings.ToLower(act.Doc)
		switch typed := strings.ToLower(p.line.Text()); {
		case name == typed:
			return 0
		case strings.HasPrefix(name, typed):
			return 1
		case strings.Contains(" "+name+" "+doc, " "+typed):
			return 2
		}
		return 3
	}
	slices.SortStableFunc(p.found, func(a, b *Row) int { return rank(a) - rank(b) })
}

func (p *Palette) Hints() [][2]string {
	return [][2]string{{"enter", "do it"}, {widget.Sign("up") + widget.Sign("down"), "choose"}, {"esc", "close"}}
}

func (p *Palette) Lines(int) (all, least int) { return len(p.found) + 2, 0 }

// Render draws the input line and the commands found, in at most h lines.
func (p *Palette) Render(t *widget.Theme, w, h int) []string {
	lines := []string{t.Put(widget.Accent, " : ") + p.line.Render(w-4)}
	from, to := p.Window(len(p.found), len(lines), h-1)
	for i := from; i < to; i++ {
		act := p.found[i]
		text := act.Doc
		if why := p.why(act); why != "" {
			text = "not now: " + why
		}
		l := widget.Cut(fmt.Sprintf(" %s  %s  %s", widget.Fit(act.Name, 12), widget.Fit(act.KeyNames(), 9),
			text), w-1)
		if i == p.Cursor {
			lines = append(lines, t.Put(widget.Selected, widget.MarkSelected+l))
		} else {
			lines = append(lines, " "+l)
		}
	}
	if len(p.found) == 0 {
		lines = append(lines, t.Put(widget.Dim, "   no command matches the typed text"))
	}
	return lines
}

// Found returns the commands that match the typed text, best match first.
func (p *Palette) Found() []*Row { return p.found }
