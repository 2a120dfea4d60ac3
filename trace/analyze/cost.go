package analyze

import (
	"math"
	"slices"

	"gpuscope/trace"
)

// NoSave says why nothing is known of what there is to save on a device; "" where it is.
func NoSave(d *trace.Device) string {
	switch {
	case d.Software():
		return "software device: no ~save, compare ratios only"
	case d.Ceilings == nil:
		return "no ~save: no ceilings measured"
	}
	return ""
}

// CostOrder is the column by which rows with costs are best ordered: what there is to save, and where that is
// not known the cost.
func (x *Index) CostOrder() string {
	if NoSave(&x.Trace.Device) == "" {
		return "save_us"
	}
	return "cost_us"
}

// cover is rows that stand for every dispatch of a step once, the sum of their costs, and what that may be
// off by.
type cover struct {
	Ns, SpreadNS float64
	Rows         []int
}

// with adds rows that stand for others.
func (c cover) with(d cover) cover {
	return cover{c.Ns + d.Ns, math.Hypot(c.SpreadNS, d.SpreadNS), append(c.Rows, d.Rows...)}
}

// Cover covers the step by measured rows: by the finest there are, or by those that hold nothing but rows
// (attention, the rest of a layer, what comes before and after). False where they do not cover it, as where
// it is not known what one may be off by.
func (t *DispatchTree) Cover(finest bool) (c cover, ok bool) {
	children := t.children()
	var of func(row int) (cover, bool)
	all := func(rows []int) (c cover, ok bool) {
		for _, row := range rows {
			inside, ok := of(row)
			if !ok {
				return cover{}, false
			}
			c = c.with(inside)
		}
		return c, len(rows) > 0
	}
	of = func(row int) (cover, bool) {
		r := &t.Grouped[row]
		heading := func(k int) bool { return t.Grouped[k].Group }
		known := r.Cost != nil && r.Cost.ErrorKnown
		if !known || r.Group && (finest || slices.ContainsFunc(children[row], heading)) {
			if c, ok := all(children[row]); ok {
				return c, true
			}
		}
		if !known {
			return cover{}, false
		}
		return cover{float64(r.Cost.NS), r.Cost.ErrorNS, []int{row}}, true
	}
	var top []int
	for i := range t.Grouped {
		if r := &t.Grouped[i]; r.Parent < 0 && !r.Gone() && !r.Joint {
			top = append(top, i)
		}
	}
	return all(top)
}

// children are the rows in each row.
func (t *DispatchTree) children() [][]int {
	children := make([][]int, len(t.Grouped))
	for i := range t.Grouped {
		if p := t.Grouped[i].Parent; p >= 0 {
			children[p] = append(children[p], i)
		}
	}
	return children
}

// Shared is the whole step less the costs of rows that cover it: what they overlap by and wait for together.
// Of other rows it is another figure.
type Shared struct {
	NS, ErrorNS float64
	Rows        int
}

// Shared is what the finest rows share that cover the step. False where no costs cover it.
func (t *DispatchTree) Shared() (s Shared, ok bool) {
	if t.Costs == nil || t.Costs.Step.Whole == nil {
		return s, false
	}
	c, ok := t.Cover(true)
	return Shared{float64(t.Costs.Step.Whole.NS) - c.Ns, c.SpreadNS, len(c.Rows)}, ok
}

// Nothing reports that rows share no more than they may be off by.
func (s Shared) Nothing() bool { return math.Abs(s.NS) <= s.ErrorNS }

// Less reports that rows share less than zero: their costs add up to more than the step.
func (s Shared) Less() bool { return s.NS < 0 && !s.Nothing() }

// ClockMovedBy is by how much the clock was faster in the faster rounds of a step's costs than in the slower
// ones, by the canary; 0 where none ran.
func ClockMovedBy(w *trace.Whole) float64 {
	if w == nil || w.CanaryQ1 <= 0 {
		return 0
	}
	return w.CanaryQ3/w.CanaryQ1 - 1
}

// judgeCosts finds whether a row of the table has a cost, how many of those that hold no others have none,
// and whether the rest make up most of what was timed in isolation: rows are distinguished by one kind of
// number. In another fold than the one that was measured there may be few. Costs of which it is not known
// what they may be off by tell no rows apart.
func (t *DispatchTree) judgeCosts() {
	var with, known, all float64
	for i := range t.Grouped {
		r := &t.Grouped[i]
		t.AnyCost = t.AnyCost || r.Cost != nil
		if !t.Single(i) || len(r.Units) == 0 {
			continue
		}
		t.LeafRows++
		all += r.SumNS
		switch {
		case r.Cost == nil:
			if t.RowsUncosted++; r.Other != nil {
				t.OtherWork++
			}
		case r.Cost.ErrorKnown:
			known += r.SumNS
			fallthrough
		default:
			with += r.SumNS
		}
	}
	t.MostCosted = t.AnyCost && with >= all/2
	t.CostOrder = t.AnyCost && known >= all/2
}

// Most is the row that there is most to save in, and by which figure; -1 where none stands out.
func (t *DispatchTree) Most() (first int, most float64, what string) {
	first = -1
	for i := range t.Grouped {
		r := &t.Grouped[i]
		if r.Cost == nil || !t.Single(i) && !r.Joint {
			continue
		}
		ns, by := r.Cost.worth()
		if r.Cost.Significant() && ns > max(most, r.Cost.ErrorNS) {
			first, most, what = i, ns, by
		}
	}
	return first, most, what
}

// FewRounds reports that a row has a cost of which more rounds say more: its ± becomes smaller with each.
func (t *DispatchTree) FewRounds() bool {
	few := func(r DispatchRow) bool { return r.Cost != nil && r.Cost.N < manyRounds }
	return slices.ContainsFunc(t.Grouped, few)
}

// Uncosted is how many rows have no cost, where others have one, of this fold or of another.
func (t *DispatchTree) Uncosted() int {
	if t.Costs == nil {
		return 0
	}
	return t.RowsUncosted
}

// CostKnown reports that it is known what a row costs, or the row that it is a member of.
func (t *DispatchTree) CostKnown(r *DispatchRow) bool {
	if r.Cost != nil && r.Cost.ErrorKnown {
		return true
	}
	return r.Parent >= 0 && !t.Grouped[r.Parent].Group && t.CostKnown(&t.Grouped[r.Parent])
}

// Costed reports whether a row has a cost.
func (t *DispatchTree) Costed() bool { return t.AnyCost }

// ByCost reports that shares are of costs.
func (t *DispatchTree) ByCost() bool { return t.CostOrder }
