package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// pilot sends commands to the session, one at a time, and shows their results.
type pilot struct {
	*selection
	opts        *Options
	interrupted time.Time // time of the last cancel
}

// still lists the commands that keep the text and the position.
var still = []session.CommandKind{
	session.Timing, session.Ceilings, session.Chunk, session.Repeat, session.Tokenize, session.Look,
	session.Save,
	session.Cost, session.Observe, session.TimeOp, session.Verify, session.Lab, session.Kernel,
}

// yielding lists the commands that stop early when the user sends another command.
var yielding = []session.CommandKind{session.Run, session.Observe, session.Cost, session.Verify, session.Lab}

// command sends a command to the session. If another command is running, the new command waits until the
// running command ends; a running command of the list `yielding` is stopped. Only one command can wait: a
// newer command replaces the waiting one. A key that is held down therefore steps the model as fast as
// possible, and the model stops when the key is released.
func (pi *pilot) command(c session.Command) {
	if pi.job != nil {
		pi.queued = &c
		if slices.Contains(yielding, pi.job.command.Kind) {
			pi.stopJob()
		}
		return
	}
	pi.mirror.Progress = session.Progress{} // discard the progress of an earlier command
	if !slices.Contains(still, c.Kind) {
		pi.follow, pi.hit = true, nil
	}
	pi.commands++
	ctx, cancel := context.WithCancel(pi.jobs.Runner.Ctx)
	j := &job{id: pi.commands, command: c, cancel: cancel}
	if t := pi.mirror.Trace; t != nil {
		j.events = len(t.Events)
	}
	pi.job = j
	s := pi.session
	pi.jobs.Runner.Start(func(context.Context) {
		defer cancel()
		reply, err := s.Do(ctx, c)
		pi.jobs.Runner.Send(doneMsg{j.id, reply, err})
	})
}

func (a *App) done(m doneMsg) {
	if a.job == nil || a.job.id != m.id {
		return
	}
	j := a.job
	if a.job = nil; !j.cancelled {
		a.disarm()
	}
	a.takeNews() // show the result of the command at once
	a.version++
	if j.command.Kind == session.Resume {
		a.resumed(m.reply, m.err)
	}
	if errors.Is(m.err, session.ErrClosed) { // App.ended reports the reason
		if a.queued = nil; !a.lost {
			a.died = command.BusyWith[j.command.Kind]
		}
		a.keepWish()
		return
	}
	mistake := j.command.Kind == session.Lab && errors.Is(m.err, session.ErrUsage) // the lab shows this error
	if m.err != nil && !mistake && !(j.cancelled && errors.Is(m.err, context.Canceled)) {
		a.refused(j.command, m.err)
		a.queued = nil
	}
	if m.err == nil {
		a.mended(j.command.Kind)
	}
	switch {
	case j.command.Kind == session.Verify && m.err == nil:
		a.answer(j, a.verified)
	case j.command.Kind == session.Repeat && m.err == nil:
		a.answer(j, a.repeated)
	case j.command.Kind == session.TimeOp && m.err == nil:
		op := a.mirror.Trace.Graph.Ops[*j.command.Op].Name
		a.report("timed " + op + " for " + command.TokenCounts(j.command.Lengths))
	case j.command.Kind == session.Reset && m.err == nil:
		text := command.Keyed(command.ResetNote(a.mirror.State.Program))
		a.announce(widget.Accent, text)
	case j.command.Kind == session.Lab:
		a.lab.Tried(j.command, m.reply, m.err)
	case j.command.Kind == session.Kernel && m.err == nil:
		a.lab.Used(j.command)
	}
	if m.reply.Saved != nil {
		a.report(command.SavedNote(m.reply.Saved))
	}
	switch note := m.reply.Note; {
	case note == nil:
	case j.command.Kind == session.Previous: // the next key can follow at once
		a.show(note.Text)
	default:
		a.announce(widget.Accent, note.Text)
	}
	if m.reply.Hit != nil {
		a.paused(m.reply.Hit)
		a.queued = nil
	}
	if c := a.queued; c != nil {
		a.queued = nil
		a.command(*c)
	} else if j.command.Kind == session.Run && m.reply.Steps > 0 && !a.armed() && a.unobserved() {
		a.command(session.Command{Kind: session.Observe})
	}
}

// observedFor is the number of steps after which the timing overhead is measured again.
const observedFor = 64

// unobserved reports whether to measure the timing overhead of the current step: the step must be a decode
// step at timing level dispatch, without a measurement in the last observedFor steps.
func (pi *pilot) unobserved() bool {
	t := pi.mirror.Trace
	if t == nil || len(t.Steps) == 0 || pi.lost || pi.mirror.State.Upto != nil {
		return false
	}
	s := &t.Steps[len(t.Steps)-1]
	if s.Timing != trace.TimingDispatch || s.Phase != trace.Decode || s.Index != pi.mirror.State.Step {
		return false
	}
	o := t.Observer
	return o == nil || o.Step != nil && s.Index-*o.Step >= observedFor
}

func (pi *pilot) stopJob() {
	pi.job.cancelled = true
	pi.job.cancel()
}

// stop cancels the running command and the waiting one. It reports whether a command was running.
func (pi *pilot) stop() bool {
	pi.queued = nil
	if pi.job == nil {
		return false
	}
	pi.stopJob()
	return true
}

// ceilings measures the highest rates of the device.
func (pi *pilot) ceilings() { pi.command(session.Command{Kind: session.Ceilings}) }

// goOn sends a command that changes the current step. It also ends a selection of several steps. The
// new step is then shown, and it is the only selected step.
func (pi *pilot) goOn(c session.Command) {
	if left := pi.leaveScope(); left != "" {
		pi.say(left)
	}
	pi.command(c)
}

func (pi *pilot) next() {
	if pi.session == nil {
		pi.showStep(1)
		return
	}
	pi.goOn(session.Command{Kind: session.Next})
}

func (pi *pilot) back() {
	if pi.session == nil {
		pi.showStep(-1)
		return
	}
	pi.goOn(session.Command{Kind: session.Previous})
}

// running reports whether a run is in progress.
func (m *model) running() bool { return m.job != nil && m.job.command.Kind == session.Run }

// pauses returns the label of runPause while a run is in progress, else "".
func (m *model) pauses() string {
	if m.running() {
		return "pause"
	}
	return ""
}

func (pi *pilot) runPause() {
	if pi.running() {
		pi.stop()
		return
	}
	pi.settle()
	pi.command(pi.breaks.Runs(session.Command{Kind: session.Run}))
}

func (pi *pilot) reset() { pi.goOn(session.Command{Kind: session.Reset}) }

func (pi *pilot) toggleFollow() {
	if follow := !pi.follow && pi.session != nil; follow {
		pi.lookAt(pi.stepOfState(), "following the newest step")
		pi.follow = true
		if pi.running() {
			pi.settle()
		}
	} else {
		pi.lookAt(pi.at(), fmt.Sprintf("staying on step %d", pi.shownIndex()))
	}
}

// nextEvent shows the next step that has an event, or the previous such step if `by` is negative. A note
// describes the events of this step. In a view with rows, nextEvent also selects the dispatch of the event.
func (pi *pilot) nextEvent(by int) {
	events := pi.happened.Value
	if !pi.happened.Has {
		pi.remark("events are still being collected")
		return
	}
	what := "no event "
	if has := pi.view().Has(); has != nil {
		what = "no grid changed "
		events = slices.DeleteFunc(slices.Clone(events), func(e analyze.Event) bool { return !has(e) })
	}
	i := sort.Search(len(events), func(i int) bool { return events[i].Step > pi.at() })
	if by < 0 {
		i = sort.Search(len(events), func(i int) bool { return events[i].Step >= pi.at() }) - 1
	}
	if i < 0 || i >= len(events) {
		where := map[int]string{-1: "before", 1: "after"}[by]
		pi.remark(what + where + " this step")
		return
	}
	at := events[i].Step
	s := &pi.index.Trace.Steps[at]
	var said []string
	for _, e := range events {
		if e.Step != at {
			continue
		}
		said = append(said, e.Text)
		if rows := pi.view().Pane(); rows != nil && e.Dispatch != nil {
			rows.Seek(*e.Dispatch)
		}
	}
	pi.lookAt(at, fmt.Sprintf("s%d pos %d: %s", s.Index, s.Position, strings.Join(said, " · ")))
}

// lookAt shows one recorded step and selects only this step. It then shows a note with the given words.
func (sel *selection) lookAt(step int, words ...string) {
	sel.follow = false
	said := widget.Joined(" · ", append([]string{sel.leaveScope()}, words...)...)
	if step != sel.shown {
		sel.shown = step
		sel.version++
	}
	if said != "" {
		sel.say(said)
	}
}

// showStep moves the display by the given number of recorded steps.
func (sel *selection) showStep(by int) {
	at, last := sel.at(), len(sel.index.Trace.Steps)-1
	words := ""
	if by < 0 && at == 0 || by > 0 && at == last {
		words = fmt.Sprintf("step %d is the %s recorded step", sel.shownIndex(), end(by))
	}
	sel.lookAt(widget.Clamp(at+by, 0, last), words)
}

// end names the end of the list of steps in the given direction.
func end(by int) string {
	if by < 0 {
		return "first"
	}
	return "last"
}

// shownIndex returns the number of the shown step, as in the trace, or -1 if no step is shown.
func (sel *selection) shownIndex() int {
	if s := sel.step(); s != nil {
		return s.Index
	}
	return -1
}

func (pi *pilot) askPrompt() {
	label := command.PromptLabel(pi.opts.Chat, pi.mirror.State.Program)
	pi.ask(&question{label: label, take: func(s string) { pi.goOn(command.Prompt(s, pi.opts.Chat)) }})
}

func (a *App) askFilter() {
	f := a.view().Filter()
	if f == nil {
		return
	}
	before := f.Text
	q := &question{
		label: cmp.Or(f.Label, "filter"),
		hint:  cmp.Or(f.Hint, "norm, !norm, re:^fd_, #37 (an id), op:=q, us:>10"),
		live:  f.Set, take: f.Set,
		leave: func() { f.Set(before) },
	}
	q.line.Suggest(before)
	a.ask(q)
}

// verified shows the verdict of the last verification.
func (pi *pilot) verified() {
	if text, paint := command.VerifyVerdict(pi.mirror.Trace); text != "" {
		pi.announce(paint, text)
	}
}

// repeated shows how often a step was repeated.
func (pi *pilot) repeated() {
	if e := command.LastEvent(pi.mirror.Trace, session.Repeat); e != nil {
		pi.announce(widget.Accent, fmt.Sprintf("step %d: %s", e.Step, e.Text))
	}
}

// armed reports whether another cancel now quits the program.
func (pi *pilot) armed() bool {
	return !pi.interrupted.IsZero() && widget.Now().Sub(pi.interrupted) < command.Again
}

// disarm forgets the last cancel, so that the next cancel does not quit the program.
func (pi *pilot) disarm() { pi.interrupted = time.Time{} }
