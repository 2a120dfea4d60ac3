package tui

import (
	"cmp"

	"gpuscope/trace/report"
	"gpuscope/tui/command"
)

// Each function below returns why a view or an action is not available now, or "" if the view or the action
// is available.

func (m *model) needsSession() string {
	switch {
	case m.isTrace:
		return command.IsRecorded
	case m.lost:
		return command.Keyed("the engine has crashed; press {restart} to restart it")
	case m.session == nil || m.mirror.Trace == nil:
		return "the model is still loading"
	}
	return ""
}

// nothingRuns is the reason why actions that need a GPU are not available in a session without a device.
const nothingRuns = "no device: steps are planned but not run"

// needsDevice requires a session with a device, so that its steps run.
func (m *model) needsDevice() string {
	if why := m.needsSession(); why != "" {
		return why
	}
	if m.mirror.Trace.Device.None() {
		return nothingRuns
	}
	return ""
}

// needsRun requires a device, and either a current step or a running command that will create one.
func (m *model) needsRun() string { return cmp.Or(m.needsDevice(), m.needsStep()) }

// needsGraph requires a loaded model. It does not require a step.
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
		return command.Keyed("no step is shown; press {previous step} to show the recorded steps")
	}
	return ""
}

// cannotFollow returns the reason that the follow command has no effect now. The command switches between
// following the newest step and staying on the shown step.
func (m *model) cannotFollow() string {
	if m.session == nil || m.follow {
		return m.needsShown()
	}
	return m.needsTrace()
}

// cannotScope returns the reason that changing the selection has no effect in the current view.
func (sel *selection) cannotScope() string {
	if why := sel.needsShown(); why != "" || sel.view().Takes() != report.WholeRun {
		return why
	}
	return sel.row().Name + " always shows the whole run"
}

// needsStep requires a session with a current step, or with a running command that will create one.
func (m *model) needsStep() string {
	if why := m.needsSession(); why != "" {
		return why
	}
	if m.mirror.State.Step < 0 && m.job == nil {
		return "the text is before its first step; run a step first"
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
		return command.Keyed("the text is complete; press {back} to go back, or {prompt} for a new prompt")
	case len(m.mirror.Text.Prompt) == 0 && m.mirror.State.Position == 0 && m.job == nil:
		return command.Keyed("there is no text yet; press {prompt} to type a prompt")
	}
	return ""
}

// cannotRun returns the reason that a run cannot be started or paused. While a command is running, only a
// session is required.
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

// cannotTarget returns the reason that the "run to" command is not available. In a trace, this command shows
// the step at a position instead of running.
func (m *model) cannotTarget() string {
	if m.isTrace {
		return m.needsTrace()
	}
	if m.mirror.Trace != nil && m.mirror.Trace.Device.None() { // planning needs no text
		return m.needsSession()
	}
	return m.cannotRun()
}

// needsText requires a prompt, so that there is text to edit.
func (m *model) needsText() string {
	if why := m.needsSession(); why != "" {
		return why
	}
	if len(m.mirror.Text.Prompt) == 0 {
		return command.Keyed("there is no text yet; press {prompt} to type a prompt")
	}
	return ""
}

// lacks returns the reason that a requirement is not met, or "" if the requirement is met.
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
