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

// overlays holds the text that is shown over a view, and the job that builds such a text.
type overlays struct {
	*notes
	*inputs
	work     *widget.Jobs
	over     *overlay // the shown text, such as the help; nil if none is shown
	overTask widget.Task[int, *overlay]
	asked    int // number of overlays requested so far
}

// overlay is a text shown over a view until it is closed: the help, a kernel's source or a chain of
// reasons.
type overlay struct {
	view.Page
	text  widget.TextPane
	width int // screen width that the lines are wrapped for
	frame int // width with the frame
}

func overlayOf(p view.Page) *overlay {
	p.Title = printable.Clean(p.Title)
	return &overlay{Page: p, text: widget.TextPane{Lines: p.Lines, Marks: p.Marks}}
}

// lay wraps the lines for a screen of w cells. It then repeats the current search, because the lines have
// changed.
func (o *overlay) lay(w int) {
	if o.width == w {
		return
	}
	o.width = w
	if o.Broken == nil {
		longest := 0
		for _, l := range o.Lines {
			longest = max(longest, widget.Width(l))
		}
		o.frame = widget.FrameWidth(w, longest+4)
		return
	}
	o.frame = widget.FrameWidth(w, widget.Readable)
	var lines []string
	var of []int
	for i, l := range o.Lines {
		for _, part := range o.Broken(l, o.frame-4) {
			lines, of = append(lines, part), append(of, i)
		}
	}
	if o.Head != widget.Plain {
		o.text.Marks = make([][]widget.Stretch, len(lines))
		for i := 0; i < len(lines) && of[i] == 0; i++ {
			o.text.Marks[i] = []widget.Stretch{{To: len(lines[i]), Paint: o.Head}}
		}
	}
	o.text.Load(lines, of)
	o.text.Find(o.text.Sought)
}

func (o *overlays) closeOverlay() { o.over = nil }

// unfold replaces the overlay with its longer or shorter version. If the text has only one version, unfold
// closes the overlay.
func (o *overlays) unfold() {
	if o.over.Folded == nil {
		o.closeOverlay()
		return
	}
	o.look(*o.over.Folded)
}

// turnOver shows the overlay for another step: the step with the next change, or with the previous one if
// `by` is negative.
func (o *overlays) turnOver(by int) {
	to, why := o.over.Later, o.over.Last
	if by < 0 {
		to, why = o.over.Earlier, o.over.First
	}
	if to == nil {
		o.say(cmp.Or(why, "these keys only work in the explanation of a grid"))
		return
	}
	o.look(*to)
}

// askFind asks for a text to search for in the overlay.
func (o *overlays) askFind() {
	p := &o.over.text
	sought, at, stays := p.Sought, p.At, p.Stays
	q := &question{
		label: "find", live: p.Find, take: p.Find,
		leave: func() { // repeat the earlier search: the lines may have been wrapped again
			p.Find(sought)
			p.At, p.Stays = min(at, max(0, len(p.Found)-1)), stays
		},
	}
	q.line.Suggest(p.Sought)
	o.ask(q)
}

// nextFound moves to the next match of the search, or to the previous match if `by` is negative.
func (o *overlays) nextFound(by int) {
	if why := o.over.text.Next(by); why != "" {
		o.say(command.Keyed(why))
	}
}

// showHelp shows what the keys do in this view.
func (a *App) showHelp() {
	clear(a.used)
	name := a.row().Name
	list := command.Help(name, a.inView().Offers, a.why, mouseDoc, a.frame())
	if t := a.shownTable(); t != nil {
		columns := command.Section{Name: "Columns"}
		for _, c := range t.Columns {
			if c.Title != "" && c.Width != table.Unseen {
				columns.Rows = append(columns.Rows, [2]string{c.Title, c.Doc})
			}
		}
		list = append(list, columns)
	}
	a.over = overlayOf(view.Page{
		Title: "Help: " + name, Lines: command.HelpLines(list), Broken: command.WrapSigned,
	})
}

// shownTable returns the table of the current view, or nil if it has none.
func (a *App) shownTable() *table.Table {
	if rows := a.view().Pane(); rows != nil {
		return rows.Table
	}
	return nil
}

// look builds a text in a background job and then shows the text over the view.
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

// stopLooking cancels the job that is building an overlay, and reports whether there was one.
func (o *overlays) stopLooking() bool {
	waits := o.overTask.Cancel != nil
	o.overTask.Drop(o.work)
	return waits
}

// inputs holds what the user is typing into. At most one of the fields is set at a time.
type inputs struct {
	*notes
	question *question     // a line of text
	dialog   widget.Dialog // in a frame at the bottom of the screen
	chord    *widget.Chord // a command that waits for a second key
}

// question is a one-line text input.
type question struct {
	label string
	hint  string // shown while the input is empty
	line  widget.InputLine
	live  func(string) // called after every key press
	take  func(string)
	leave func()
	// complete is called on tab. It replaces the typed text, at once or later. nil: tab does nothing.
	complete func()
}

// typing reports whether keys go to an input.
func (in *inputs) typing() bool { return in.question != nil || in.dialog != nil || in.chord != nil }

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

// typedInDialog passes a key to the dialog. It closes the dialog if the dialog reports that it is finished.
func (in *inputs) typedInDialog(k widget.Key) {
	d := in.dialog
	if d.Typed(k) && in.dialog == d {
		in.dialog = nil
	}
}

// typed handles a key while the user is typing text.
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
	case k.Name == "tab" && q.complete != nil:
		q.complete()
	case q.line.Handle(k):
		if q.live != nil {
			q.live(q.line.Text())
		}
	}
}

// copy copies to the terminal's clipboard: the text of the overlay, else of the focused detail, else the
// selected row.
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
		if os.Getenv("TMUX") != "" { // with default settings, tmux silently discards the copied text
			said += "; tmux needs the setting: tmux set -s set-clipboard on"
		}
		return said, nil
	})
}

// struck runs the chord with its second key.
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
		a.dialog = nil // the command may open another dialog
		a.do(r)
	})
}

// askQuestion lists the questions of the help. It then presses the keys that answer the chosen question.
func (a *App) askQuestion() {
	a.closeOverlay()
	rows := make([]string, len(command.Questions))
	for i := range rows {
		rows[i] = command.Questions[i].Line()
	}
	a.dialog = &widget.Chooser{
		Title: "How do I ...? " + widget.Sign("enter") + " presses the keys",
		Rows:  func() []string { return rows },
		Take: func(row int, _ string) error {
			a.held = append(a.held, command.Questions[row].Presses()...)
			return nil
		},
	}
}
