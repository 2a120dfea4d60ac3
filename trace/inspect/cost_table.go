package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/tree"
)

// costRow is a part of a step in the table of costs.
type costRow struct {
	tree.Row
	name       string
	dispatches []trace.DispatchID
	cost       *RowCost // nil where it was not measured
	aloneNS    float64
	alone      bool // aloneNS was measured
	lostNS     float64
	holds      int // rows in it
}

// compare orders rows by their costs; of each class those that hold others come last. Where nothing is
// known of costs, times alone order them.
func (r costRow) compare(s costRow) int {
	holds := func(r costRow) int { return min(r.holds, 1) }
	if c := cmp.Compare(r.cost.class(), s.cost.class()); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(holds(r), holds(s)), compareCosts(r.cost, s.cost),
		cmp.Compare(s.lostNS, r.lostNS), cmp.Compare(s.aloneNS, r.aloneNS))
}

// known says that it is known what the row's cost may be off by.
func (r costRow) known() bool { return r.cost.known() }

// costRows are the rows of the step folded by layer that have a cost, or all where none has, and what was
// left out together: first the rows that hold no other, then those that do.
func (t *DispatchTree) costRows() []costRow {
	var rows []costRow
	known := map[string]bool{}
	children := t.children()
	for i := range t.Folded {
		r := &t.Folded[i]
		shown := r.Parent < 0 || t.Folded[r.Parent].Open
		if t.Costs != nil && r.Cost == nil || t.Costs == nil && !shown {
			continue
		}
		row := costRow{
			Row: tree.Row{Key: r.Key}, name: t.Called(i), dispatches: t.dispatches(r, nil), cost: r.Cost,
			aloneNS: r.SumNS, alone: r.Summed, lostNS: r.LostNS,
		}
		if key := setKey(row.dispatches); !known[key] {
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
	slices.SortStableFunc(rows, costRow.compare)
	return rows
}

// together are the costs of what is in no row: several that were left out together.
func (t *DispatchTree) together(known map[string]bool) (rows []costRow) {
	alone := make(map[trace.DispatchID]Spread, len(t.Launches))
	for i := range t.Launches {
		alone[t.Launches[i].ID] = t.Launches[i].Time
	}
	for i := range t.Costs.Step.Costs {
		cost := &t.Costs.Step.Costs[i]
		key := setKey(cost.Dispatches)
		if known[key] {
			continue
		}
		row := costRow{
			Row: tree.Row{Key: fmt.Sprintf("set%d", i)}, name: cost.Name, dispatches: cost.Dispatches,
			cost: t.Costs.sets[key], holds: 1, alone: true,
		}
		for _, id := range cost.Dispatches {
			time := alone[id]
			row.aloneNS, row.alone = row.aloneNS+time.Median, row.alone && time.Measured()
		}
		rows = append(rows, row)
	}
	return rows
}
