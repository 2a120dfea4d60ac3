package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gpuscope/session"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// When the engine goes, the screen stays: what was recorded can be read and exported, and another engine can
// be started that stands where the one before stood, or that opens the model where none had yet.

// again is an engine that takes the place of one that has gone.
type again struct {
	starts func(context.Context) openedMsg // opens what is shown
	left   *session.Left                   // by the engine before, until the one that starts has taken it up
	opened bool                            // the engine has said what it runs
	edited []string                        // what ran in place of kernels of the engine before
	died   string                          // what the engine was doing when it went, "" for nothing
	wished time.Time                       // when a restart was asked for of an engine that was there
}

// restarts starts an engine in the place of one that has crashed.
type restarts struct {
	*pilot
	last lastOpened
}

// engineHadCrashed is the note of a restart that a person asked for before the crash was seen.
const engineHadCrashed = "the engine had crashed; restarting it"

// wishFor is for how long after it was asked for too early an engine is started again: who sees that it has
// gone may see it before the screen is told.
const wishFor = 5 * time.Second

func (re *restarts) wishRestart() { re.wished = widget.Now() }

// keepWish starts an engine again that has gone, where somebody asked for that not long ago.
func (re *restarts) keepWish() {
	if re.lost && re.job == nil && widget.Now().Sub(re.wished) < wishFor && re.cannotRestart() == "" {
		re.restart()
		re.say(engineHadCrashed)
	}
}

// start opens what is shown beside the event loop, which hears of a session before it hears from it: of one
// that had ended by then it would take it for the one that was started in its place.
func (re *restarts) start() {
	re.jobs.Runner.Start(func(ctx context.Context) {
		m := re.starts(ctx)
		if m.session != nil {
			re.last.keep(m.session)
		}
		if re.jobs.Runner.Send(m); m.session != nil {
			pump(ctx, re.jobs.Runner, m.session)
		}
	})
}

// restart starts an engine in the place of the one that has gone. What that was asked for has gone with it.
func (re *restarts) restart() {
	re.job, re.queued = nil, nil
	re.lost, re.again.opened, re.session, re.failure, re.wished = false, false, nil, "", time.Time{}
	re.mirror.Progress = session.Progress{}
	if re.mirror.Trace != nil {
		re.left, re.edited = re.mirror.Left(), re.mirror.State.Edited
		re.mirror.Continue()
		re.news = true
	}
	re.start()
}

// cannotRestart says why no engine can be started.
func (m *model) cannotRestart() string {
	switch {
	case m.isTrace:
		return m.needsSession()
	case !m.lost:
		return "the engine is running"
	}
	return ""
}

// restarting says whether an engine starts, or runs the text again, in the place of one that has gone.
func (m *model) restarting() bool { return m.left != nil && !m.lost }

// begin sends what a session begins with, once it is there and has said what it runs: the prompt that the
// program was started with, or what an engine before has left.
func (re *restarts) begin() {
	switch {
	case re.session == nil || !re.again.opened:
	case re.left != nil:
		re.command(session.Command{Kind: session.Resume, Left: re.left})
	default:
		if c := command.First(re.opts.Prompt, re.opts.Chat, re.mirror.Trace); c != nil {
			re.command(*c)
		}
		re.opts.Prompt = ""
	}
}

// ended says why there are no more events.
func (a *App) ended(reason error) {
	a.lost = true
	switch {
	case a.runner.Ctx.Err() != nil:
	case a.mirror.Trace == nil && !errors.Is(reason, session.ErrLost): // the model cannot be opened
		a.opened(openedMsg{err: reason})
	default:
		if a.mirror.Trace == nil {
			a.opening, a.died = reason, "opening the model"
		}
		a.failed(reason)
		a.keepWish()
	}
}

// failed says of an engine that has gone, or that did not start again, what it did last.
func (re *restarts) failed(reason error) {
	if re.job != nil {
		re.died = busyWith[re.job.command.Kind]
	}
	doing := ""
	if re.died != "" {
		doing, re.died = " while "+re.died, ""
	}
	last, keep := "", ""
	if re.mirror.Trace != nil {
		keep = "; {export} exports what was recorded"
	}
	if t := re.mirror.Trace; t != nil && len(t.Steps) > 0 {
		s := &t.Steps[len(t.Steps)-1]
		last = fmt.Sprintf(". Last step: %d, position %d", s.Index, s.Position)
		if n := len(s.Dispatches); n > 0 {
			d := t.Plans[s.Dispatches[n-1].Plan].Dispatch
			last += fmt.Sprintf(", up to dispatch %d (%s)", d, t.Graph.Ops[t.Graph.Dispatches[d].Op].Name)
		}
	}
	format := command.Keyed("the engine crashed%s; {restart} restarts it. %w%s" + keep)
	re.fail(nil, fmt.Errorf(format, doing, reason, last))
}

// resumed says that the engine that was started stands where the one before stood.
func (re *restarts) resumed(r session.Reply, err error) {
	if errors.Is(err, session.ErrClosed) {
		return // ended says it
	}
	if re.left = nil; err != nil {
		return
	}
	said := fmt.Sprintf("the engine is back at position %d", r.Position)
	if len(re.edited) > 0 && re.opts.Shaders == "" { // whose folder the engine has read again
		said += fmt.Sprintf(command.Keyed("; edited kernels are no longer in use, press {use kernel} on the dispatch to use one again: %s"),
			strings.Join(re.edited, ", "))
	}
	re.say(said)
}
