package tui

import (
	"gpuscope/session"
	"gpuscope/trace/inspect"
)

// verifyRows holds the dispatches of the marked rows, or of the selected one, to their references.
func (a *App) verifyRows() {
	parts, step := a.view().(coster).parts(true)
	if len(parts) == 0 {
		a.remark("the marked rows are not in this table")
		return
	}
	a.verify(step.Index, inspect.Together(parts))
}

// verifyStep holds all dispatches of the step to the references, and to a reference run of the text.
func (a *App) verifyStep() {
	_, step := a.view().(coster).parts(true)
	a.verify(step.Index)
}

func (a *App) verify(step int, parts ...inspect.Part) {
	c := session.Command{Kind: session.Verify}
	if step != a.mirror.State.Step {
		c.Step = &step
	}
	for _, p := range parts {
		c.Parts = append(c.Parts, session.Part(p))
	}
	a.command(c)
}

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
