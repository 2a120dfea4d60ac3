package view

import (
	"context"
	"fmt"
	"slices"

	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/report"
	"gpuscope/trace/report/advice"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// Answer says what the user should fix first in the steps that a view covers, and how much time this saves.
type Answer struct {
	headline *headline.Headline
	Tree     *analyze.DispatchTree // the dispatches of the steps, grouped by layer
	lines    []string              // the headline in several lengths, longest first
}

// AnswerOf computes the answer for the steps that a view with the given Takes shows.
func AnswerOf(ctx context.Context, s Snapshot, takes report.Takes) (*Answer, error) {
	selection := s.Of(takes)
	if len(selection.Steps) == 0 {
		return nil, nil
	}
	t, err := s.Index.DispatchTree(ctx, analyze.Options{Selection: selection, Grouping: analyze.GroupLayer})
	if err != nil {
		return nil, err
	}
	a := &Answer{headline: headline.OfTree(t), Tree: t}
	for _, line := range advice.Lines(a.headline) {
		a.lines = append(a.lines, printable.Clean(line)) // names come from the model
	}
	return a, nil
}

// Costed reports whether the answer is based on measured costs.
func (a *Answer) Costed() bool { return a != nil && a.headline.Basis == headline.Costs }

// Draw returns the line above a table, at most w cells wide. Without costs, the line says how to measure
// costs. Draw returns "" if there is no answer.
func (a *Answer) Draw(t *widget.Theme, s Snapshot, w int) string {
	g := s.Progress
	switch {
	case s.Running && g.Phase == "measure costs" && g.Done < g.Total:
		return t.Put(widget.Accent, " "+widget.Cut("Measuring costs: "+g.Percent()+
			command.Keyed(". {back out} stops and keeps the results."), w-2))
	case a == nil || s.Running && !a.Costed():
		return ""
	case a.Costed():
		return t.Put(widget.Strong, " "+widget.FirstThatFits(w-2, a.lines...))
	case s.Live && !s.Index.Trace.Device.None():
		return t.Put(widget.Accent, " "+widget.FirstThatFits(w-2, a.ask(s)...))
	case a.headline.First == nil || s.Index.Trace.Device.None():
		return ""
	}
	return t.Put(widget.Dim, " "+widget.FirstThatFits(w-2, a.lines...))
}

// ask says how to find out what to fix first, in several lengths, the longest first.
func (a *Answer) ask(s Snapshot) []string {
	said, how := "What to fix first is not known yet: ", "{cost} measures what each row costs"
	switch a.headline.Why {
	case headline.FewRounds:
		how = "{cost} measures more rounds"
	case headline.NotSignificant:
		said, how = "No row costs more than the noise yet: ", "{cost} measures more rounds"
	case headline.NoSaving:
		said, how = "No row could save more than the noise yet: ", "{cost} measures more rounds"
	}
	most := fmt.Sprintf(" (at most %.0f s).", session.CostBudget(s.Index.Trace.Device.Software()).Seconds())
	said, how = command.Keyed(said), command.Keyed(how)
	return []string{said + how + most, said + how + ".", how + most}
}

// answerKey identifies an answer by a version of the data and the covered steps.
type answerKey struct {
	version int
	name    string
}

// AnswerTask computes the answer in a job.
type AnswerTask = widget.Task[answerKey, *Answer]

// WantAnswer requests the answer for a view with the given Takes.
func WantAnswer(a *AnswerTask, j *widget.Jobs, s Snapshot, takes report.Takes) {
	if s.Step < 0 || s.Trace == nil {
		a.Clear(j)
		return
	}
	a.Want(j, answerKey{s.Version, s.Named(takes)},
		func(ctx context.Context) (*Answer, error) { return AnswerOf(ctx, s, takes) }, nil)
}

// WithoutFirst removes from a title the segments that repeat the headline.
func WithoutFirst(t *report.DispatchTable, title []table.Segment) []table.Segment {
	first := t.FixFirst()
	said := func(s table.Segment) bool { return slices.Contains(first, s) }
	return slices.DeleteFunc(slices.Clone(title), said)
}

// Measure sends the session a measuring command about parts of a step.
func Measure(h Host, s Snapshot, kind session.CommandKind, step *trace.Step, parts []trace.Part) {
	c := session.Command{Kind: kind, Parts: parts}
	if step.Index != s.State.Step {
		c.Step = &step.Index
	}
	h.Do(c)
}
