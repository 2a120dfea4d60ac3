package report

import (
	"context"
	"fmt"
	"math"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report/expertload"
	"gpuscope/trace/table"
)

// DispatchTable is the table of the dispatches of a selection.
type DispatchTable struct {
	*table.Table
	*analyze.DispatchTree
	loads *expertload.Loads
}

func init() {
	Register(Table{
		Name: "dispatches", Takes: AnySteps, Folds: true, Compares: true,
		Doc: "each dispatch that ran, with its grid, time, bound and changes",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			t, err := Dispatches(ctx, x, o)
			if err != nil {
				return nil, err
			}
			return t.Table, nil
		},
	})
}

// Dispatches returns the dispatch table of a selection.
func Dispatches(ctx context.Context, x *analyze.Index, o analyze.Options) (*DispatchTable, error) {
	d, err := x.DispatchTree(ctx, o)
	if err != nil {
		return nil, err
	}
	t := &DispatchTable{DispatchTree: d, loads: expertload.New(x, d.Selection)}
	t.Table = table.New("dispatches", t.columns(), d.Tree)
	t.Title, t.Notes, t.From = t.title(), t.notes(), t
	if t.Sum != nil {
		t.Table.Total = t.total
	}
	return t, nil
}

// apart is a limit: Stability reports the ratio of the slowest to the fastest member of a row if this ratio
// is larger than apart.
const apart = 2

// Stability describes how much the members of a row vary. It names the outlier, or says that there is no
// outlier. The bool is true if there are too few samples, so that repeats would help. If the members differ a
// lot and there is no outlier, Stability reports the ratio of the slowest to the fastest member.
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
		return fmt.Sprintf("the slowest takes %.1f× as long as the fastest, but none is an outlier in most %ss",
			r.Time.Max/r.Time.Min, runs), false
	case r.Judged:
		return fmt.Sprintf("no outlier among %s in %s", table.Plural(len(r.Units), t.member()),
			table.Plural(samples, runs)), false
	}
	return "", false
}

// member returns the word for a member of a row: "layer" if rows are grouped by layer, else "dispatch".
func (t *DispatchTable) member() string {
	if t.Grouping == analyze.GroupLayer {
		return "layer"
	}
	return "dispatch"
}

// Operators returns the operators of the dispatches in these rows.
func (t *DispatchTable) Operators(rows ...int) (ids []trace.OpID) {
	for _, row := range rows {
		for _, unit := range t.Grouped[row].Units {
			for _, i := range unit {
				ids = append(ids, t.Launches[i].Op.ID)
			}
		}
	}
	return ids
}
