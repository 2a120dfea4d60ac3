// Package costs lists the costs of a step for tables: parts that add up, and groups of these parts.
package costs

import (
	"cmp"
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Kind says what a row of the tables of costs stands for.
type Kind string

// The kinds of rows, in the order of the table of groups.
const (
	Dispatches Kind = "dispatches" // equal dispatches of all layers; all other kinds are groups
	Layers     Kind = "layers"     // equal layers
	Block      Kind = "block"      // a part of these layers, or what runs before or after the layers
	AtOnce     Kind = "at once"    // dispatches that run concurrently
	Kernel     Kind = "kernel"     // all dispatches of a kernel
	Operators  Kind = "operators"  // all operators of a kind
	Together   Kind = "together"   // dispatches that a user chose, such as with --cost
)

// kinds lists the kinds of groups in the order of the table.
var kinds = []Kind{Layers, Block, AtOnce, Kernel, Operators, Together}

// Row is a row of a table of costs. It stands for a part of a step.
type Row struct {
	Key        string // unique among the rows of a table
	Kind       Kind
	Name       string
	Dispatches []trace.DispatchID
	Cost       *analyze.RowCost // nil if the cost was not measured
	IsolatedNS float64
	Isolated   bool    // IsolatedNS was measured
	Share      float64 // IsolatedNS as a fraction of that of the step; 0 if not known
	ExcessNS   float64
}

// compare is the sort order of rows: that of analyze.CompareCosts. The excess and the isolated time decide
// between rows without a known cost.
func (r Row) compare(s Row) int {
	return cmp.Or(analyze.CompareCosts(r.Cost, s.Cost), cmp.Compare(s.ExcessNS, r.ExcessNS),
		cmp.Compare(s.IsolatedNS, r.IsolatedNS))
}

// Known reports whether the row has a cost with a known error.
func (r Row) Known() bool { return r.Cost.Known() }

// Parts returns the rows of the table of costs, sorted by Row.compare. Each dispatch of the step is in
// exactly one row, so the costs and the isolated times of the rows can be added up. A row without a measured
// cost is included.
func Parts(t *analyze.DispatchTree) []Row {
	var rows []Row
	for i := range t.Grouped {
		if t.Single(i) && !t.Grouped[i].Gone() {
			rows = append(rows, rowOf(t, i, Dispatches))
		}
	}
	slices.SortStableFunc(rows, Row.compare)
	setShares(rows, rows)
	return rows
}

// setShares sets Row.Share of each row in `rows`. It does nothing unless every row in `all`, the table of
// costs, has an isolated time.
func setShares(rows, all []Row) {
	total := 0.0
	for _, r := range all {
		if !r.Isolated {
			return
		}
		total += r.IsolatedNS
	}
	for i := range rows {
		if r := &rows[i]; r.Isolated && total > 0 {
			r.Share = r.IsolatedNS / total
		}
	}
}

// Groups returns the rows of the table of groups: layers, blocks, and all sets of dispatches that were
// skipped together. The rows overlap each other and the rows of Parts. They are sorted by kind, then by
// Row.compare. If costs were measured, only rows with a cost are included.
func Groups(t *analyze.DispatchTree) []Row {
	known, parts := map[string]bool{}, Parts(t)
	for _, r := range parts {
		known[trace.SetKey(r.Dispatches)] = true // the cost of the set is in that table
	}
	var rows []Row
	for i := range t.Grouped {
		r := &t.Grouped[i]
		if r.Gone() || !r.Group && !r.Joint || t.Costs != nil && r.Cost == nil {
			continue
		}
		kind := Block
		switch {
		case r.Joint:
			kind = AtOnce
		case slices.ContainsFunc(t.Grouped, func(k analyze.DispatchRow) bool {
			return k.Group && k.Parent == i
		}):
			kind = Layers
		}
		row := rowOf(t, i, kind)
		key := trace.SetKey(row.Dispatches)
		if r.Joint && known[key] { // the row is a block
			continue
		}
		known[key] = true
		rows = append(rows, row)
	}
	if t.Costs != nil {
		rows = append(rows, together(t, known)...)
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			a.compare(b))
	})
	setShares(rows, parts)
	return rows
}

func rowOf(t *analyze.DispatchTree, i int, kind Kind) Row {
	r := &t.Grouped[i]
	return Row{
		Key: r.Key, Kind: kind, Name: NameApart(t, i), Dispatches: t.DispatchesOf(i),
		Cost: r.Cost, IsolatedNS: r.SumNS, Isolated: r.Summed, ExcessNS: r.ExcessNS,
	}
}

// NameApart returns the name of a row in a table without headings. If layers differ, the name says which
// layers the row belongs to.
func NameApart(t *analyze.DispatchTree, row int) string {
	if name := t.Tree[row].Apart; name != "" {
		return name
	}
	p := t.Grouped[row].Parent
	if !t.Grouped[row].Group || p < 0 {
		return t.Called(row)
	}
	for i := range t.Grouped { // is there another block in other layers?
		q := t.Grouped[i].Parent
		if t.Grouped[i].Group && q >= 0 && q != p {
			return t.Called(p) + " " + t.Called(row)
		}
	}
	return t.Called(row)
}

// If the dispatches of several rows were skipped together, the measured cost belongs to no row of the tree.
// The function together returns a row for each such cost. It skips costs whose set of dispatches is a key
// of `known`.
func together(t *analyze.DispatchTree, known map[string]bool) (rows []Row) {
	launches := make(map[trace.DispatchID]*analyze.Launch, len(t.Launches))
	for i := range t.Launches {
		launches[t.Launches[i].ID] = &t.Launches[i]
	}
	for i := range t.Costs.Step.Costs {
		cost := &t.Costs.Step.Costs[i]
		key := trace.SetKey(cost.Dispatches)
		if known[key] {
			continue
		}
		row := Row{
			Key: fmt.Sprintf("set%d", i), Kind: Together, Name: cost.Name,
			Dispatches: cost.Dispatches, Cost: t.Costs.Of(cost.Dispatches), Isolated: true,
		}
		kernel, operators := true, true
		for _, id := range cost.Dispatches {
			l := launches[id]
			if l == nil {
				row.Isolated, kernel, operators = false, false, false
				continue
			}
			row.IsolatedNS += l.Time.Median
			row.Isolated = row.Isolated && l.Time.Measured()
			kernel = kernel && l.Plan.Kernel == cost.Name
			operators = operators && l.Op.Kind == cost.Name
		}
		switch {
		case kernel:
			row.Kind = Kernel
		case operators:
			row.Kind = Operators
		}
		rows = append(rows, row)
	}
	return rows
}
