package analyze

import (
	"math"
	"slices"

	"gpuscope/trace"
)

// NoSave returns the reason why potential savings cannot be computed on a device, or "" if they can be
// computed.
func NoSave(d *trace.Device) string {
	switch {
	case d.Software():
		return "software device: ~save unknown; compare ratios only"
	case d.Ceilings == nil:
		return "~save unknown: no ceilings"
	}
	return ""
}

// CostOrder returns the column by which rows with costs are sorted: the potential saving, or the cost if
// potential savings cannot be computed on the device.
func (x *Index) CostOrder() string {
	if NoSave(&x.Trace.Device) == "" {
		return "save_us"
	}
	return "cost_us"
}

// cover is a set of rows in which every dispatch of a step occurs exactly once. Ns is the sum of the costs of
// these rows. SpreadNS is the error of the sum.
type cover struct {
	Ns, SpreadNS float64
	Rows         []int
}

// with returns the union of two covers that have no dispatch in common.
func (c cover) with(d cover) cover {
	return cover{c.Ns + d.Ns, math.Hypot(c.SpreadNS, d.SpreadNS), append(c.Rows, d.Rows...)}
}

// Cover selects measured rows so that every dispatch of the step is in exactly one of them. If `finest` is
// set, Cover selects the smallest measured rows. If not, it selects the lowest headings with a known cost,
// such as attention, the rest of a layer, the prologue and the epilogue. The bool is false if some dispatch
// is only in rows that were not measured or whose error is not known.
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

// children lists the direct child rows of each row, of those that ran in the selection.
func (t *DispatchTree) children() [][]int {
	children := make([][]int, len(t.Grouped))
	for i := range t.Grouped {
		if p := t.Grouped[i].Parent; p >= 0 && !t.Grouped[i].Gone() {
			children[p] = append(children[p], i)
		}
	}
	return children
}

// Shared is the cost of the whole step minus the sum of the costs of rows that cover the step. This
// difference is time in which several rows run or wait at once. It depends on the rows that were chosen to
// cover the step.
type Shared struct {
	NS, ErrorNS float64
	Rows        int
}

// Shared returns the difference for the finest rows that cover the step. The bool is false if the
// measured rows do not cover the step.
func (t *DispatchTree) Shared() (s Shared, ok bool) {
	if t.Costs == nil || t.Costs.Step.Whole == nil {
		return s, false
	}
	c, ok := t.Cover(true)
	return Shared{float64(t.Costs.Step.Whole.NS) - c.Ns, c.SpreadNS, len(c.Rows)}, ok
}

// Nothing reports whether the difference is not significant.
func (s Shared) Nothing() bool { return math.Abs(s.NS) <= s.ErrorNS }

// Less reports whether the costs of the rows add up to significantly more than the cost of the step.
func (s Shared) Less() bool { return s.NS < 0 && !s.Nothing() }

// ClockMovedBy returns how much the GPU clock changed during a cost measurement, as a fraction. It compares
// the quartiles of the canary kernel's speed over the rounds: the upper quartile divided by the lower
// quartile, minus 1. The result is 0 if the canary did not run.
func ClockMovedBy(w *trace.Whole) float64 {
	if w == nil || w.CanaryQ1 <= 0 {
		return 0
	}
	return w.CanaryQ3/w.CanaryQ1 - 1
}

// judgeCosts counts the rows with and without a cost (headings, joint rows and members of other rows do not
// count). It also decides whether rows are ranked by cost or by isolated time. Sometimes only few rows have
// a cost, for example if the costs were measured under another grouping. Rows are ranked by cost only if
// those whose cost has a known error take at least half of the isolated time.
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

// Most returns the row with the largest potential saving, and this saving in ns. If savings are not known,
// Most uses costs instead. `what` names which of the two it used. Most considers only rows whose cost is
// significant and whose saving (or cost) is larger than the error. If there are none, the row is -1.
func (t *DispatchTree) Most() (first int, most float64, what string) {
	first = -1
	for i := range t.Grouped {
		r := &t.Grouped[i]
		if r.Cost == nil || !t.rival(r) {
			continue
		}
		ns, by := r.Cost.worth()
		if r.Cost.Significant() && ns > max(most, r.Cost.ErrorNS) {
			first, most, what = i, ns, by
		}
	}
	return first, most, what
}

// FewRounds reports whether more measuring rounds would reduce the error of some row's cost.
func (t *DispatchTree) FewRounds() bool {
	few := func(r DispatchRow) bool { return r.Cost != nil && r.Cost.N < manyRounds }
	return slices.ContainsFunc(t.Grouped, few)
}

// Uncosted returns RowsUncosted, or 0 if no costs at all were measured in the selection.
func (t *DispatchTree) Uncosted() int {
	if t.Costs == nil {
		return 0
	}
	return t.RowsUncosted
}

// CostKnown reports whether a cost with a known error was measured for the row. If the row is a member of a
// parent row, the parent's cost counts too.
func (t *DispatchTree) CostKnown(r *DispatchRow) bool {
	if r.Cost != nil && r.Cost.ErrorKnown {
		return true
	}
	return r.Parent >= 0 && !t.Grouped[r.Parent].Group && t.CostKnown(&t.Grouped[r.Parent])
}

// Costed reports whether any row has a cost.
func (t *DispatchTree) Costed() bool { return t.AnyCost }

// ByCost reports whether rows are ranked by their costs. If so, the shares of rows are shares of the costs.
func (t *DispatchTree) ByCost() bool { return t.CostOrder }
