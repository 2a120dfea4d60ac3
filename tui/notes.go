package tui

import (
	"context"
	"slices"
	"time"

	"gpuscope/internal/printable"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// notes holds the messages shown to the user: a note that fades, results that stay until the next key, an
// error that stays until it is dismissed, and the names of background tasks.
type notes struct {
	log   *Log
	work  *widget.Jobs
	after func(d time.Duration, m any) // sends a message to the event loop after a delay

	doing     []string    // background tasks that the method later has started
	note      string      // the note; it fades after a few seconds
	noteOfKey bool        // the next key removes the note, because it answers the previous key
	noteHolds func() bool // the note is removed when noteHolds returns false; nil: when the note fades
	noteID    int
	results   []result
	failure   string // the shown error; stays until dismissed
	failureOf any    // the failed task, whose later success clears the error; nil: only the user clears it
}

// result is what a command or a background task has achieved: a measurement, a verdict, a written file.
type result struct {
	text  string
	paint widget.Paint
	since time.Time
}

// readFor is the minimum time for which a result is shown. A key that the user presses sooner does not
// remove the result, because the user has not read it yet. Tests set readFor to 0.
var readFor = time.Second

// mostResults is the maximum number of results on the screen. All results are in the log.
const mostResults = 4

// report shows a result until the next key, and adds the result to the log.
func (n *notes) report(text string) {
	n.log.Add("info", text)
	n.announce(widget.Accent, text)
}

// announce shows a result, which the session has logged, until the next key. It is shown below the results
// that the user has not read.
func (n *notes) announce(p widget.Paint, text string) {
	n.results = slices.DeleteFunc(n.results, func(r result) bool { return r.text == text })
	n.results = append(n.results, result{text, p, widget.Now()})
	n.results = n.results[max(0, len(n.results)-mostResults):]
}

// read removes the results that the user has had time to read. Call it for each key that is not typed into
// an input.
func (n *notes) read() {
	known := func(r result) bool { return widget.Now().Sub(r.since) >= readFor }
	n.results = slices.DeleteFunc(n.results, known)
}

// remark tells the user, in response to a key, why something cannot be done.
func (n *notes) remark(text string) {
	n.tell(widget.LevelKey, text)
	n.noteOfKey = true
}

// say shows a note and adds it to the log.
func (n *notes) say(text string) { n.tell("info", text) }

// tell shows a note and adds the note to the log, unless the same note is already on the screen.
func (n *notes) tell(level, text string) {
	if text != n.note {
		n.log.Add(level, text)
	}
	n.show(text)
}

// show shows a note for as long as it takes to read it, at least four seconds, without logging it.
func (n *notes) show(text string) {
	n.unsay()
	n.note = text
	n.noteID++
	n.fade(max(4*time.Second, time.Duration(len(text))*60*time.Millisecond))
}

// fade removes the note after a delay.
func (n *notes) fade(after time.Duration) {
	id := n.noteID
	n.after(after, fadeMsg{id})
}

// unsay removes the note.
func (n *notes) unsay() { n.note, n.noteOfKey, n.noteHolds = "", false, nil }

// fail shows an error until the user dismisses the error or the task succeeds. `task` is a *widget.Task,
// the kind of a command, or the argument `kind` of the method `later`. If `task` is nil, only the user can
// clear the error.
func (n *notes) fail(task any, err error) {
	n.failure, n.failureOf = printable.Short(err.Error(), view.MostShown), task
	n.log.Add("error", err.Error())
}

// mended clears the shown error if it came from the given task, which has now succeeded.
func (n *notes) mended(task any) {
	if n.failureOf == task {
		n.failure = ""
	}
}

// later runs f in the background and then shows the result that f returned. While f runs, the screen shows
// the description. If f succeeds, later clears the error of an earlier task of the same kind.
func (n *notes) later(kind, description string, f func(context.Context) (string, error)) {
	n.doing = append(n.doing, description)
	n.work.Runner.Start(func(ctx context.Context) {
		text, err := f(ctx)
		n.work.Runner.Send(noteMsg{kind, description, text, err})
	})
}
