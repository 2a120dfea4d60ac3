package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"gpuscope/session"
	"gpuscope/trace/inspect"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

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
func (a *App) command(c session.Command) {
	if a.job != nil {
		a.queued = &c
		if slices.Contains(yielding, a.job.command.Kind) {
			a.stopJob()
		}
		return
	}
	a.mirror.Progress = session.Progress{} // what was said before is of another command
	if !slices.Contains(still, c.Kind) {
		a.follow, a.hit = true, nil
	}
	a.commands++
	ctx, cancel := context.WithCancel(a.runner.Ctx)
	j := &job{id: a.commands, command: c, cancel: cancel}
	a.job = j
	s := a.session
	a.runner.Start(func(context.Context) {
		defer cancel()
		reply, err := s.Do(ctx, c)
		a.runner.Send(doneMsg{j.id, reply, err})
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
		a.triedText(j.command, m)
	case j.command.Kind == session.Kernel && m.err == nil:
		a.usedText(j.command)
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
func (a *App) unobserved() bool {
	t := a.mirror.Trace
	if t == nil || len(t.Steps) == 0 || a.lost || a.mirror.State.Upto != nil {
		return false
	}
	s := &t.Steps[len(t.Steps)-1]
	if s.Timing != "dispatch" || s.Phase != "decode" || s.Index != a.mirror.State.Step {
		return false
	}
	o := t.Observer
	return o == nil || o.Step != nil && s.Index-*o.Step >= observedFor
}

func (a *App) stopJob() {
	a.job.cancelled = true
	a.job.cancel()
}

// stop cancels what runs and what waits, and says whether there was anything.
func (a *App) stop() bool {
	a.queued = nil
	if a.job == nil {
		return false
	}
	a.stopJob()
	return true
}

// ceilings measures the device.
func (a *App) ceilings() { a.command(session.Command{Kind: session.Ceilings}) }

// goOn sends a command that brings another step, which is then what a person sees.
func (a *App) goOn(c session.Command) {
	if left := a.leaveScope(); left != "" {
		a.say(left)
	}
	a.command(c)
}

func (a *App) next() {
	if a.session == nil {
		a.showStep(1)
		return
	}
	a.goOn(session.Command{Kind: session.Next})
}

func (a *App) back() {
	if a.session == nil {
		a.showStep(-1)
		return
	}
	a.goOn(session.Command{Kind: session.Previous})
}

// running says whether a run is on its way.
func (a *App) running() bool { return a.job != nil && a.job.command.Kind == session.Run }

// pauses is what runPause does to a run.
func pauses(a *App) string {
	if a.running() {
		return "pause"
	}
	return ""
}

func (a *App) runPause() {
	if a.running() {
		a.stop()
		return
	}
	a.settle()
	a.command(a.breaks.Runs(session.Command{Kind: session.Run}))
}

func (a *App) reset() { a.goOn(session.Command{Kind: session.Reset}) }

func (a *App) toggleFollow() {
	if follow := !a.follow && a.session != nil; follow {
		a.lookAt(a.stepOfState(), "following the newest step")
		a.follow = true
		if a.running() {
			a.settle()
		}
	} else {
		a.lookAt(a.at(), fmt.Sprintf("staying on step %d", a.shownIndex()))
	}
}

// nextEvent shows the next step at which something happened, or the one before, and says what. In a list the
// dispatch that it happened to is selected.
func (a *App) nextEvent(by int) {
	events := a.happened.Value
	if !a.happened.Has {
		a.remark("still looking for what happened")
		return
	}
	what := "nothing happened "
	if has := a.view().Has(); has != nil {
		what = "no grid changed "
		events = slices.DeleteFunc(slices.Clone(events), func(e inspect.Event) bool { return !has(e) })
	}
	i := sort.Search(len(events), func(i int) bool { return events[i].Step > a.at() })
	if by < 0 {
		i = sort.Search(len(events), func(i int) bool { return events[i].Step >= a.at() }) - 1
	}
	if i < 0 || i >= len(events) {
		where := map[int]string{-1: "before", 1: "after"}[by]
		a.remark(what + where + " this step")
		return
	}
	at := events[i].Step
	s := &a.index.Trace.Steps[at]
	var said []string
	for _, e := range events {
		if e.Step != at {
			continue
		}
		said = append(said, e.Text)
		if rows := a.view().Pane(); rows != nil && e.Dispatch != nil {
			rows.Seek(*e.Dispatch)
		}
	}
	a.lookAt(at, fmt.Sprintf("s%d pos %d: %s", s.Index, s.Position, strings.Join(said, " · ")))
}

// lookAt shows a recorded step, and that alone: whatever tables spoke of, they speak of this step now. It
// says what there is to say of it.
func (a *App) lookAt(step int, words ...string) {
	a.follow = false
	said := widget.Joined(" · ", append([]string{a.leaveScope()}, words...)...)
	if step != a.shown {
		a.shown = step
		a.version++
	}
	if said != "" {
		a.say(said)
	}
}

// showStep shows the recorded step so many further on.
func (a *App) showStep(by int) {
	at, last := a.at(), len(a.index.Trace.Steps)-1
	words := ""
	if by < 0 && at == 0 || by > 0 && at == last {
		words = fmt.Sprintf("step %d is the %s that was recorded", a.shownIndex(), end(by))
	}
	a.lookAt(widget.Clamp(at+by, 0, last), words)
}

// end is the word for where the steps end, forwards or back.
func end(by int) string {
	if by < 0 {
		return "first"
	}
	return "last"
}

// shownIndex is the number of the shown step.
func (a *App) shownIndex() int {
	if s := a.step(); s != nil {
		return s.Index
	}
	return -1
}

func (a *App) askPrompt() {
	label := "prompt"
	if a.opts.Chat {
		label = "your turn"
	}
	a.ask(&question{label: label, take: func(s string) { a.goOn(command.Prompt(s, a.opts.Chat)) }})
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
func (a *App) verified() {
	t := a.mirror.Trace
	for i := len(t.Events) - 1; i >= 0; i-- {
		if e := &t.Events[i]; e.Kind == string(session.Verify) {
			a.say(e.Text)
			return
		}
	}
}
