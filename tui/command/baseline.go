package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/report"
)

// SameKind returns a baseline from another trace, `file`: all steps of `file` with the same phase as the
// selected steps, or all steps if these have several phases. It returns nil if `file` has no such steps.
func SameKind(file *analyze.Index, path string, x *analyze.Index, to analyze.Selection) *analyze.Baseline {
	phase := x.Trace.Steps[to.Steps[0]].Phase
	s := file.Phase(phase)
	if slices.ContainsFunc(to.Steps, func(i int) bool { return x.Trace.Steps[i].Phase != phase }) {
		s = file.All()
	}
	if len(s.Steps) == 0 {
		return nil
	}
	s.Name, s.Which, s.Chunk = filepath.Base(path)+" "+s.Called(), "", ""
	return &analyze.Baseline{Index: file, Selection: s}
}

// Compare compares a selection with its baseline. One step has too few times to know whether it differs from
// another run, so the steps of its phase that took the same routes are compared instead.
func Compare(ctx context.Context, x *analyze.Index, s analyze.Selection, b *analyze.Baseline) (*diff.Diff,
	error,
) {
	if step, one := s.One(); one && b.Index != x {
		s = x.Phase(x.Trace.Steps[step].Phase)
		// diff.Of keeps the routes of the last step: if the step took others, it must be the last.
		if at, warm := slices.BinarySearch(s.Steps, step); warm && !slices.Contains(x.Routed(s).Steps, step) {
			s.Steps = s.Steps[:at+1]
		}
	}
	return diff.Of(ctx, diff.Side{Index: b.Index, Selection: b.Selection}, diff.Side{Index: x, Selection: s})
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
// of the selection. A table that sums times over steps uses the steps that analyze.Options.Routed keeps. The
// baseline may be nil.
func Part(
	x *analyze.Index, s analyze.Selection, baseline *analyze.Baseline, takes report.Takes,
) analyze.Selection {
	switch _, one := s.One(); {
	case len(s.Steps) == 0:
	case takes == report.OneStep && !one:
		return x.Step(s.Last())
	case takes == report.AnySteps:
		return analyze.Options{Selection: s, Baseline: baseline}.Routed(x).Selection
	}
	return s
}

// mostTraces is the maximum number of paths that Traces returns.
const mostTraces = 100

// Traces returns the paths that begin with `typed`: first those of traces, the newest first, and then those
// of folders. If `typed` is empty, Traces lists the current folder. `except` is the path of the shown
// trace, which is left out, or "" if there is none.
func Traces(ctx context.Context, typed, except string) ([]string, error) {
	folder, prefix := filepath.Split(typed)
	entries, err := os.ReadDir(cmp.Or(Expand(folder), "."))
	if err != nil {
		return nil, err
	}
	type found struct {
		path    string
		written time.Time
	}
	var traces []found
	var folders []string
	shown, _ := os.Stat(except)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := e.Name()
		if !strings.HasPrefix(name, prefix) || prefix == "" && strings.HasPrefix(name, ".") {
			continue
		}
		if e.IsDir() {
			folders = append(folders, folder+name+string(filepath.Separator))
			continue
		}
		if info, err := e.Info(); err == nil && trace.HasTraceName(name) && !os.SameFile(info, shown) {
			traces = append(traces, found{folder + name, info.ModTime()})
		}
	}
	slices.SortStableFunc(traces, func(a, b found) int { return b.written.Compare(a.written) })
	var paths []string
	for _, f := range traces {
		paths = append(paths, f.path)
	}
	paths = append(paths, folders...)
	return paths[:min(len(paths), mostTraces)], nil
}
