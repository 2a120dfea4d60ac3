package tui

import (
	"context"
	"time"

	"gpuscope/internal/printable"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// notes are what is said to the person: a note that fades, an error that stays, what is being done.
type notes struct {
	log   *Log
	work  *widget.Jobs
	after func(d time.Duration, m any) // sends a message to the event loop after a time

	doing     []string    // what later does
	note      string      // fades,
	noteOfKey bool        // or goes with the next key: it answers one,
	noteHolds func() bool // or when this holds no more, nil for what always does
	noteID    int
	failure   string // stays until dismissed,
	failureOf any    // or until what failed has been done; nil: nothing that is done again
}

// remark says, in answer to a key, why something cannot be done.
func (n *notes) remark(text string) {
	n.tell(widget.LevelKey, text)
	n.noteOfKey = true
}

// say shows a note, and keeps it in the log.
func (n *notes) say(text string) { n.tell("info", text) }

// tell shows a note. What is on the screen already is in the log.
func (n *notes) tell(level, text string) {
	if text != n.note {
		n.log.Add(level, text)
	}
	n.show(text)
}

// show shows a note for four seconds.
func (n *notes) show(text string) {
	n.unsay()
	n.note = text
	n.noteID++
	n.fade(4 * time.Second)
}

// fade takes the note back after a time.
func (n *notes) fade(after time.Duration) {
	id := n.noteID
	n.after(after, fadeMsg{id})
}

// unsay takes the note back.
func (n *notes) unsay() { n.note, n.noteOfKey, n.noteHolds = "", false, nil }

// fail shows an error until it is dismissed, or until the same is done again and succeeds: a task, a kind of
// command, what later was told. It is of nil where there is no such thing.
func (n *notes) fail(of any, err error) {
	n.failure, n.failureOf = printable.Short(err.Error(), view.MostShown), of
	n.log.Add("error", err.Error())
}

// mended takes the error back that something had, now that it has succeeded.
func (n *notes) mended(of any) {
	if n.failureOf == of {
		n.failure = ""
	}
}

// later runs f beside the event loop and shows what it says. Until then the screen says what is being done. A
// kind is a word for all that is done like it.
func (n *notes) later(kind, what string, f func(context.Context) (string, error)) {
	n.doing = append(n.doing, what)
	n.work.Runner.Start(func(ctx context.Context) {
		text, err := f(ctx)
		n.work.Runner.Send(noteMsg{kind, what, text, err})
	})
}
