package tui

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-osc52/v2"
	"github.com/sahilm/fuzzy"

	"gpuscope/internal/printable"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// overlay is text that lies over a view until it is closed: help, a kernel's source, a chain of reasons.
type overlay struct {
	view.Page
	text  widget.TextPane
	width int // of the screen that its lines are broken for
}

func overlayOf(p view.Page) *overlay {
	p.Title = printable.Clean(p.Title)
	return &overlay{Page: p, text: widget.TextPane{Lines: p.Lines, Marks: p.Marks}}
}

// lay breaks the lines for a screen of w cells. What was found is found again.
func (o *overlay) lay(w int) {
	if o.width == w || o.Broken == nil {
		return
	}
	o.width = w
	var lines []string
	var of []int
	for i, l := range o.Lines {
		for _, part := range o.Broken(l, w-2) {
			lines, of = append(lines, part), append(of, i)
		}
	}
	o.text.Load(lines, of)
	o.text.Find(o.text.Sought)
}

func (a *App) closeOverlay() { a.over = nil }

// unfold opens what is folded in the text that lies over the view, or closes it. One without is closed.
func (a *App) unfold() {
	if a.over.Folded == nil {
		a.closeOverlay()
		return
	}
	a.look(*a.over.Folded)
}

// turnOver shows the text of another step: the same, when what it is of had changed before, or changed next.
func (a *App) turnOver(by int) {
	to, why := a.over.Later, a.over.Last
	if by < 0 {
		to, why = a.over.Earlier, a.over.First
	}
	if to == nil {
		a.say(cmp.Or(why, "only why has other changes to go to"))
		return
	}
	a.look(*to)
}

// askFind asks for a text to find in what lies over the view.
func (a *App) askFind() {
	p := &a.over.text
	sought, at, stays := p.Sought, p.At, p.Stays
	q := &question{
		label: "find", live: p.Find, take: p.Find,
		leave: func() { // the lines may be broken otherwise by now
			p.Find(sought)
			p.At, p.Stays = min(at, max(0, len(p.Found)-1)), stays
		},
	}
	q.line.Suggest(p.Sought)
	a.ask(q)
}

// nextFound goes to the next line that was found, or the one before.
func (a *App) nextFound(by int) {
	if why := a.over.text.Next(by); why != "" {
		a.say(command.Keyed(why))
	}
}

// showHelp lists what the keys do in this view.
func (a *App) showHelp() {
	name := a.row().Name
	var lines []string
	add := func(sign, text string) {
		lines = append(lines,
			fmt.Sprintf("  %s  %s", widget.Fit(sign, 12), text))
	}
	section := func(name string, list []*command.Row) {
		if len(list) == 0 {
			return
		}
		lines = append(lines, "", name)
		for _, act := range list {
			text := act.Doc
			if why := a.why(act); why != "" {
				text += " (not now: " + why + ")"
			}
			add(act.KeyNames(), text)
		}
	}
	here := a.inView()
	section("In "+name, slices.DeleteFunc(command.Under(command.InViews, func(of string) bool { return of != "" }),
		func(r *command.Row) bool { return !here.Offers(r.Name) }))
	for _, p := range []command.Place{command.InViews, command.Moving, command.Overlays, command.Anywhere} {
		section(p.String(), command.Under(p, command.General))
	}
	for _, part := range []struct {
		name string
		list [][2]string
	}{{"Mouse", mouseDoc}, {"Signs", legend}} {
		lines = append(lines, "", part.name)
		for _, s := range part.list {
			add(s[0], command.Keyed(s[1]))
		}
	}
	if t := a.shownTable(); t != nil {
		lines = append(lines, "", "Columns")
		for _, c := range t.Columns {
			if c.Title != "" && c.Width != table.Unseen {
				add(c.Title, c.Doc)
			}
		}
	}
	a.over = overlayOf(view.Page{Title: "Help: " + name, Lines: lines[1:], Broken: wrapSigned})
}

// shownTable is the table of the view, nil where it has none.
func (a *App) shownTable() *table.Table {
	if rows := a.view().Pane(); rows != nil {
		return rows.Table
	}
	return nil
}

// legend explains the signs of the screens.
var legend = [][2]string{
	{"┌ ├ └", "one level: no barrier stands between these dispatches"},
	{"n/m", "n of the m rows in it pass the filter; its sums are of all m"},
	{"•", "marked; in a text: found"},
	{"▎ “”", "of a kernel's source what its constants made; what they filled in, where there are no colours"},
	{"→", "from, to"},
	{"~", "modelled from shapes, not measured"},
	{"–", "not measured; never 0"},
	{"‹", "under two ticks of the clock"},
	{"=", "no difference that the clock can tell"},
	{"?", "a cost of too few rounds to say what it may be off by"},
	{"alone", "timed between barriers and timestamps, beside nothing else; Σ of all dispatches of a row"},
	{"timing +9 %", "what timing each dispatch adds to the step"},
	{"(s63 ×8)", "the figures before it are medians of so many untimed runs of that step"},
	{"(2.4×)", "so many times what the step takes untimed"},
	{"drift", "of the clock or the device: the operator slopes, but its plan is the same at every position"},
	{"≈floor", "takes about as long as an empty timed pass"},
	{"Δ 48→96 r p", "against the base: grid, route, params alone; in a heading a letter each"},
	{"Δ + - %", "new, gone, time"},
	{"n", "samples of a median; {repeat} adds some"},
	{"clk", "speed of a fixed kernel against the first step"},
}

// look shows a text over the view, once a job has made it.
func (a *App) look(t view.Text) {
	a.asked++
	none := t.None
	a.overTask.Want(a.jobs, a.asked, func(ctx context.Context) (*overlay, error) {
		p, err := t.Of(ctx)
		if err != nil || len(p.Lines) == 0 {
			return nil, err
		}
		if !t.Code {
			p.Broken = widget.WrapIndented
		}
		return overlayOf(p), nil
	}, func(o *overlay) {
		if o == nil {
			a.remark(none)
			return
		}
		a.over = o
	})
}

// stopLooking drops the text that somebody waits for, and says whether there was one.
func (a *App) stopLooking() bool {
	waits := a.overTask.Cancel != nil
	a.overTask.Drop(a.jobs)
	return waits
}

// signed is where the text begins in a line of the help, behind keys or a sign.
const signed = 16

// wrapSigned breaks a line of the help to w cells; what follows stands under what is behind the sign.
func wrapSigned(l string, w int) []string {
	if widget.Width(l) <= w || !strings.HasPrefix(l, " ") {
		return []string{widget.Cut(l, w)}
	}
	lines := widget.WrapText(widget.CutLeft(l, signed), w-signed)
	for i := range lines {
		head := widget.Blank(signed)
		if i == 0 {
			head = widget.CutRight(l, signed)
		}
		lines[i] = head + lines[i]
	}
	return lines
}

// question is a line of text that is being typed.
type question struct {
	label string
	hint  string // what can be typed, while nothing is
	line  widget.InputLine
	live  func(string) // with every key
	take  func(string)
	leave func()
}

func (a *App) ask(q *question) { a.question = q }

func (a *App) closeInput() {
	if q := a.question; q != nil && q.leave != nil {
		q.leave()
	}
	if a.chord != nil {
		a.struck(widget.Key{Name: "esc"})
	}
	a.question, a.dialog = nil, nil
}

// typedInDialog hands a key to the dialog, which may be over then.
func (a *App) typedInDialog(k widget.Key) {
	d := a.dialog
	if d.Typed(k) && a.dialog == d {
		a.dialog = nil
	}
}

// typed takes a key while text is being typed.
func (a *App) typed(k widget.Key) {
	if a.dialog != nil {
		a.typedInDialog(k)
		return
	}
	q := a.question
	switch {
	case k.Name == "enter":
		a.question = nil
		q.take(q.line.Text())
	case k.Name == "esc":
		a.closeInput()
	case q.line.Handle(k):
		if q.live != nil {
			q.live(q.line.Text())
		}
	}
}

// palette finds an action by its name.
type palette struct {
	app   *App
	line  widget.InputLine
	all   []*command.Row
	found []*command.Row
	widget.Picker
}

func (a *App) openPalette() {
	p := &palette{app: a}
	for _, act := range command.Here(a.inView(command.InViews, command.Anywhere), false) {
		if act.Name != "palette" {
			p.all = append(p.all, act)
		}
	}
	p.found = p.all
	a.dialog = p
}

func (p *palette) Typed(k widget.Key) (closed bool) {
	switch k.Name {
	case "enter":
		if p.Cursor < len(p.found) {
			p.app.dialog = nil // the action may open another
			p.app.do(p.found[p.Cursor])
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

// search ranks the actions by how well name and sentence match what was typed: a name that is it comes first,
// then those that begin with it, then those with a word that does, then letters here and there.
func (p *palette) search() {
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
	rank := func(act *command.Row) int {
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
	slices.SortStableFunc(p.found, func(a, b *command.Row) int { return rank(a) - rank(b) })
}

func (p *palette) Hints() [][2]string {
	return [][2]string{{"enter", "do it"}, {widget.Sign("up") + widget.Sign("down"), "choose"}, {"esc", "close"}}
}

func (p *palette) Lines(int) (all, least int) { return len(p.found) + 2, 0 }

// Render draws the actions found, at most h lines.
func (p *palette) Render(t *widget.Theme, w, h int) []string {
	lines := []string{t.Put(widget.Accent, " : ") + p.line.Render(w-4)}
	from, to := p.Window(len(p.found), len(lines), h-1)
	for i := from; i < to; i++ {
		act := p.found[i]
		text := act.Doc
		if why := p.app.why(act); why != "" {
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
		lines = append(lines, t.Put(widget.Dim, "   no action has that name"))
	}
	return lines
}

// copy hands text to the terminal's clipboard: what lies over the view, the detail, or the selected row.
func (a *App) copy() {
	var text string
	switch {
	case a.over != nil:
		text = cmp.Or(a.over.Whole, strings.Join(a.over.text.Lines, "\n"))
	case a.inDetail:
		text = strings.Join(a.detail.Lines, "\n")
	default:
		text = a.view().Copied()
	}
	if text == "" {
		a.remark("there is nothing to copy")
		return
	}
	out := a.opts.output()
	a.later("copy", "copying", func(context.Context) (string, error) {
		if _, err := osc52.New(text).WriteTo(out); err != nil {
			return "", fmt.Errorf("copy: %w", err)
		}
		said := "copied " + widget.Plural(len(text), "byte")
		if os.Getenv("TMUX") != "" { // as it is set up, tmux drops what programs copy, and tells nobody
			said += "; tmux passes them on after: tmux set -s set-clipboard on"
		}
		return said, nil
	})
}

// struck takes the key that follows one of several meanings.
func (a *App) struck(k widget.Key) {
	c := a.chord
	a.chord = nil
	if wrong := c.Struck(k); wrong != "" {
		a.remark(wrong)
	}
}
