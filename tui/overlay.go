package tui

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-osc52/v2"

	"gpuscope/internal/printable"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// overlays has the text that lies over a view, or is being made.
type overlays struct {
	*notes
	*inputs
	work     *widget.Jobs
	over     *overlay // help, source, why
	overTask widget.Task[int, *overlay]
	asked    int // overlays that were asked for
}

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

func (o *overlays) closeOverlay() { o.over = nil }

// unfold opens what is folded in the text that lies over the view, or closes it. One without is closed.
func (o *overlays) unfold() {
	if o.over.Folded == nil {
		o.closeOverlay()
		return
	}
	o.look(*o.over.Folded)
}

// turnOver shows the text of another step: the same, when what it is of had changed before, or changed next.
func (o *overlays) turnOver(by int) {
	to, why := o.over.Later, o.over.Last
	if by < 0 {
		to, why = o.over.Earlier, o.over.First
	}
	if to == nil {
		o.say(cmp.Or(why, "other changes are only in why"))
		return
	}
	o.look(*to)
}

// askFind asks for a text to find in what lies over the view.
func (o *overlays) askFind() {
	p := &o.over.text
	sought, at, stays := p.Sought, p.At, p.Stays
	q := &question{
		label: "find", live: p.Find, take: p.Find,
		leave: func() { // the lines may be broken otherwise by now
			p.Find(sought)
			p.At, p.Stays = min(at, max(0, len(p.Found)-1)), stays
		},
	}
	q.line.Suggest(p.Sought)
	o.ask(q)
}

// nextFound goes to the next line that was found, or the one before.
func (o *overlays) nextFound(by int) {
	if why := o.over.text.Next(by); why != "" {
		o.say(command.Keyed(why))
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
	}{{"Mouse", mouseDoc}, {"Signs", command.Signs}, {"Terms", command.Terms}} {
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

// look shows a text over the view, once a job has made it.
func (o *overlays) look(t view.Text) {
	o.asked++
	none := t.None
	o.overTask.Want(o.work, o.asked, func(ctx context.Context) (*overlay, error) {
		p, err := t.Of(ctx)
		if err != nil || len(p.Lines) == 0 {
			return nil, err
		}
		if !t.Code {
			p.Broken = widget.WrapIndented
		}
		return overlayOf(p), nil
	}, func(made *overlay) {
		if made == nil {
			o.remark(none)
			return
		}
		o.over = made
	})
}

// stopLooking drops the text that somebody waits for, and says whether there was one.
func (o *overlays) stopLooking() bool {
	waits := o.overTask.Cancel != nil
	o.overTask.Drop(o.work)
	return waits
}

// signed is where the text begins in a line of the help, after keys or a sign.
const signed = 16

// wrapSigned breaks a line of the help to w cells; what follows is aligned with the text after the sign.
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

// inputs is what a person is typing into: one of these at a time.
type inputs struct {
	*notes
	question *question     // a line of text
	dialog   widget.Dialog // at the foot of the screen
	chord    *widget.Chord // the next key says what is meant
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

func (in *inputs) ask(q *question) { in.question = q }

func (in *inputs) closeInput() {
	if q := in.question; q != nil && q.leave != nil {
		q.leave()
	}
	if in.chord != nil {
		in.struck(widget.Key{Name: "esc"})
	}
	in.question, in.dialog = nil, nil
}

// typedInDialog hands a key to the dialog, which may be over then.
func (in *inputs) typedInDialog(k widget.Key) {
	d := in.dialog
	if d.Typed(k) && in.dialog == d {
		in.dialog = nil
	}
}

// typed takes a key while text is being typed.
func (in *inputs) typed(k widget.Key) {
	if in.dialog != nil {
		in.typedInDialog(k)
		return
	}
	q := in.question
	switch {
	case k.Name == "enter":
		in.question = nil
		q.take(q.line.Text())
	case k.Name == "esc":
		in.closeInput()
	case q.line.Handle(k):
		if q.live != nil {
			q.live(q.line.Text())
		}
	}
}

// copy hands text to the terminal's clipboard: what lies over the view, the detail, or the selected row.
func (ex *exporter) copy() {
	var text string
	switch {
	case ex.texts.over != nil:
		text = cmp.Or(ex.texts.over.Whole, strings.Join(ex.texts.over.text.Lines, "\n"))
	case ex.inDetail:
		text = strings.Join(ex.detail.Lines, "\n")
	default:
		text = ex.view().Copied()
	}
	if text == "" {
		ex.remark("there is nothing to copy")
		return
	}
	out := ex.opts.output()
	ex.later("copy", "copying", func(context.Context) (string, error) {
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
func (in *inputs) struck(k widget.Key) {
	c := in.chord
	in.chord = nil
	if wrong := c.Struck(k); wrong != "" {
		in.remark(wrong)
	}
}

func (a *App) openPalette() {
	rows := slices.DeleteFunc(command.Here(a.inView(command.InViews, command.Anywhere), false),
		func(r *command.Row) bool { return r.Name == "palette" })
	a.dialog = command.NewPalette(rows, a.why, func(r *command.Row) {
		a.dialog = nil // the command may open another
		a.do(r)
	})
}
