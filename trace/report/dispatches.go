package report

import (
	"context"
	"fmt"
	"math"

	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// DispatchTable is the dispatches of a selection as a table.
type DispatchTable struct {
	*table.Table
	*analyze.DispatchTree
}

func init() {
	Register(Table{
		Name: "dispatches", Takes: AnySteps, Folds: true, Compares: true,
		Doc: "what ran: each dispatch with its grid, time, bound and changes",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			t, err := Dispatches(ctx, x, o)
			if err != nil {
				return nil, err
			}
			return t.Table, nil
		},
	})
}

// Dispatches is the dispatch table of a selection.
func Dispatches(ctx context.Context, x *analyze.Index, o analyze.Options) (*DispatchTable, error) {
	d, err := x.DispatchTree(ctx, o)
	if err != nil {
		return nil, err
	}
	t := &DispatchTable{DispatchTree: d}
	t.Table = table.New("dispatches", t.columns(), d.Tree)
	t.Title, t.Notes, t.From = t.title(), t.notes(), t
	return t, nil
}

// apart is how many times the largest of several equal members may be the least before it is said.
const apart = 2

// Stability says how alike the members of a row are: which of them is an outlier, that none is, or that there
// are too few samples to tell, where repeats would give more. Members that differ by much and of which none
// stands out are no even row, and are not called one.
func (t *DispatchTable) Stability(r *analyze.DispatchRow) (said string, more bool) {
	if r.Group || !r.Equal || len(r.Units) < 2 || !r.Summed {
		return "", false
	}
	samples := math.MaxInt
	for _, unit := range r.Units {
		samples = min(samples, t.Launches[unit[0]].Time.N)
	}
	_, one := t.Selection.One()
	runs := "step"
	if one {
		runs = "repeat"
	}
	switch {
	case r.Outlier >= 0:
		return "outlier " + t.Index.Name(t.Launches[r.Units[r.Outlier][0]].ID), false
	case one && samples < 2:
		return "1 sample", true
	case one && !r.Judged:
		return table.Plural(samples, "sample") + ", too few to find an outlier", true
	case r.Time.Max > apart*r.Time.Min:
		return fmt.Sprintf("fastest to slowest %.1f×, and no outlier repeats in most %ss",
			r.Time.Max/r.Time.Min, runs), false
	case r.Judged:
		return fmt.Sprintf("no outlier among %s in %s", table.Plural(len(r.Units), t.member()),
			table.Plural(samples, runs)), false
	}
	return "", false
}

// member is what a row has several of: layers, or in another fold dispatches.
func (t *DispatchTable) member() string {
	if t.Grouping == analyze.GroupLayer {
		return "layer"
	}
	return "dispatch"
}
