package tui

import (
	"context"
	"time"

	"gpuscope/internal/printable"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// notes holds the messages shown to the user: a note that fades, an error that stays, and the names of
// background tasks.
type notes struct {
	log   *Log
	work  *widget.Jobs
	after func(d time.Duration, m any) // sends a message to the event loop after a delay

	doing     []string    // background tasks started by later
	note      string      // the note; it fades after a few seconds
	noteOfKey bool        // the note answers a key press, so the next key removes it
	noteHolds func() bool // the note is removed when this returns false; nil keeps the note
	noteID    int
	failure   string // the error; it stays until dismissed
	failureOf any    // success of this task or kind of command clears the error; nil: only the user does
}

// remark tells the user, in response to a key, why something cannot be done.
func (n *notes) remark(text string) {
	n.tell(widget.LevelKey, text)
	n.noteOfKey = true
}

// say shows a note and adds it to the log.
func (n *notes) say(text string) { n.tell("info", text) }

// tell shows a note and adds it to the log, unless the same note is already on the screen.
func (n *notes) tell(level, text string) {
	if text != n.note {
		n.log.Add(level, text)
	}
	n.show(text)
}

// show shows a note for four seconds without logging it.
func (n *notes) show(text string) {
	n.unsay()
	n.note = text
	n.noteID++
	n.fade(4 * time.Second)
}

// fade removes the note after a delay.
func (n *notes) fade(after time.Duration) {
	id := n.noteID
	n.after(after, fadeMsg{id})
}

// unsay removes the note.
func (n *notes) unsay() { n.note, n.noteOfKey, n.noteHolds = "", false, nil }

// fail shows an error until the user dismisses it, or until mended is called for what failed. The first
// argument names what failed: a task, a kind of command, or the kind passed to later. It is nil if only the
// user can clear the error.
func (n *notes) fail(of any, err error) {
	n.failure, n.failureOf = printable.Short(err.Error(), view.MostShown), of
	n.log.Add("error", err.Error())
}

// mended clears the shown error if what failed has now succeeded. The argument is the one that fail
// received.
func (n *notes) mended(of any) {
	if n.failureOf == of {
		n.failure = ""
	}
}

// later runs f in the background and shows the message that f returns. Until f returns, the screen shows the
// argument what as a description of the task. kind is the same for all tasks of one sort.
func (n *notes) later(kind, what string, f func(context.Context) (string, error)) {
	n.doing = append(n.doing, what)
	n.work.Runner.Start(func(ctx context.Context) {
		text, err := f(ctx)
		n.work.Runner.Send(noteMsg{kind, what, text, err})
	})
}
