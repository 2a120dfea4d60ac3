package analyze

import (
	"context"
	"math"
	"slices"

	"gpuscope/trace/analyze/join"
	"gpuscope/trace/tree"
)

// DispatchTree holds the dispatches of a selection, grouped into rows.
type DispatchTree struct {
	// Tree holds a copy of the tree.Row of each element of Grouped. Only in these copies is the field Apart
	// set, which is the name of the row in tables without headings.
	Tree      []tree.Row
	Index     *Index
	Selection Selection
	Baseline  *Baseline
	Grouping  Grouping
	Launches  []Launch // every dispatch, in order of submission
	Grouped   []DispatchRow
	Gone      []*Launch // dispatches that ran only at the baseline
	// Sum stands for all dispatches of both sides. It is nil without a baseline that the user chose.
	Sum *DispatchRow
	// Joined says how the dispatches were paired with those of the baseline. ClockMoved reports that times
	// were not compared, because the GPU clock (measured by the canary kernel) differed.
	Joined     join.How
	ClockMoved bool
	// Costs are the costs measured at a step of the selection, and nil if no costs were measured.
	Costs *StepCosts

	AnyCost    bool // at least one row has a cost
	MostCosted bool // rows with a cost have at least half of the isolated time
	// CostOrder reports that rows are ranked by cost. This is the case if the rows whose cost has a known
	// error take at least half of the isolated time.
	CostOrder bool
	// LeafRows is the number of ordinary rows (see Single) that ran in the selection. RowsUncosted is how
	// many of them have no cost. OtherWork is how many of the rows without a cost ran on another route or
	// shape when their cost was measured.
	LeafRows, RowsUncosted, OtherWork int
	// total is the time in ns of all dispatches in all steps of the selection, and baseTotal that of all
	// dispatches in all steps of the baseline. Each of the two is 0 if one of its dispatches was not
	// measured.
	total, baseTotal float64
	comparison       *comparison
	blocks           *BlockTimes // nil if the step was not timed by blocks
}

// DispatchRow is a row of a DispatchTree: a dispatch, equal dispatches of several layers, or a heading.
type DispatchRow struct {
	tree.Row
	Label string
	// Units holds the dispatches of the row, as indices into Launches. If rows are grouped by layer, Units
	// has one list for each layer that the row covers, or one list for the prologue or the epilogue. In other
	// groupings it has one list for each dispatch of the row.
	Units [][]int
	// Time summarizes the repeats of a single dispatch. If the row has several units, Time summarizes the
	// times of the units instead, and Median, Min and Max are those of the units.
	Time Stats
	IQR  float64 // interquartile range of repeats; for several dispatches the median of their ranges
	// SumNS is the total time of the row's dispatches. Summed reports that all of these dispatches were
	// measured. Share is SumNS as a fraction of the time of all dispatches.
	SumNS  float64
	Summed bool
	Share  float64
	Each   []float64 // time in ns of each element of Units; nil if one was not measured
	Equal  bool      // all dispatches have the same kernel, grid, bytes and FLOPs
	Bound  Bound
	Cost   *RowCost // nil if the cost was not measured
	// Other is a dispatch of the row that ran differently when the cost was measured, or nil. If Other is
	// set, Cost is nil.
	Other    *Launch
	ExcessNS float64   // total excess of the dispatches of the row
	Floors   int       // number of rows below this heading whose time is at the floor
	Waste    Waste     // total waste of the dispatches in a step; for several steps, the mean
	Delta    Delta     // Delta.TimeNS is SumNS minus the sum at the baseline
	Joins    []int     // indices of the rows that a joint row joins
	Missing  []*Launch // launches that ran only at the baseline; Units is empty then
	Outlier  int       // index of the outlier in Units; -1 if there is none
	Judged   bool      // there are enough samples to tell whether a unit is an outlier
}

// Count returns the number of dispatches of the row.
func (r *DispatchRow) Count() int {
	n := len(r.Missing)
	for _, u := range r.Units {
		n += len(u)
	}
	return n
}

// Options says what a table shows and how the rows are grouped.
type Options struct {
	Selection Selection
	Grouping  Grouping  // ignored by tables that do not group rows
	Baseline  *Baseline // nil to compare with nothing
}

// DispatchTree returns the dispatches of a selection, grouped into rows and with their numbers.
func (x *Index) DispatchTree(ctx context.Context, o Options) (*DispatchTree, error) {
	whole := o.Selection
	o = o.Routed(x)
	launches, err := x.Launches(ctx, o.Selection)
	if err != nil {
		return nil, err
	}
	t := &DispatchTree{
		Index: x, Selection: o.Selection, Baseline: o.Baseline, Grouping: o.Grouping,
		Launches: launches,
	}
	t.blocks, t.Costs = x.BlockTimes(o.Selection), x.Costs(o.Selection, whole)
	if o.Baseline != nil {
		if err = t.compare(ctx); err != nil {
			return nil, err
		}
	}
	t.total = total(t.Launches)
	add := func(r DispatchRow, gone []*Launch) {
		if len(r.Units) > 0 {
			t.measure(&r)
			r.Cost, r.Other = t.Costs.Beside(t.ofRow(&r))
		} else {
			r.Missing, r.Equal = gone, true
		}
		if o.Baseline != nil {
			t.delta(&r, gone)
		}
		t.Grouped = append(t.Grouped, r)
	}
	f := newGrouper(t)
	for i, p := range f.fold(o.Grouping) {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		add(DispatchRow{Row: p.Row, Label: p.label, Units: p.units, Outlier: -1}, p.gone)
	}
	if t.Costs != nil {
		for _, set := range t.joint() {
			r := t.join(set)
			if cost, _ := t.Costs.Beside(t.ofRow(&r)); cost != nil {
				add(r, nil)
			}
		}
	}
	if o.Baseline.Chosen() && len(t.Launches) > 0 {
		t.Sum = t.sum()
	}
	// A heading adds up the excess and the floor count of the rows below it. Members of a row of equal
	// dispatches are skipped, because the row includes them.
	rows := make([]tree.Row, len(t.Grouped))
	for i := len(t.Grouped) - 1; i >= 0; i-- {
		r := &t.Grouped[i]
		rows[i] = r.Row
		rows[i].Quiet = r.Bound.Kind == FloorBound
		if t.CostKnown(r) { // the excess in isolated time is not shown beside a cost
			r.ExcessNS = 0
		}
		if r.Parent < 0 || !t.Grouped[r.Parent].heading() {
			continue
		}
		p := &t.Grouped[r.Parent]
		p.ExcessNS += r.ExcessNS
		p.Floors += r.Floors
		if r.Bound.Kind == FloorBound {
			p.Floors++
		}
	}
	t.judgeCosts()
	tree.NameApart(rows, func(row int) string { return t.Grouped[row].Label })
	t.nameJoint(rows)
	t.Tree = rows
	return t, nil
}

// total returns the time in ns of all dispatches in all steps, or 0 if a dispatch was not measured.
func total(launches []Launch) float64 {
	sum := 0.0
	for i := range launches {
		l := &launches[i]
		if !l.Time.Measured() {
			return 0
		}
		sum += l.Time.Median * float64(l.Runs)
	}
	return sum
}

// Single reports whether a row is an ordinary row: not a heading, not a member of another row, and not a
// joint row.
func (t *DispatchTree) Single(row int) bool {
	r := &t.Grouped[row]
	return !r.Joint && t.rival(r)
}

// rival reports whether a row may be the one to fix first: it is an ordinary row or a joint row.
func (t *DispatchTree) rival(r *DispatchRow) bool {
	return !r.Group && (r.Parent < 0 || t.Grouped[r.Parent].Group)
}

// heading reports whether the numbers of a row are the sums of the numbers of its child rows.
func (r *DispatchRow) heading() bool { return r.Group || !r.Equal }

// compare compares the launches with the baseline, and sets the Delta of each.
func (t *DispatchTree) compare(ctx context.Context) error {
	c, err := t.Baseline.Compare(ctx, t.Index, t.Selection, t.Launches)
	t.Gone, t.Joined, t.ClockMoved, t.baseTotal, t.comparison = c.Gone, c.Joined, c.ClockMoved, c.total, &c
	return err
}

// canary returns the speed of the canary kernel relative to the warm device. For several steps, canary
// returns the median of their speeds. canary returns 0 if the canary kernel did not run.
func (x *Index) canary(s Selection) float64 {
	var ratios []float64
	for _, step := range s.Steps {
		if c := x.Trace.Steps[step].Canary; c > 0 {
			ratios = append(ratios, c)
		}
	}
	return StatsOf(ratios).Median
}

func (t *DispatchTree) resolutionNS() float64 { return t.Baseline.ResolutionNS(t.Index) }

// measure sets the times, the bound and the waste of a row. It computes them from the dispatches of the row.
func (t *DispatchTree) measure(r *DispatchRow) {
	first := &t.Launches[r.Units[0][0]]
	r.Summed, r.Equal = true, !r.Joint
	var iqrs []float64
	weighed := 0.0 // sum of the times in ns over all steps
	for _, unit := range r.Units {
		sum := 0.0
		for _, i := range unit {
			l := &t.Launches[i]
			sum += l.Time.Median
			weighed += l.Time.Median * float64(l.Runs)
			r.Summed = r.Summed && l.Time.Measured()
			r.Equal = r.Equal && l.Plan.SameWork(first.Plan)
			r.Waste = r.Waste.Plus(l.Waste)
			if l.Time.Known() {
				iqrs = append(iqrs, l.Time.IQR)
			}
		}
		r.Each = append(r.Each, sum)
		r.SumNS += sum
	}
	if !r.Summed {
		r.Each, r.SumNS, r.Share, r.Summed = t.blocks.Of(r.Units)
		r.Time = StatsOf(slices.Clone(r.Each))
		return
	}
	if t.total > 0 {
		r.Share = weighed / t.total
	}
	r.IQR = StatsOf(iqrs).Median
	r.Time = StatsOf(slices.Clone(r.Each))
	if r.Count() == 1 {
		r.Time, r.Bound = first.Time, first.Limit
		r.ExcessNS = r.Bound.ExcessNS
		return
	}
	if r.Group {
		return
	}
	if !r.Equal {
		return
	}
	if t.Timed() {
		r.Bound = boundOf(&t.Index.Trace.Device, first, r.Time, false)
		r.ExcessNS = float64(len(r.Units)) * r.Bound.ExcessNS
	}
	samples := make([][]int64, len(r.Units))
	for k, unit := range r.Units {
		samples[k] = t.Launches[unit[0]].Samples
	}
	r.Outlier, r.Judged = outlier(samples, t.resolutionNS())
}

// Each returns the label before a list of times, one for each unit of a row.
func (t *DispatchTree) Each() string {
	if t.Grouping == GroupLayer {
		return "layers"
	}
	return "each"
}

// delta compares the total time of a row with its total time at the baseline. `gone` holds dispatches of the
// row that ran only at the baseline. If a dispatch ran on one side but not on the other, its time on the
// other side is 0. Times are not compared if the row has only a part of a piece of work. If the graphs
// differ, the times of a row that is not a heading are only compared if all of its dispatches have a
// counterpart, or none: the work of the others may be in other rows of the baseline.
func (t *DispatchTree) delta(r *DispatchRow, gone []*Launch) {
	of, now := &r.Delta, t.ofRow(r)
	beside := t.comparison.Counterparts(now)
	known, measured, timed := !t.ClockMoved, r.Summed || r.Gone(), true
	for _, l := range now {
		of.PlanDiff = of.PlanDiff.Or(l.Delta.PlanDiff)
		measured, timed = measured && l.Time.Measured(), timed && l.Time.N > 1
	}
	for _, l := range beside.Launches {
		known, timed = known && l.Time.Measured(), timed && l.Time.N > 1
	}
	for _, l := range gone {
		of.Gone = true
		known, timed = known && l.Time.Measured(), timed && l.Time.N > 1
	}
	if !known {
		return
	}
	then := slices.Concat(beside.Launches, gone)
	for _, l := range then {
		of.BaselineNS += l.Time.Median
	}
	of.HasBaseline = len(then) > 0
	of.Measured = measured && (beside.SameWork(r.Group) || r.Key == wholeTable ||
		r.Gone() && t.Joined != join.ByOrder)
	if !of.Measured {
		return
	}
	// TimeNS is a difference of sums of medians, because the table shows sums of medians.
	of.TimeNS = r.SumNS - of.BaselineNS
	if of.Timed = timed && len(now) > 0 && len(then) > 0; of.Timed {
		of.Equal = !t.comparison.Differ(r.SumNS, of.BaselineNS, now, then)
	}
}

// wholeTable is the key of the row that stands for all dispatches.
const wholeTable = "total"

// sum returns a row that stands for all dispatches on both sides.
func (t *DispatchTree) sum() *DispatchRow {
	all := make([]int, len(t.Launches))
	for i := range all {
		all[i] = i
	}
	r := &DispatchRow{
		Row:   tree.Row{Key: wholeTable, Parent: -1, Group: true},
		Label: "total", Units: [][]int{all}, Outlier: -1,
	}
	t.measure(r)
	t.delta(r, t.Gone)
	return r
}

// Timed reports whether every dispatch has a time in every step of the selection.
func (t *DispatchTree) Timed() bool { return t.TimedSteps() == len(t.Selection.Steps) }

// TimedSteps returns the number of selected steps in which every dispatch has a time.
func (t *DispatchTree) TimedSteps() int {
	n := 0
	for _, step := range t.Selection.Steps {
		if EachTimed(&t.Index.Trace.Steps[step]) {
			n++
		}
	}
	return n
}

// ofRow returns the launches of a row.
func (t *DispatchTree) ofRow(r *DispatchRow) (list []*Launch) {
	for _, u := range r.Units {
		for _, i := range u {
			list = append(list, &t.Launches[i])
		}
	}
	return list
}

// Row returns the index of the row with a key, or -1.
func (t *DispatchTree) Row(key string) int {
	return slices.IndexFunc(t.Grouped, func(r DispatchRow) bool { return r.Key == key })
}

// Launch returns the first dispatch of a row. If the dispatches of the row ran only at the baseline, it is
// the first of these.
func (t *DispatchTree) Launch(r *DispatchRow) *Launch {
	if r.Gone() {
		return r.Missing[0]
	}
	return &t.Launches[r.Units[0][0]]
}

// Gone reports whether the dispatches of the row ran only at the baseline.
func (r *DispatchRow) Gone() bool { return r.Missing != nil }

// All reports whether a condition holds for all dispatches of a row.
func (t *DispatchTree) All(r *DispatchRow, holds func(*Launch) bool) bool {
	for _, u := range r.Units {
		for _, i := range u {
			if !holds(&t.Launches[i]) {
				return false
			}
		}
	}
	return true
}

// Same returns the text that a function returns for every dispatch of a row. The bool is false if the texts
// differ.
func (t *DispatchTree) Same(r *DispatchRow, text func(*Launch) string) (string, bool) {
	first := text(t.Launch(r))
	if !t.All(r, func(l *Launch) bool { return text(l) == first }) {
		return "", false
	}
	return first, true
}

// Repeats returns the number of samples of the dispatch with the fewest samples. It is 0 if a dispatch was
// not measured.
func (t *DispatchTree) Repeats() int {
	n := 0
	for i := range t.Launches {
		if k := t.Launches[i].Time.N; i == 0 || k < n {
			n = k
		}
	}
	return n
}

// Levels returns the number of levels in the last step of the selection, and the number of dispatches that
// are in a level. A dispatch that ran only in earlier steps is in no level.
func (t *DispatchTree) Levels() (levels, in int) {
	for i := range t.Launches {
		if level := t.Launches[i].Level; level >= 0 {
			levels, in = max(levels, level+1), in+1
		}
	}
	return levels, in
}

// Grids returns the smallest and the largest number of workgroups of the dispatches of a row.
func (t *DispatchTree) Grids(r *DispatchRow) (least, most int64) {
	least = math.MaxInt64
	for _, u := range r.Units {
		for _, i := range u {
			least = min(least, Product(t.Launches[i].Least))
			most = max(most, Product(t.Launches[i].Most))
		}
	}
	return least, most
}
