package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sahilm/fuzzy"

	"gpuscope/tui/widget"
)

// Palette is the dialog that finds a command by its name, by its description or by another word for it.
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

// search finds the commands that match the typed text. A name that equals the text is the best match. Next,
// in this order: a name that starts with the text, a word of Row.Also that starts with the text, a word of
// the name or the description that starts with the text, a name that contains the letters of the text in
// order.
func (p *Palette) search() {
	p.Cursor, p.found = 0, nil
	typed := strings.ToLower(strings.TrimSpace(p.line.Text()))
	ranks := map[*Row]int{}
	for _, r := range p.all {
		if rank := r.matches(typed); rank < scattered {
			ranks[r] = rank
			p.found = append(p.found, r)
		}
	}
	slices.SortStableFunc(p.found, func(a, b *Row) int { return ranks[a] - ranks[b] })
	names := make([]string, len(p.all))
	for i, r := range p.all {
		names[i] = r.Name
	}
	for _, m := range fuzzy.Find(typed, names) {
		if r := p.all[m.Index]; !slices.Contains(p.found, r) {
			p.found = append(p.found, r)
		}
	}
}

// scattered is the rank of a command without any word that starts with the typed text.
const scattered = 4

// matches returns how well the command matches a text in lower case; 0 is best.
func (r *Row) matches(typed string) int {
	name := strings.ToLower(r.Name)
	switch {
	case name == typed:
		return 0
	case strings.HasPrefix(name, typed):
		return 1
	case hasWord(r.Also, typed):
		return 2
	case hasWord(name+" "+r.Doc, typed):
		return 3
	}
	return scattered
}

// hasWord reports whether a word of text starts with a text in lower case.
func hasWord(text, typed string) bool {
	return strings.Contains(" "+strings.ToLower(text), " "+typed)
}

func (p *Palette) Name() string { return "Commands" }

func (p *Palette) Hints() [][2]string {
	return [][2]string{{"enter", "do it"}, {widget.Sign("up") + widget.Sign("down"), "choose"}, {"esc", "close"}}
}

func (p *Palette) Lines(int) (all, least int) { return max(1, len(p.found)) + 1, 2 }

// Render draws the input line and the commands found, in at most h lines.
func (p *Palette) Render(t *widget.Theme, w, h int) []string {
	lines := []string{t.Put(widget.Accent, widget.Prompt) + p.line.Render(w-4)}
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
		lines = append(lines, t.Put(widget.Dim, "   no match"))
	}
	return lines
}

// Found returns the commands that match the typed text, best match first.
func (p *Palette) Found() []*Row { return p.found }
