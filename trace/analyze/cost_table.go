package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/tree"
)

// CostRow is a row of the table of costs. It stands for a part of a step.
type CostRow struct {
	tree.Row
	Name       string
	Dispatches []trace.DispatchID
	Cost       *RowCost // nil if the cost was not measured
	IsolatedNS float64
	Isolated   bool // IsolatedNS was measured
	ExcessNS   float64
	// Overlaps is true if the dispatches of the row also belong to a smaller row of the table. No dispatch is
	// in two of the other rows, so their costs can be added up.
	Overlaps bool
	holds    int // number of child rows
}

// compare is the sort order of rows by cost. Rows whose costs are in the same class (see RowCost.class) are
// sorted in this way: rows with child rows come last, then the cost, the excess and the isolated time decide.
func (r CostRow) compare(s CostRow) int {
	holds := func(r CostRow) int { return min(r.holds, 1) }
	if c := cmp.Compare(r.Cost.class(), s.Cost.class()); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(holds(r), holds(s)), CompareCosts(r.Cost, s.Cost),
		cmp.Compare(s.ExcessNS, r.ExcessNS), cmp.Compare(s.IsolatedNS, r.IsolatedNS))
}

// Known reports whether the row has a cost with a known error.
func (r CostRow) Known() bool { return r.Cost.Known() }

// CostRows returns the rows of the table of costs. These are the rows of the step grouped by layer that have
// a cost, or all rows under open headings if no costs were measured. Each set of dispatches that was skipped
// together adds a row. The rows are sorted by CostRow.compare.
func (t *DispatchTree) CostRows() []CostRow {
	var rows []CostRow
	known := map[string]bool{}
	children := t.children()
	for i := range t.Grouped {
		r := &t.Grouped[i]
		shown := r.Parent < 0 || t.Grouped[r.Parent].Open
		if t.Costs != nil && r.Cost == nil || t.Costs == nil && !shown {
			continue
		}
		row := CostRow{
			Row: tree.Row{Key: r.Key}, Name: t.Called(i), Dispatches: t.dispatches(r, nil), Cost: r.Cost,
			IsolatedNS: r.SumNS, Isolated: r.Summed, ExcessNS: r.ExcessNS,
		}
		if key := trace.SetKey(row.Dispatches); !known[key] {
			known[key] = true
			if r.Group {
				row.holds = len(children[i])
			}
			rows = append(rows, row)
		}
	}
	if t.Costs != nil {
		rows = append(rows, t.together(known)...)
	}
	divide(rows)
	slices.SortStableFunc(rows, CostRow.compare)
	return rows
}

// divide sets CostRow.Overlaps, for smaller rows first.
func divide(rows []CostRow) {
	order := make([]*CostRow, len(rows))
	for i := range rows {
		order[i] = &rows[i]
	}
	slices.SortStableFunc(order, func(a, b *CostRow) int {
		return cmp.Compare(len(a.Dispatches), len(b.Dispatches))
	})
	taken := map[trace.DispatchID]bool{}
	for _, r := range order {
		r.Overlaps = slices.ContainsFunc(r.Dispatches, func(id trace.DispatchID) bool { return taken[id] })
		for _, id := range r.Dispatches {
			taken[id] = taken[id] || !r.Overlaps
		}
	}
}

// If the dispatches of several rows were skipped together, the measured cost belongs to no row of the tree.
// together returns a row for each such cost.
func (t *DispatchTree) together(known map[string]bool) (rows []CostRow) {
	alone := make(map[trace.DispatchID]Stats, len(t.Launches))
	for i := range t.Launches {
		alone[t.Launches[i].ID] = t.Launches[i].Time
	}
	for i := range t.Costs.Step.Costs {
		cost := &t.Costs.Step.Costs[i]
		key := trace.SetKey(cost.Dispatches)
		if known[key] {
			continue
		}
		row := CostRow{
			Row: tree.Row{Key: fmt.Sprintf("set%d", i)}, Name: cost.Name, Dispatches: cost.Dispatches,
			Cost: t.Costs.sets[key], holds: 1, Isolated: true,
		}
		for _, id := range cost.Dispatches {
			time := alone[id]
			row.IsolatedNS, row.Isolated = row.IsolatedNS+time.Median, row.Isolated && time.Measured()
		}
		rows = append(rows, row)
	}
	return rows
}
