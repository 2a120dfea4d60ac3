package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
)

// SameKind returns a baseline from another trace, `file`: all steps of `file` with the same phase as the
// first selected step. It returns nil if `file` has no such steps.
func SameKind(file *analyze.Index, path string, x *analyze.Index, to analyze.Selection) *analyze.Baseline {
	s := file.Phase(x.Trace.Steps[to.Steps[0]].Phase)
	if len(s.Steps) == 0 {
		return nil
	}
	s.Name, s.Which, s.Chunk = filepath.Base(path)+" "+s.Called(), "", ""
	return &analyze.Baseline{Index: file, Selection: s}
}

// ReadBase reads a baseline trace. It returns an error if the trace has no steps.
func ReadBase(ctx context.Context, path string) (*analyze.Index, error) {
	t, err := trace.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	if len(t.Steps) == 0 {
		return nil, errors.New("baseline: " + path + " has no steps to compare with")
	}
	return analyze.NewIndex(t), ctx.Err()
}

// Part returns those steps of a selection that a table or view uses. A table of one step uses the last step
// of the selection. A table that sums times over steps uses only the steps that took the same routes as the
// last step.
func Part(x *analyze.Index, s analyze.Selection, takes report.Takes) analyze.Selection {
	switch _, one := s.One(); {
	case takes == report.OneStep && !one:
		return x.Step(s.Last())
	case takes == report.AnySteps:
		return x.Routed(s)
	}
	return s
}
