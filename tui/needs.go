package tui

import (
	"cmp"

	"gpuscope/trace/inspect"
	"gpuscope/tui/command"
)

// Why something cannot be done now, "" where it can: of views, and of actions.

func needsSession(a *App) string {
	switch {
	case a.isTrace:
		return command.IsRecorded
	case a.lost:
		return command.Keyed("the engine has gone; {restart} starts it again")
	case a.session == nil || a.mirror.Trace == nil:
		return "the model is still loading"
	}
	return ""
}

// nothingRuns is why what needs a GPU is refused without one.
const nothingRuns = "there is no device: steps are planned, and nothing runs"

// needsDevice wants a session whose steps run.
func needsDevice(a *App) string {
	if why := needsSession(a); why != "" {
		return why
	}
	if a.mirror.Trace.Device.None() {
		return nothingRuns
	}
	return ""
}

// needsRun wants a step that has run and that the session stands at, or is about to.
func needsRun(a *App) string { return cmp.Or(needsDevice(a), needsStep(a)) }

// needsGraph is content with what is known before the first step.
func needsGraph(a *App) string {
	if a.mirror.Trace == nil {
		return "nothing is open yet"
	}
	return ""
}

func needsTrace(a *App) string {
	if a.mirror.Trace == nil {
		return "nothing is open yet"
	}
	if len(a.index.Trace.Steps) == 0 {
		return "no step was run yet"
	}
	return ""
}

func needsShown(a *App) string {
	if why := needsTrace(a); why != "" {
		return why
	}
	if a.at() < 0 {
		return command.Keyed("no step is shown; {step before} shows those that were recorded")
	}
	return ""
}

// cannotFollow lets a step be stayed on where one is shown.
func cannotFollow(a *App) string {
	if a.session == nil || a.follow {
		return needsShown(a)
	}
	return needsTrace(a)
}

// cannotScope says why the scope is of no account in a view.
func cannotScope(a *App) string {
	if why := needsShown(a); why != "" || a.view().Takes() != inspect.WholeRun {
		return why
	}
	return a.row().Name + " draws the whole run, whatever the scope"
}

// needsStep wants a step that the session stands at, or is about to.
func needsStep(a *App) string {
	if why := needsSession(a); why != "" {
		return why
	}
	if a.mirror.State.Step < 0 && a.job == nil {
		return "the model stands before the first step"
	}
	return ""
}

func cannotNext(a *App) string {
	if a.isTrace {
		return needsTrace(a)
	}
	if why := needsSession(a); why != "" {
		return why
	}
	switch {
	case a.mirror.State.Ended:
		return command.Keyed("the text has ended: {back} goes back, {prompt} types a new prompt")
	case len(a.mirror.Text.Prompt) == 0 && a.mirror.State.Position == 0 && a.job == nil:
		return command.Keyed("there is no text yet: {prompt} types a prompt")
	}
	return ""
}

// cannotRun lets a run be paused whatever else is.
func cannotRun(a *App) string {
	if a.job != nil {
		return needsSession(a)
	}
	if a.isTrace {
		return needsSession(a)
	}
	return cannotNext(a)
}

func cannotBack(a *App) string {
	if a.isTrace {
		return needsTrace(a)
	}
	return needsStep(a)
}

// cannotTarget is content with a trace, in which a position can be shown.
func cannotTarget(a *App) string {
	if a.isTrace {
		return needsTrace(a)
	}
	if a.mirror.Trace != nil && a.mirror.Trace.Device.None() { // any step can be planned
		return needsSession(a)
	}
	return cannotRun(a)
}

// needsText wants a text to edit.
func needsText(a *App) string {
	if why := needsSession(a); why != "" {
		return why
	}
	if len(a.mirror.Text.Prompt) == 0 {
		return command.Keyed("there is no text yet: {prompt} types a prompt")
	}
	return ""
}

// lacks says why what a command or a view needs is not there, "" where it is.
func (a *App) lacks(n command.Needs) string {
	switch n {
	case command.Opened:
		return needsGraph(a)
	case command.Steps:
		return needsTrace(a)
	case command.Shown:
		return needsShown(a)
	case command.View:
		return a.empty()
	case command.Rows:
		return noRows(a)
	case command.Session:
		return needsSession(a)
	case command.Text:
		return needsText(a)
	case command.Device:
		return needsDevice(a)
	case command.Run:
		return needsRun(a)
	}
	return ""
}
