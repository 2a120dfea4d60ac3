package view_test

import (
	"slices"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/view"
)

// With a baseline, the table and the headline above it are of the same steps: those with the numbers of
// tokens that the baseline has too.
func TestStepsOfASnapshotAreThoseOfItsTable(t *testing.T) {
	t.Parallel()
	tr := tracetest.Run(1, 40, 40, 24, 1)
	for i := range tr.Steps {
		tr.Steps[i].Cold = false
	}
	x, other := analyze.NewIndex(tr), analyze.NewIndex(tracetest.Run(1, 24, 1))
	s := view.Snapshot{Trace: tr, Index: x, Scope: x.Phase(trace.Prefill)}
	if got := s.Of(report.AnySteps).Steps; len(got) != 3 {
		t.Fatalf("without a baseline: steps %v, want all 3 prompts", got)
	}
	name := s.Named(report.AnySteps)
	s.Against = &analyze.Baseline{Index: other, Selection: other.Step(0)}
	got := s.Of(report.AnySteps)
	if !slices.Equal(got.Steps, []int{2}) || s.Named(report.AnySteps) == name {
		t.Errorf("steps %v, named %q; want the prompt of 24 tokens", got.Steps, s.Named(report.AnySteps))
	}
	o := s.Options(report.AnySteps, analyze.GroupNone).Routed(x)
	if !slices.Equal(o.Selection.Steps, got.Steps) {
		t.Errorf("the table has steps %v, the headline %v", o.Selection.Steps, got.Steps)
	}
	s.Against.Default = true
	if got := s.Of(report.AnySteps).Steps; len(got) != 3 {
		t.Errorf("against a baseline that nobody chose: steps %v, want all 3", got)
	}
}
