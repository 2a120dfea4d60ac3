package tui

import (
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

// pilot sends commands to the session, one after the other, and shows what they bring.
type pilot struct {
	*selection
	opts        *Options
	interrupted time.Time // when a person cancelled
}

// still are the commands that leave the text and its position as they are.
var still = []session.CommandKind{
	session.Timing, session.Ceilings, session.Chunk, session.Repeat, session.Tokenize, session.Look,
	session.Cost, session.Observe, session.TimeOp, session.Verify, session.Lab, session.Kernel,
}

// yielding are the commands that nobody waits for the end of: another one stops them.
var yielding = []session.CommandKind{session.Run, session.Observe, session.Cost, session.Verify, session.Lab}

// command sends a command to the session. While another one runs it waits for it, and stops it if that is a
// yielding one; of several that wait the last one counts, so a held key steps as fast as the model does and
// not longer than it is held.
func (pi *pilot) command(c session.Command) {
	if pi.job != nil {
		pi.queued = &c
		if slices.Contains(yielding, pi.job.command.Kind) {
			pi.stopJob()
		}
		return
	}
	pi.mirror.Progress = session.Progress{} // what was said before is of another command
	if !slices.Contains(still, c.Kind) {
		pi.follow, pi.hit = true, nil
	}
	pi.commands++
	ctx, cancel := context.WithCancel(pi.jobs.Runner.Ctx)
	j := &job{id: pi.commands, command: c, cancel: cancel}
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
	a.takeNews() // what it brought is what is to be seen now
	a.version++
	if j.command.Kind == session.Resume {
		a.resumed(m.reply, m.err)
	}
	if errors.Is(m.err, session.ErrClosed) { // ended says why
		if a.queued = nil; !a.lost {
			a.died = busyWith[j.command.Kind]
		}
		a.keepWish()
		return
	}
	mistake := j.command.Kind == session.Lab && errors.Is(m.err, session.ErrUsage) // it is shown as a whole
	if m.err != nil && !mistake && !(j.cancelled && errors.Is(m.err, context.Canceled)) {
		a.refused(j.command, m.err)
		a.queued = nil
	}
	if m.err == nil {
		a.mended(j.command.Kind)
	}
	switch {
	case j.command.Kind == session.Verify && m.err == nil:
		a.verified()
	case j.command.Kind == session.Reset && m.err == nil:
		// The log has the event.
		a.show(command.Keyed(session.ResetText + "; {prompt} types a prompt"))
	case j.command.Kind == session.Lab:
		a.lab.triedText(j.command, m)
	case j.command.Kind == session.Kernel && m.err == nil:
		a.lab.usedText(j.command)
	}
	if m.reply.Rewritten != nil {
		a.show(m.reply.Rewritten.Text) // the log has the event
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

// observedFor is how many steps what timing costs is taken to hold for.
const observedFor = 64

// unobserved says whether what timing costs the current step should be measured: it is a decode step of which
// each dispatch was timed, and that has not been measured near it.
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

// stop cancels what runs and what waits, and says whether there was anything.
func (pi *pilot) stop() bool {
	pi.queued = nil
	if pi.job == nil {
		return false
	}
	pi.stopJob()
	return true
}

// ceilings measures the device.
func (pi *pilot) ceilings() { pi.command(session.Command{Kind: session.Ceilings}) }

// goOn sends a command that brings another step, which is then what a person sees.
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

// running says whether a run is on its way.
func (m *model) running() bool { return m.job != nil && m.job.command.Kind == session.Run }

// pauses is what runPause does to a run.
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

// nextEvent shows the next step at which something happened, or the one before, and says what. In a list the
// dispatch that it happened to is selected.
func (pi *pilot) nextEvent(by int) {
	events := pi.happened.Value
	if !pi.happened.Has {
		pi.remark("still collecting events")
		return
	}
	what := "nothing happened "
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

// lookAt shows a recorded step, and that alone: whatever tables spoke of, they speak of this step now. It
// says what there is to say of it.
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

// showStep shows the recorded step so many further on.
func (sel *selection) showStep(by int) {
	at, last := sel.at(), len(sel.index.Trace.Steps)-1
	words := ""
	if by < 0 && at == 0 || by > 0 && at == last {
		words = fmt.Sprintf("step %d is the %s recorded step", sel.shownIndex(), end(by))
	}
	sel.lookAt(widget.Clamp(at+by, 0, last), words)
}

// end is the word for where the steps end, forwards or back.
func end(by int) string {
	if by < 0 {
		return "first"
	}
	return "last"
}

// shownIndex is the number of the shown step.
func (sel *selection) shownIndex() int {
	if s := sel.step(); s != nil {
		return s.Index
	}
	return -1
}

func (pi *pilot) askPrompt() {
	label := "prompt"
	if pi.opts.Chat {
		label = "your turn"
	}
	pi.ask(&question{label: label, take: func(s string) { pi.goOn(command.Prompt(s, pi.opts.Chat)) }})
}

func (a *App) askFilter() {
	f := a.view().Filter()
	if f == nil {
		return
	}
	before := f.Text
	q := &question{
		label: "filter", hint: "norm, !norm, re:^fd_, #37 (an id), op:=q, us:>10",
		live: f.Set, take: f.Set,
		leave: func() { f.Set(before) },
	}
	q.line.Suggest(before)
	a.ask(q)
}

// Reasons for which an action cannot be done now.

// verified says what came of it.
func (pi *pilot) verified() {
	t := pi.mirror.Trace
	for i := len(t.Events) - 1; i >= 0; i-- {
		if e := &t.Events[i]; e.Kind == string(session.Verify) {
			pi.say(e.Text)
			return
		}
	}
}

// armed says that the next cancel leaves.
func (pi *pilot) armed() bool {
	return !pi.interrupted.IsZero() && widget.Now().Sub(pi.interrupted) < command.Again
}

// disarm has the next cancel stop something: what is there to stop may be another thing than before.
func (pi *pilot) disarm() { pi.interrupted = time.Time{} }
