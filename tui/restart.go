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

// When the engine crashes, the screen stays open: the recorded steps can be read and exported. The user can
// start a new engine, which opens the model and resumes at the crashed engine's position.

// again holds the state needed to replace a crashed engine.
type again struct {
	starts func(context.Context) openedMsg // opens the session or trace
	left   *session.Left                   // state of the crashed engine; nil once restored
	opened bool                            // the engine has reported the model that it runs
	edited []string                        // edited kernels that the crashed engine used
	died   string                          // what the engine was doing when it crashed; "" if it was idle
	wished time.Time                       // when the user last asked for a restart while no crash was known
}

// restarts starts a new engine after a crash.
type restarts struct {
	*pilot
	last lastOpened
}

// engineHadCrashed is the note after a restart that the user requested before the program detected the crash.
const engineHadCrashed = "the engine had crashed; a new one is starting"

// wishFor is how long the program remembers a request for a restart, because the user may notice a crash
// before the program does.
const wishFor = 5 * time.Second

func (re *restarts) wishRestart() { re.wished = widget.Now() }

// keepWish is called when a crash is detected. It restarts the engine if the user requested a restart within
// the last wishFor.
func (re *restarts) keepWish() {
	if re.lost && re.job == nil && widget.Now().Sub(re.wished) < wishFor && re.cannotRestart() == "" {
		re.restart()
		re.say(engineHadCrashed)
	}
}

// start opens the session or trace in the background. It sends openedMsg before it reads the session's
// events, so that App cannot mistake the end of the crashed session for the end of the new session.
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

// restart starts a new engine. It drops the running and the waiting command.
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

// cannotRestart returns the reason that no engine can be started, or "" if one can.
func (m *model) cannotRestart() string {
	switch {
	case m.isTrace:
		return m.needsSession()
	case !m.lost:
		return "the engine is running"
	}
	return ""
}

// restarting reports whether, after a crash, a new engine is starting or is running the text again.
func (m *model) restarting() bool { return m.left != nil && !m.lost }

// begin sends the first command of a session, once the session is open and has reported its model. After a
// crash, this command resumes the text of the crashed engine; otherwise it is the user's first prompt.
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

// ended handles the end of the event stream and reports the reason.
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

// failed shows the error of an engine that crashed or failed to restart, and the last step that the engine
// ran.
func (re *restarts) failed(reason error) {
	if re.job != nil {
		re.died = command.BusyWith[re.job.command.Kind]
	}
	doing := ""
	if re.died != "" {
		doing, re.died = " while "+re.died, ""
	}
	last, keep := "", ""
	if re.mirror.Trace != nil {
		keep = "; press {export} to export the recorded steps"
	}
	if t := re.mirror.Trace; t != nil && len(t.Steps) > 0 {
		s := &t.Steps[len(t.Steps)-1]
		last = fmt.Sprintf(". Last step: %d, position %d", s.Index, s.Position)
		if n := len(s.Dispatches); n > 0 {
			d := t.Plans[s.Dispatches[n-1].Plan].Dispatch
			last += fmt.Sprintf(", up to dispatch %d (%s)", d, t.Graph.Ops[t.Graph.Dispatches[d].Op].Name)
		}
	}
	format := command.Keyed("the engine crashed%s; press {restart} to restart it. %w%s" + keep)
	re.fail(nil, fmt.Errorf(format, doing, reason, last))
}

// resumed tells the user that the new engine has reached the state of the crashed one.
func (re *restarts) resumed(r session.Reply, err error) {
	if errors.Is(err, session.ErrClosed) {
		return // App.ended reports this crash
	}
	if re.left = nil; err != nil {
		return
	}
	said := fmt.Sprintf("the engine was restarted at position %d", r.Position)
	if len(re.edited) > 0 && re.opts.Shaders == "" { // the new engine also uses --shaders
		said += fmt.Sprintf(command.Keyed("; it does not use these edited kernels anymore (to use one again, press {use kernel} on its dispatch): %s"),
			strings.Join(re.edited, ", "))
	}
	re.report(said)
}
