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

// SameKind is the steps of the phase that a scope begins with in another trace, nil where that has none.
func SameKind(file *analyze.Index, path string, x *analyze.Index, to analyze.Selection) *analyze.Baseline {
	s := file.Phase(x.Trace.Steps[to.Steps[0]].Phase)
	if len(s.Steps) == 0 {
		return nil
	}
	s.Name, s.Which, s.Chunk = filepath.Base(path)+" "+s.Called(), "", ""
	return &analyze.Baseline{Index: file, Selection: s}
}

// ReadBase reads a trace that tables are to be compared with.
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

// Part is the part of a scope that is spoken of where so many steps are taken: where one is, the last, and
// where times are summed up, those on the routes of the last.
func Part(x *analyze.Index, s analyze.Selection, takes report.Takes) analyze.Selection {
	switch _, one := s.One(); {
	case takes == report.OneStep && !one:
		return x.Step(s.Last())
	case takes == report.AnySteps:
		return x.Routed(s)
	}
	return s
}
