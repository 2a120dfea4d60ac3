// Package diff compares two selections of steps: of one run, of two runs or builds, or of two engines. It
// says which dispatches were added, are gone or run differently, and which times differ significantly.
//
//	d, err := diff.Of(ctx, diff.Side{Index: before, Selection: s}, diff.Side{Index: after, Selection: t})
//
// The first side is the baseline. A difference is the second side minus the first. Package join pairs the
// dispatches, and package noise decides what is significant. All times are in ns, and per step: a dispatch
// that ran in half of the selected steps counts half.
package diff

import (
	"context"
	"errors"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/analyze/noise"
	"gpuscope/trace/analyze/workclass"
)

// Side is one of the two selections.
type Side struct {
	Index     *analyze.Index
	Selection analyze.Selection
	Name      string // such as the name of the file
}

// ErrNoSteps is returned for a selection without steps.
var ErrNoSteps = errors.New("the selection has no steps")

// Status says whether something exists on both sides.
type Status string

// The statuses that a row or a group can have.
const (
	Same    Status = "same"    // the same plan, and no significant difference in time
	Changed Status = "changed" // another plan, or a significant difference in time
	Added   Status = "added"   // only on the second side
	Gone    Status = "gone"    // only at the baseline
	// Incomparable is the status if the two sides may not do the same work (Times.OtherWork).
	Incomparable Status = "incomparable"
)

// Time is a time on one side. NS is the median of N times or, for a group, the sum of such medians.
type Time struct {
	NS       float64
	N        int
	Measured bool
	ErrorNS  float64 // ± of NS, as trace.MedianWithin defines it
	HasError bool    // there are enough times for ErrorNS
}

// Times is a comparison of two times. If one side does not exist, its time is 0 and not measured, and the
// difference is the time of the other side.
type Times struct {
	Base, Now Time
	noise.Verdict
	// OtherWork reports that the times may not be of the same work, so they are not compared. This is so if
	// dispatches were joined in order, or if the graphs differ and only one side has some of the dispatches
	// of an operator or a kind. The other side may do their work in other groups.
	OtherWork bool
}

// Both reports whether both times were measured and are of the same work.
func (t *Times) Both() bool { return t.Base.Measured && t.Now.Measured && !t.OtherWork }

// Relative returns the difference as a fraction of the baseline, and false if it is not known.
func (t *Times) Relative() (float64, bool) {
	if !t.Both() || t.Base.NS <= 0 {
		return 0, false
	}
	return t.DeltaNS / t.Base.NS, true
}

// Row is a piece of work: a dispatch that ran on at least one side, or several that a fused dispatch of the
// other side replaces.
type Row struct {
	Name   string // full name: that of the fused dispatch or, if none is fused, that of the second side
	Place  string // name without the layer
	Kind   string // kind of operator
	Class  workclass.Class
	Layer  string // "layer 3", "prologue", "epilogue", or "" for a graph without layers
	Status Status
	// Plan says how the plans differ. It is empty for different engines, whose plans cannot be compared.
	Plan  trace.PlanDiff
	Base  []*analyze.Launch // nil if Status is Added
	Now   []*analyze.Launch // nil if Status is Gone
	Times Times
}

// By says what the dispatches of a group have in common.
type By string

// The groupings. Each dispatch is in one group of each grouping.
const (
	ByKernel By = "kernel"
	ByOp     By = "op"    // the operator's place in its layer: "mlp.down"
	ByKind   By = "kind"  // the kind of operator: "linear_q4gsw"
	ByClass  By = "class" // the class of work, which all engines share: "gate and up"
	ByLayer  By = "layer" // "layer 3"
)

// Group is a set of dispatches. The time of each side is that of the dispatches that are in the group on this
// side. A fused dispatch may have another kernel and another class than the dispatches that it replaces.
type Group struct {
	By        By
	Name      string
	Base, Now int // number of dispatches on each side
	Status    Status
	Times     Times
	Rows      []int // indices into Diff.Rows
}

// Diff is the result of a comparison.
type Diff struct {
	Base, Now Side
	// BaseRows and NowRows are the steps whose dispatches are compared: the selected steps in which every
	// dispatch was timed or, if these are too few, the last step that was repeated.
	BaseRows, NowRows analyze.Selection
	Joined            join.How
	SameEngine        bool
	Noise             *noise.Model
	Rows              []Row   // in order of submission, then those that are gone
	Groups            []Group // significant ones first, by size
	Isolated          Times   // sum of the times of all dispatches
	Totals            []Total

	clock   float64                              // like Noise.Clock, but for all selected steps
	classes map[*analyze.Index][]workclass.Class // of the operators of each trace
}

// Of compares two selections. It first narrows both with Narrowed, so that all times of a side are of the
// same steps. It returns ErrNoSteps if one of the selections is empty.
func Of(ctx context.Context, base, now Side) (*Diff, error) {
	if len(base.Selection.Steps) == 0 || len(now.Selection.Steps) == 0 {
		return nil, ErrNoSteps
	}
	base, now = Narrowed(base, now)
	d := &Diff{
		Base: base, Now: now, BaseRows: timedSteps(base), NowRows: timedSteps(now),
		SameEngine: base.Index.Trace.Engine == now.Index.Trace.Engine,
	}
	launches, err := now.Index.Launches(ctx, d.NowRows)
	if err != nil {
		return nil, err
	}
	b := &analyze.Baseline{Index: base.Index, Selection: d.BaseRows}
	c, err := b.Compare(ctx, now.Index, d.NowRows, launches)
	if err != nil {
		return nil, err
	}
	d.Joined = c.Joined
	d.addRows(c.Pieces)
	d.group()
	d.addTotals()
	d.Noise = c.Noise.For(len(d.Rows) + len(d.Groups) + len(d.Totals) + 1)
	all := &analyze.Baseline{Index: base.Index, Selection: base.Selection}
	d.clock = all.ClockShift(now.Index, now.Selection)
	if d.Noise.Clock == 0 { // the canary ran in other steps than those whose dispatches were timed
		d.Noise.Clock = d.clock
	}
	d.judge(c.Pair)
	slices.SortStableFunc(d.Groups, func(a, b Group) int {
		return noise.BySize(a.Times.Verdict, b.Times.Verdict)
	})
	return d, nil
}

// Narrowed returns the sides with the steps that Of compares: on both sides, those that read one number of
// tokens and, on each side, those that took the same routes as the last of them (analyze.Options.Routed).
// Both selections must have steps.
func Narrowed(base, now Side) (Side, Side) {
	o := analyze.Options{
		Selection: now.Selection,
		Baseline:  &analyze.Baseline{Index: base.Index, Selection: base.Selection},
	}.Routed(now.Index)
	base.Selection, now.Selection = o.Baseline.Selection, o.Selection
	return base, now
}

// timedSteps returns the steps of a side whose dispatches are compared.
func timedSteps(s Side) analyze.Selection {
	of, t := s.Selection, s.Index.Trace
	var timed []int
	repeated := -1
	for _, step := range of.Steps {
		if analyze.EachTimed(&t.Steps[step]) {
			timed = append(timed, step)
		}
		if analyze.Repeated(&t.Steps[step]) {
			repeated = step
		}
	}
	switch {
	case len(timed) >= trace.FewestWithin:
		of.Steps = timed
	case repeated >= 0:
		return s.Index.Step(repeated)
	case len(timed) > 0:
		of.Steps = timed
	}
	return of
}

func (d *Diff) addRows(pieces []analyze.Piece) {
	for _, p := range pieces {
		r := Row{Now: p.Now, Base: p.Base, Status: Same}
		switch {
		case len(p.Base) == 0:
			r.Status, r.Plan.New = Added, true
		case len(p.Now) == 0:
			r.Status, r.Plan.Gone = Gone, true
		case len(p.Now) == 1:
			r.Plan = p.Now[0].Delta.PlanDiff
		}
		switch {
		case d.Joined == join.ByOrder:
			r.Status, r.Plan, r.Times.OtherWork = Incomparable, trace.PlanDiff{}, true
		case r.Status != Same:
		case r.Plan.Any() || len(p.Now) != len(p.Base):
			r.Status = Changed
		}
		if d.namedByBase(&p) {
			d.describe(&r, d.Base.Index, p.Base)
		} else {
			d.describe(&r, d.Now.Index, p.Now)
		}
		r.Times.Base, r.Times.Now = d.time(p.Base, false), d.time(p.Now, true)
		r.Times.DeltaNS = r.Times.Now.NS - r.Times.Base.NS
		d.Rows = append(d.Rows, r)
	}
}

// namedByBase reports whether a row has the name of the baseline. A row has the name of the side whose
// dispatches are fused: it has fewer of them, or its operator has parts.
func (d *Diff) namedByBase(p *analyze.Piece) bool {
	switch base, now := len(p.Base), len(p.Now); {
	case base == 0, now == 0:
		return now == 0
	case base != now:
		return base < now
	}
	return len(p.Now[0].Op.Parts) == 0 && len(p.Base[0].Op.Parts) > 0
}

// describe sets the names of a row from the dispatches of one side. Several dispatches have the name of the
// operator of the first.
func (d *Diff) describe(r *Row, x *analyze.Index, of []*analyze.Launch) {
	l := of[0]
	r.Name, r.Place, r.Kind = x.Name(l.ID), l.Dispatch.Named(l.Op.Place()), l.Op.Kind
	if len(of) > 1 {
		r.Name, r.Place = l.Op.Name, l.Op.Place()
	}
	r.Class = d.class(x, l)
	r.Layer = layerOf(x, l)
}

// class returns the class of work of a dispatch of one of the two traces.
func (d *Diff) class(x *analyze.Index, l *analyze.Launch) workclass.Class {
	if d.classes == nil {
		d.classes = map[*analyze.Index][]workclass.Class{}
	}
	if d.classes[x] == nil {
		d.classes[x] = workclass.Of(&x.Trace.Graph)
	}
	return d.classes[x][l.Op.ID]
}

// weight returns the number of compared steps in which a launch ran, as a fraction of all compared steps of
// its side. `now` is set for the second side.
func (d *Diff) weight(l *analyze.Launch, now bool) float64 {
	steps := len(d.BaseRows.Steps)
	if now {
		steps = len(d.NowRows.Steps)
	}
	return float64(l.Runs) / float64(steps)
}

// time returns the total time of several launches of one side.
func (d *Diff) time(launches []*analyze.Launch, now bool) Time {
	t := Time{Measured: len(launches) > 0}
	for i, l := range launches {
		t.Measured = t.Measured && l.Time.Measured()
		t.NS += l.Time.Median * d.weight(l, now)
		if i == 0 || l.Time.N < t.N {
			t.N = l.Time.N
		}
	}
	if !t.Measured {
		return Time{}
	}
	if len(launches) == 1 {
		t.withError(slices.Sorted(slices.Values(launches[0].Samples)), d.weight(launches[0], now))
	}
	return t
}

// withError sets the error from a sorted list of times.
func (t *Time) withError(sorted []int64, weight float64) {
	if len(sorted) == 0 {
		return
	}
	if low, high, ok := trace.MedianWithin(sorted); ok {
		t.ErrorNS, t.HasError = max(t.NS-float64(low)*weight, float64(high)*weight-t.NS), true
	}
}

// layerOf returns the layer of a dispatch: "layer 3", "prologue" or "epilogue", or "" for a graph without
// layers.
func layerOf(x *analyze.Index, l *analyze.Launch) string {
	if l.Op.Layer != nil {
		return "layer " + analyze.LayerName(*l.Op.Layer)[1:]
	}
	return x.Graph.Layers.Part(l.Op)
}

// groupOf returns the name of the group of a dispatch, or "" if it belongs to none. The dispatches of a row
// belong to the same operator, unless they were paired in order.
func (d *Diff) groupOf(by By, x *analyze.Index, l *analyze.Launch, r *Row) string {
	switch by {
	case ByKernel:
		return trace.OwnKernel(l.Plan.Kernel)
	case ByClass:
		return string(d.class(x, l))
	case ByLayer:
		return layerOf(x, l)
	}
	place, kind := r.Place, r.Kind
	if d.Joined == join.ByOrder {
		place, kind = l.Dispatch.Named(l.Op.Place()), l.Op.Kind
	}
	if by == ByKind {
		return kind
	}
	return place
}

// sameKernel reports whether both sides have the same kernel of a name, or only one side has the name. The
// number at the end of a name counts the variants in a graph. So if the graphs differ, kernels are only the
// same if their sources are.
func (d *Diff) sameKernel(name string) bool {
	if d.Joined == join.ByID {
		return true
	}
	base, now := d.Base.Index.Kernel(name), d.Now.Index.Kernel(name)
	return base == nil || now == nil || base.SourceSHA256 == now.SourceSHA256
}

// members holds the dispatches of a group on both sides.
type members struct{ base, now []*analyze.Launch }

// group divides the rows into groups. The time on each side belongs to the kernel, the class and the layer
// of the dispatch that ran on that side, so a row can belong to several groups. A fused dispatch and the
// dispatches that it replaces belong to the same operator, and to its kind.
func (d *Diff) group() {
	type key struct {
		by   By
		name string
		now  bool // whose kernel it is, if the other side has another kernel of this name
	}
	index := map[key]int{}
	// at returns the group of a dispatch of one side, and adds its row to the group.
	at := func(by By, row int, now bool, l *analyze.Launch) *Group {
		x := d.Base.Index
		if now {
			x = d.Now.Index
		}
		k := key{by: by, name: d.groupOf(by, x, l, &d.Rows[row])}
		if k.name == "" {
			return new(Group)
		}
		k.now = now && by == ByKernel && !d.sameKernel(k.name)
		i, ok := index[k]
		if !ok {
			i = len(d.Groups)
			index[k] = i
			d.Groups = append(d.Groups, Group{By: by, Name: k.name})
		}
		g := &d.Groups[i]
		if n := len(g.Rows); n == 0 || g.Rows[n-1] != row {
			g.Rows = append(g.Rows, row)
		}
		return g
	}
	for _, by := range []By{ByClass, ByKernel, ByKind, ByLayer, ByOp} {
		for i := range d.Rows {
			for _, l := range d.Rows[i].Now {
				at(by, i, true, l).Now++
			}
			for _, l := range d.Rows[i].Base {
				at(by, i, false, l).Base++
			}
		}
	}
}

// members returns the dispatches of a group, on the sides where it has any.
func (d *Diff) members(g *Group) (m members) {
	for _, i := range g.Rows {
		r := &d.Rows[i]
		for _, l := range r.Now {
			if g.Now > 0 && d.groupOf(g.By, d.Now.Index, l, r) == g.Name {
				m.now = append(m.now, l)
			}
		}
		for _, l := range r.Base {
			if g.Base > 0 && d.groupOf(g.By, d.Base.Index, l, r) == g.Name {
				m.base = append(m.base, l)
			}
		}
	}
	return m
}

// pairing is the type of the function that returns the times of launches for package noise.
type pairing func(nowNS, baseNS float64, now, base []*analyze.Launch) noise.Pair

// judge decides which rows, groups and totals differ significantly.
func (d *Diff) judge(pair pairing) {
	test := func(t *Times, m members) {
		t.DeltaNS = t.Now.NS - t.Base.NS
		if t.Both() {
			p := pair(t.Now.NS, t.Base.NS, m.now, m.base)
			t.Verdict = d.Noise.Judge(&p)
		}
	}
	var all members
	for i := range d.Rows {
		r := &d.Rows[i]
		m := members{r.Base, r.Now}
		all.base, all.now = append(all.base, m.base...), append(all.now, m.now...)
		if test(&r.Times, m); r.Times.Significant && r.Status == Same {
			r.Status = Changed
		}
	}
	for i := range d.Groups {
		g := &d.Groups[i]
		m := d.members(g)
		g.Times.Base, g.Times.Now = d.time(m.base, false), d.time(m.now, true)
		g.Times.OtherWork = d.otherWork(g)
		test(&g.Times, m)
		switch {
		case g.Times.OtherWork:
			g.Status = Incomparable
		case g.Base == 0:
			g.Status = Added
		case g.Now == 0:
			g.Status = Gone
		case g.Times.Significant,
			slices.ContainsFunc(g.Rows, func(i int) bool { return d.Rows[i].Status != Same }):
			g.Status = Changed
		default:
			g.Status = Same
		}
	}
	d.Isolated.Base, d.Isolated.Now = d.time(all.base, false), d.time(all.now, true)
	test(&d.Isolated, all)
	whole := d.Noise.For(d.Noise.Tests)
	whole.Clock = d.clock
	for i := range d.Totals {
		switch t := &d.Totals[i]; {
		case t.Why != "":
		case t.Repeats:
			t.Times.Verdict = whole.Medians(t.Times.Base.estimate(), t.Times.Now.estimate(),
				whole.WholeBand(t.band))
		default:
			t.Times.Verdict = whole.Within(&t.pair, whole.WholeBand(t.band))
		}
	}
}

// otherWork reports whether the times of a group may not be of the same work (see Times.OtherWork).
func (d *Diff) otherWork(g *Group) bool {
	oneSided := func(i int) bool { return d.Rows[i].Now == nil || d.Rows[i].Base == nil }
	ordered := d.Joined == join.ByOrder
	switch class := workclass.Class(g.Name); {
	case g.By == ByClass && !ordered:
		return workclass.DependsOnNames(class) && d.unnamed(false) != d.unnamed(true)
	case d.Joined == join.ByID, g.By == ByKernel:
		return false
	case ordered:
		return true
	}
	return g.By != ByLayer && g.Base > 0 && g.Now > 0 && slices.ContainsFunc(g.Rows, oneSided)
}

// unnamed returns workclass.Unnamed of a side. `now` is set for the second side.
func (d *Diff) unnamed(now bool) bool {
	return workclass.Unnamed(func(c workclass.Class) bool {
		return slices.ContainsFunc(d.Groups, func(g Group) bool {
			return g.By == ByClass && g.Name == string(c) && (now && g.Now > 0 || !now && g.Base > 0)
		})
	})
}

// Count returns the number of rows for which a condition holds.
func (d *Diff) Count(is func(*Row) bool) int {
	n := 0
	for i := range d.Rows {
		if is(&d.Rows[i]) {
			n++
		}
	}
	return n
}

// GroupsBy returns the groups of one grouping, significant ones first.
func (d *Diff) GroupsBy(by By) (list []*Group) {
	for i := range d.Groups {
		if d.Groups[i].By == by {
			list = append(list, &d.Groups[i])
		}
	}
	return list
}

// First returns the group of a grouping with the largest significant change of its time. If the sum of all
// times differs significantly, this is one that changed in the same direction, if there is one. First returns
// nil if no change is significant.
func (d *Diff) First(by By) (first *Group) {
	for _, g := range d.GroupsBy(by) { // significant ones first, by size
		switch {
		case !g.Times.Significant:
			return first
		case !d.Isolated.Significant, g.Times.DeltaNS*d.Isolated.DeltaNS > 0:
			return g
		case first == nil:
			first = g
		}
	}
	return first
}

// Within narrows down where a difference is. It returns a group of another grouping that contains at least
// half of the difference of g, and whose rows are a part of the rows of g. It returns nil if there is no such
// group.
func (d *Diff) Within(g *Group, by By) *Group {
	for _, o := range d.GroupsBy(by) {
		if len(o.Rows) >= len(g.Rows) || !o.Times.Significant || o.Times.DeltaNS*g.Times.DeltaNS <= 0 ||
			math.Abs(o.Times.DeltaNS) < math.Abs(g.Times.DeltaNS)/2 {
			continue
		}
		if !slices.ContainsFunc(o.Rows, func(i int) bool { return !slices.Contains(g.Rows, i) }) {
			return o
		}
	}
	return nil
}

// Significant reports whether any time differs significantly.
func (d *Diff) Significant() bool {
	return d.Isolated.Significant ||
		slices.ContainsFunc(d.Rows, func(r Row) bool { return r.Times.Significant }) ||
		slices.ContainsFunc(d.Groups, func(g Group) bool { return g.Times.Significant }) ||
		slices.ContainsFunc(d.Totals, func(t Total) bool { return t.Times.Significant })
}
