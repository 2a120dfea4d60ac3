package analyze

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gpuscope/trace/tree"
)

// DispatchTree is the dispatches of a selection, folded into rows.
type DispatchTree struct {
	Tree      []tree.Row // one for each of Folded, with its name outside of its heading
	Index     *Index
	Selection Selection
	Baseline  *Baseline
	Grouping  Grouping
	Launches  []Launch // every dispatch, in order of submission
	Grouped   []DispatchRow
	Gone      []*Launch // of the baseline, that did not run in this selection
	// ByOrder reports that no dispatch is the baseline's by id, so they were compared in order. ClockMoved
	// that the canary kernel ran at another speed at the baseline, so times were not compared.
	ByOrder, ClockMoved bool
	// Costs are those of a step of the selection, nil where none were measured.
	Costs *StepCosts

	AnyCost    bool // a row has a cost
	MostCosted bool // rows that make up most of the step have one
	CostOrder  bool // and it is known what it may be off by, so that rows are distinguished by it
	// LeafRows are the rows that hold no others, uncosted those of them without a cost.
	// otherWork those of these whose cost is of another route.
	LeafRows, RowsUncosted, OtherWork int
	// ns of all dispatches in all steps, and in those of the baseline; 0 where one was not measured
	total, baseTotal float64
	blocks           *BlockTimes // nil where the step was not timed by blocks
}

// DispatchRow is one row: a dispatch, equal dispatches of several layers, or a heading over rows.
type DispatchRow struct {
	tree.Row
	Label string
	// Units are the dispatches of each layer (of each member, where the fold is another), as indices into
	// Launches.
	Units [][]int
	// Time is that of a single dispatch with the variation of its repeats, or else over the units: the median
	// unit, the least and the largest.
	Time Stats
	IQR  float64 // of repeats; of several dispatches the median
	// SumNS is the sum of all dispatches of the row, Summed whether all were measured, Share their part of
	// all dispatches.
	SumNS    float64
	Summed   bool
	Share    float64
	Each     []float64 // time of each unit, in order; nil where one was not measured
	Equal    bool      // all dispatches of the row do the same work: kernel, grid, bytes, FLOPs
	Bound    Bound
	Cost     *RowCost  // nil where it was not measured
	Other    *Launch   // of the row, that ran differently when a cost was measured, so that Cost is nil
	ExcessNS float64   // of all dispatches of the row
	Floors   int       // rows in this heading that are at the floor
	Waste    Waste     // of all dispatches; of several steps the mean
	Delta    Delta     // TimeNS is of SumNS
	Joins    []int     // rows that run at once, of one that stands for all of them
	Missing  []*Launch // of the baseline, in the place of Units
	Outlier  int       // unit that stands out, -1: none
	Judged   bool      // there were samples enough to find an outlier
}

// Count is the number of dispatches.
func (r *DispatchRow) Count() int {
	n := len(r.Missing)
	for _, u := range r.Units {
		n += len(u)
	}
	return n
}

// Options say what a table is of and how.
type Options struct {
	Selection Selection
	Grouping  Grouping  // of tables that fold
	Baseline  *Baseline // nil: compare with nothing
}

// DispatchTree computes the dispatches of a selection, folded into rows.
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
	var baseline []*Launch
	if o.Baseline != nil {
		if baseline, err = t.compare(ctx); err != nil {
			return nil, err
		}
	}
	t.total = total(t.Launches)
	add := func(r DispatchRow) {
		t.measure(&r)
		r.Cost, r.Other = t.Costs.Beside(t.ofRow(&r))
		if o.Baseline != nil {
			t.delta(&r, baseline)
		}
		t.Grouped = append(t.Grouped, r)
	}
	f := newGrouper(x, o.Selection, t.Launches)
	for i, p := range f.fold(o.Grouping) {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		add(DispatchRow{Row: p.Row, Label: p.label, Units: p.units, Outlier: -1})
	}
	if t.Costs != nil {
		for _, set := range t.joint() {
			r := t.join(set)
			if cost, _ := t.Costs.Beside(t.ofRow(&r)); cost != nil {
				add(r)
			}
		}
	}
	t.Grouped = append(t.Grouped, t.goneRows()...)
	// what headings have of their rows; the rows of a row that stands for them do not count twice
	rows := make([]tree.Row, len(t.Grouped))
	for i := len(t.Grouped) - 1; i >= 0; i-- {
		r := &t.Grouped[i]
		rows[i] = r.Row
		rows[i].Quiet = r.Bound.Kind == FloorBound
		if t.CostKnown(r) { // what times alone say is more than it costs, or less
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
	NameApart(rows, func(row int) string { return t.Grouped[row].Label })
	t.nameJoint(rows)
	t.Tree = rows
	return t, nil
}

// total is the ns of all dispatches in all steps; 0 where one was not measured.
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

// Single reports that a row stands for itself: it is no heading, no member of another, and not several at
// once.
func (t *DispatchTree) Single(row int) bool {
	r := &t.Grouped[row]
	return !r.Group && !r.Joint && (r.Parent < 0 || t.Grouped[r.Parent].Group)
}

// heading reports that a row's own numbers come from the rows in it.
func (r *DispatchRow) heading() bool { return r.Group || !r.Equal }

// compare sets every launch's Delta and returns the launch of the baseline for each.
func (t *DispatchTree) compare(ctx context.Context) ([]*Launch, error) {
	c, err := t.Baseline.Compare(ctx, t.Index, t.Selection, t.Launches)
	t.Gone, t.ByOrder, t.ClockMoved, t.baseTotal = c.gone, c.byOrder, c.ClockMoved, c.total
	return c.Of, err
}

// canary is the ratio of the canary kernel, of several steps the median; 0 where it did not run.
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

// measure fills in what the row's own dispatches say.
func (t *DispatchTree) measure(r *DispatchRow) {
	first := &t.Launches[r.Units[0][0]]
	r.Summed, r.Equal = true, !r.Joint
	var iqrs []float64
	weighed := 0.0 // ns of all steps
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

// Each heads what is said of the members of a row one by one.
func (t *DispatchTree) Each() string {
	if t.Grouping == GroupLayer {
		return "layers"
	}
	return "each"
}

// delta compares the row's sum, repeat by repeat, with that of the baseline.
func (t *DispatchTree) delta(r *DispatchRow, baseline []*Launch) {
	var now, then []*Launch
	timed := true
	for _, unit := range r.Units {
		for _, i := range unit {
			l := &t.Launches[i]
			r.Delta.PlanDiff = r.Delta.PlanDiff.Or(l.Delta.PlanDiff)
			timed = timed && l.Delta.Timed
			now, then = append(now, l), append(then, baseline[i])
		}
	}
	if !timed {
		return
	}
	for _, l := range then {
		r.Delta.BaselineNS += l.Time.Median
	}
	// The figures that are shown are sums of medians, and so is their difference.
	r.Delta.Timed, r.Delta.TimeNS = true, r.SumNS-r.Delta.BaselineNS
	r.Delta.Equal = NoDifference(r.Delta.TimeNS, now, then, t.resolutionNS())
}

// NoDifference reports that two sums of times, of some launches and of those of a baseline, differ by no more
// than their scatter.
func NoDifference(ns float64, now, then []*Launch, resolutionNS float64) bool {
	return math.Abs(ns) <= max(resolutionNS, sumOf(now).Noise(), sumOf(then).Noise())
}

// sumOf is the variation of the sum of several dispatches over the repeats, or the steps, that all of them
// have.
func sumOf(launches []*Launch) Stats {
	repeats, steps := math.MaxInt, false
	for _, l := range launches {
		repeats, steps = min(repeats, len(l.Samples)), steps || l.at != nil
	}
	if steps {
		return sumOverSteps(launches)
	}
	sums := make([]int64, repeats)
	for _, l := range launches {
		for r := range sums {
			sums[r] = Add(sums[r], l.Samples[r])
		}
	}
	return StatsOf(sums)
}

func sumOverSteps(launches []*Launch) Stats {
	type sum struct {
		ns int64
		n  int
	}
	sums := map[int32]sum{}
	for _, l := range launches {
		for i, step := range l.at {
			s := sums[step]
			sums[step] = sum{Add(s.ns, l.Samples[i]), s.n + 1}
		}
	}
	var whole []int64
	for _, s := range sums {
		if s.n == len(launches) {
			whole = append(whole, s.ns)
		}
	}
	return StatsOf(whole)
}

// Timed reports that dispatches were timed in isolation.
func (t *DispatchTree) Timed() bool { return t.TimedSteps() == len(t.Selection.Steps) }

// TimedSteps is the number of steps of the selection that have a time for every dispatch.
func (t *DispatchTree) TimedSteps() int {
	n := 0
	for _, step := range t.Selection.Steps {
		if EachTimed(&t.Index.Trace.Steps[step]) {
			n++
		}
	}
	return n
}

// ofRow are the launches of a row.
func (t *DispatchTree) ofRow(r *DispatchRow) (list []*Launch) {
	for _, u := range r.Units {
		for _, i := range u {
			list = append(list, &t.Launches[i])
		}
	}
	return list
}

// Row is the row of a key, or -1.
func (t *DispatchTree) Row(key string) int {
	return slices.IndexFunc(t.Grouped, func(r DispatchRow) bool { return r.Key == key })
}

// Launch is a row's first dispatch; of a row that is Gone the baseline's.
func (t *DispatchTree) Launch(r *DispatchRow) *Launch {
	if r.Gone() {
		return r.Missing[0]
	}
	return &t.Launches[r.Units[0][0]]
}

// Gone reports that the row is of dispatches that ran at the baseline and not in this selection.
func (r *DispatchRow) Gone() bool { return r.Missing != nil }

// goneRows are the dispatches of the baseline that did not run: under a heading, those of equal layers one
// row with each of them in it.
func (t *DispatchTree) goneRows() []DispatchRow {
	if len(t.Gone) == 0 {
		return nil
	}
	var order []string
	alike := map[string][]*Launch{}
	for _, l := range t.Gone {
		name := t.Baseline.Index.Name(l.ID)
		if t.Grouping != GroupNone && l.Op.Layer != nil {
			name = fmt.Sprintf("%s %s %v", InLayer(name, *l.Op.Layer), l.Plan.Kernel, l.Plan.Workgroups)
		}
		if alike[name] == nil {
			order = append(order, name)
		}
		alike[name] = append(alike[name], l)
	}
	var rows []DispatchRow
	add := func(r tree.Row, label string, gone ...*Launch) (at int) {
		rows = append(rows, DispatchRow{
			Row: r, Label: label, Missing: gone, Outlier: -1, Equal: true,
			Delta: Delta{PlanDiff: PlanDiff{Gone: true}},
		})
		return len(t.Grouped) + len(rows) - 1
	}
	top := tree.Row{Key: "gone", Parent: -1, Children: true, Group: true, Open: true}
	head := add(top, "gone", t.Gone...)
	for _, name := range order {
		list := alike[name]
		first := list[0]
		label, key := t.Baseline.Index.Name(first.ID), fmt.Sprintf("gone/d%d", first.ID)
		if t.Grouping != GroupNone && first.Op.Layer != nil {
			label = InLayer(label, *first.Op.Layer)
		}
		row := add(tree.Row{Key: key, Parent: head, Depth: 1, Children: len(list) > 1}, label, list...)
		for _, l := range list {
			if len(list) > 1 {
				of := t.Baseline.Index.Name(l.ID)
				if l.Op.Layer != nil {
					of = LayerName(*l.Op.Layer)
				}
				add(tree.Row{Key: fmt.Sprintf("%s/d%d", key, l.ID), Parent: row, Depth: 2}, of, l)
			}
		}
	}
	return rows
}

// All reports whether something holds for all dispatches of a row.
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

// Same is a text that all dispatches of a row agree on, and whether they do.
func (t *DispatchTree) Same(r *DispatchRow, text func(*Launch) string) (string, bool) {
	first := text(t.Launch(r))
	if !t.All(r, func(l *Launch) bool { return text(l) == first }) {
		return "", false
	}
	return first, true
}

// Repeats is the number of samples that every dispatch has at least; 0 where one was not measured.
func (t *DispatchTree) Repeats() int {
	n := 0
	for i := range t.Launches {
		if k := t.Launches[i].Time.N; i == 0 || k < n {
			n = k
		}
	}
	return n
}

// Levels is how many levels the step had, and how many of the dispatches are in one: what other steps of a
// selection did has none.
func (t *DispatchTree) Levels() (levels, in int) {
	for i := range t.Launches {
		if level := t.Launches[i].Level; level >= 0 {
			levels, in = max(levels, level+1), in+1
		}
	}
	return levels, in
}

// Grids are the least and the most workgroups of the dispatches of a row that ran.
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
