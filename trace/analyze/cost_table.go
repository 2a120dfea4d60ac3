package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/tree"
)

// CostRow is a part of a step in the table of costs.
type CostRow struct {
	tree.Row
	Name       string
	Dispatches []trace.DispatchID
	Cost       *RowCost // nil where it was not measured
	IsolatedNS float64
	Isolated   bool // aloneNS was measured
	ExcessNS   float64
	holds      int // rows in it
}

// compare orders rows by their costs; of each class those that hold others come last. Where nothing is
// known of costs, times alone order them.
func (r CostRow) compare(s CostRow) int {
	holds := func(r CostRow) int { return min(r.holds, 1) }
	if c := cmp.Compare(r.Cost.class(), s.Cost.class()); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(holds(r), holds(s)), CompareCosts(r.Cost, s.Cost),
		cmp.Compare(s.ExcessNS, r.ExcessNS), cmp.Compare(s.IsolatedNS, r.IsolatedNS))
}

// Known reports that it is known what the row's cost may be off by.
func (r CostRow) Known() bool { return r.Cost.Known() }

// CostRows are the rows of the step grouped by layer that have a cost, or all where none has, and what was
// left out together: first the rows that hold no other, then those that do.
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
	slices.SortStableFunc(rows, CostRow.compare)
	return rows
}

// together are the costs of what is in no row: several that were left out together.
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
