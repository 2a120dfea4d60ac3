package view

import (
	"context"

	"gpuscope/internal/printable"
	"gpuscope/trace/report/comparison"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// Outcome says what changed between the user's baseline and the selected steps: by how much a step became
// faster or slower, and where.
type Outcome struct {
	lines []string // in several lengths, longest first
	paint widget.Paint
}

// outcomeKey identifies an outcome by a version of the data and the selected steps.
type outcomeKey struct {
	SummaryKey
	name string
}

// OutcomeTask computes the outcome in a job.
type OutcomeTask = widget.Task[outcomeKey, *Outcome]

// WantOutcome requests the outcome. If the user chose no baseline, or while steps run, it instead removes the
// outcome.
func WantOutcome(o *OutcomeTask, j *widget.Jobs, s Snapshot) {
	if s.Step < 0 || s.Running || !s.Against.Chosen() {
		o.Clear(j)
		return
	}
	o.Want(j, outcomeKey{SummaryKey{s.Version, s.Step}, s.Scope.Name},
		func(ctx context.Context) (*Outcome, error) { return outcomeOf(ctx, s) }, nil)
}

// outcomeOf compares the selected steps with their baseline.
func outcomeOf(ctx context.Context, s Snapshot) (*Outcome, error) {
	d, err := command.Compare(ctx, s.Index, s.Scope, s.Against)
	if err != nil {
		return nil, err
	}
	o := &Outcome{paint: widget.Strong}
	if t := d.Step(); t != nil && t.Times.Significant {
		if o.paint = widget.Good; t.Times.DeltaNS > 0 {
			o.paint = widget.Bad
		}
	}
	for _, line := range comparison.Outcome(d) {
		o.lines = append(o.lines, printable.Clean(line)) // names come from the model
	}
	return o, nil
}

// Draw returns the line with the outcome, at most w cells wide, or "" if there is none.
func (o *Outcome) Draw(t *widget.Theme, w int) string {
	if o == nil {
		return ""
	}
	return t.Put(o.paint, " "+widget.FirstThatFits(w-2, o.lines...))
}
