package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"gpuscope/model/session"
)

// repeats is how many samples one press of R adds.
const repeats = 10

// still are the commands that leave the text and its position as they are.
var still = []session.CommandKind{
	session.Timing, session.Ceilings, session.Chunk, session.Repeat, session.Tokenize, session.Look,
	session.Cost, session.Observe, session.TimeOp, session.Verify,
}

// yielding are the commands that nobody waits for the end of: another one stops them.
var yielding = []session.CommandKind{session.Run, session.Observe, session.Cost, session.Verify}

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
	ctx, cancel := context.WithCancel(a.runner.ctx)
	j := &job{id: a.commands, command: c, cancel: cancel}
	a.job = j
	s := a.session
	a.runner.start(func(context.Context) {
		defer cancel()
		reply, err := s.Do(ctx, c)
		a.runner.send(doneMsg{j.id, reply, err})
	})
}

func (a *App) done(m doneMsg) {
	if a.job == nil || a.job.id != m.id {
		return
	}
	j := a.job
	a.job = nil
	a.jobs.commands++ // what it brought is what is to be seen now
	a.version++
	if j.command.Kind == session.Resume {
		a.resumed(m.reply, m.err)
	}
	if errors.Is(m.err, session.ErrClosed) { // ended says why
		a.died, a.queued = busyWith[j.command.Kind], nil
		return
	}
	if m.err != nil && !(j.cancelled && errors.Is(m.err, context.Canceled)) {
		a.refused(j.command, m.err)
		a.queued = nil
	}
	if m.err == nil {
		a.mended(j.command.Kind)
	}
	if j.command.Kind == session.Verify && m.err == nil {
		a.verified()
	}
	if m.reply.Hit != nil {
		a.paused(m.reply.Hit)
		a.queued = nil
	}
	if c := a.queued; c != nil {
		a.queued = nil
		a.command(*c)
	} else if j.command.Kind == session.Run && m.reply.Steps > 0 && a.unobserved() {
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

func (a *App) next() {
	if a.session == nil {
		a.showStep(1)
		return
	}
	a.unsettle()
	a.command(session.Command{Kind: session.Next})
}

func (a *App) back() {
	if a.session == nil {
		a.showStep(-1)
		return
	}
	a.unsettle()
	a.command(session.Command{Kind: session.Previous})
}

func (a *App) runPause() {
	if a.job != nil && a.job.command.Kind == session.Run {
		a.stop()
		return
	}
	a.settle()
	a.command(a.breaks.runs(session.Command{Kind: session.Run}))
}

func (a *App) reset() { a.command(session.Command{Kind: session.Reset}) }

func (a *App) toggleFollow() {
	a.follow = !a.follow
	if a.follow && a.session != nil {
		a.showIndex(a.stepOfState())
		a.follow = true
		a.say("following the newest step")
	} else {
		a.say(fmt.Sprintf("staying on step %d", a.shownIndex()))
	}
}

// nextEvent shows the next step at which something happened, or the one before, and says what. In a list the
// dispatch that it happened to is selected.
func (a *App) nextEvent(by int) {
	events := a.happened.value
	if !a.happened.has {
		a.remark("still looking for what happened")
		return
	}
	i := sort.Search(len(events), func(i int) bool { return events[i].Step > a.shown })
	if by < 0 {
		i = sort.Search(len(events), func(i int) bool { return events[i].Step >= a.shown }) - 1
	}
	if i < 0 || i >= len(events) {
		where := map[int]string{-1: "before", 1: "after"}[by]
		a.remark("nothing happened " + where + " this step")
		return
	}
	at := events[i].Step
	a.showStep(at - a.shown)
	s := a.step()
	var said []string
	for _, e := range events {
		if e.Step != at {
			continue
		}
		said = append(said, e.Text)
		if l, ok := a.view().(lister); ok && e.Dispatch != nil {
			l.pane().seek(*e.Dispatch)
		}
	}
	a.say(fmt.Sprintf("s%d pos %d: %s", s.Index, s.Position, strings.Join(said, " · ")))
}

// showStep shows the recorded step so many further on.
func (a *App) showStep(by int) {
	a.follow = false
	a.unsettle()
	last := len(a.index.Trace.Steps) - 1
	said := func(by int) string {
		return fmt.Sprintf("step %d is the %s that was recorded", a.shownIndex(), end(by))
	}
	switch at := by < 0 && a.shown == 0 || by > 0 && a.shown == last; {
	case !at:
		a.unsay(said(-1), said(1))
	case a.note != said(by): // a key that is held says it once
		a.say(said(by))
	}
	a.showIndex(clamp(a.shown+by, 0, last))
}

// end is the word for where the steps end, forwards or back.
func end(by int) string {
	if by < 0 {
		return "first"
	}
	return "last"
}

func (a *App) showIndex(i int) {
	if i != a.shown {
		a.shown = i
		a.version++
	}
}

// shownIndex is the number of the shown step.
func (a *App) shownIndex() int {
	if a.shown < 0 {
		return -1
	}
	return a.index.Trace.Steps[a.shown].Index
}

func (a *App) askPrompt() {
	label := "prompt"
	if a.opts.Chat {
		label = "your turn"
	}
	a.ask(&question{label: label, take: func(s string) { a.command(a.opts.says(s)) }})
}

func (a *App) askFilter() {
	f, ok := a.view().(filterer)
	if !ok {
		return
	}
	before := f.filtered()
	q := &question{
		label: "filter", live: f.setFilter, take: f.setFilter,
		leave: func() { f.setFilter(before) },
	}
	q.line.suggest(before)
	a.ask(q)
}

// Reasons for which an action cannot be done now.
