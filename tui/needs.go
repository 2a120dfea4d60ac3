package tui

import (
	"cmp"

	"gpuscope/trace/report"
	"gpuscope/tui/command"
)

// Why something cannot be done now, "" where it can: of views, and of actions.

func (m *model) needsSession() string {
	switch {
	case m.isTrace:
		return command.IsRecorded
	case m.lost:
		return command.Keyed("the engine has crashed; {restart} restarts it")
	case m.session == nil || m.mirror.Trace == nil:
		return "the model is still loading"
	}
	return ""
}

// nothingRuns is why what needs a GPU is refused without one.
const nothingRuns = "no device: steps are planned, not run"

// needsDevice wants a session whose steps run.
func (m *model) needsDevice() string {
	if why := m.needsSession(); why != "" {
		return why
	}
	if m.mirror.Trace.Device.None() {
		return nothingRuns
	}
	return ""
}

// needsRun wants a step that has run and that the session stands at, or is about to.
func (m *model) needsRun() string { return cmp.Or(m.needsDevice(), m.needsStep()) }

// needsGraph is content with what is known before the first step.
func (m *model) needsGraph() string {
	if m.mirror.Trace == nil {
		return "the model is still loading"
	}
	return ""
}

func (m *model) needsTrace() string {
	if m.mirror.Trace == nil {
		return "the model is still loading"
	}
	if len(m.index.Trace.Steps) == 0 {
		return "no step has run yet"
	}
	return ""
}

func (m *model) needsShown() string {
	if why := m.needsTrace(); why != "" {
		return why
	}
	if m.at() < 0 {
		return command.Keyed("no step is shown; {previous step} shows the recorded ones")
	}
	return ""
}

// cannotFollow lets a step be stayed on where one is shown.
func (m *model) cannotFollow() string {
	if m.session == nil || m.follow {
		return m.needsShown()
	}
	return m.needsTrace()
}

// cannotScope says why the scope is of no account in a view.
func (sel *selection) cannotScope() string {
	if why := sel.needsShown(); why != "" || sel.view().Takes() != report.WholeRun {
		return why
	}
	return sel.row().Name + " always shows the whole run"
}

// needsStep wants a step that the session stands at, or is about to.
func (m *model) needsStep() string {
	if why := m.needsSession(); why != "" {
		return why
	}
	if m.mirror.State.Step < 0 && m.job == nil {
		return "no step has run yet"
	}
	return ""
}

func (m *model) cannotNext() string {
	if m.isTrace {
		return m.needsTrace()
	}
	if why := m.needsSession(); why != "" {
		return why
	}
	switch {
	case m.mirror.State.Ended:
		return command.Keyed("the text is complete: {back} goes back, {prompt} types a new prompt")
	case len(m.mirror.Text.Prompt) == 0 && m.mirror.State.Position == 0 && m.job == nil:
		return command.Keyed("there is no text yet: {prompt} types a prompt")
	}
	return ""
}

// cannotRun lets a run be paused whatever else is.
func (m *model) cannotRun() string {
	if m.job != nil {
		return m.needsSession()
	}
	if m.isTrace {
		return m.needsSession()
	}
	return m.cannotNext()
}

func (m *model) cannotBack() string {
	if m.isTrace {
		return m.needsTrace()
	}
	return m.needsStep()
}

// cannotTarget is content with a trace, in which a position can be shown.
func (m *model) cannotTarget() string {
	if m.isTrace {
		return m.needsTrace()
	}
	if m.mirror.Trace != nil && m.mirror.Trace.Device.None() { // any step can be planned
		return m.needsSession()
	}
	return m.cannotRun()
}

// needsText wants a text to edit.
func (m *model) needsText() string {
	if why := m.needsSession(); why != "" {
		return why
	}
	if len(m.mirror.Text.Prompt) == 0 {
		return command.Keyed("there is no text yet: {prompt} types a prompt")
	}
	return ""
}

// lacks says why what a command or a view needs is not there, "" where it is.
func (a *App) lacks(n command.Needs) string {
	switch n {
	case command.Opened:
		return a.needsGraph()
	case command.Steps:
		return a.needsTrace()
	case command.Shown:
		return a.needsShown()
	case command.View:
		return a.empty()
	case command.Rows:
		return a.noRows()
	case command.Session:
		return a.needsSession()
	case command.Text:
		return a.needsText()
	case command.Device:
		return a.needsDevice()
	case command.Run:
		return a.needsRun()
	}
	return ""
}
