package analyze

import (
	"context"
	"math"
	"strings"

	"gpuscope/trace"
)

// PlanDiff is how a dispatch's plan differs from another.
type PlanDiff struct {
	Grid, Route, Params bool
	Text                bool // another text of the same kernel
	New, Gone           bool // there is no other; there is none any more
}

// DiffPlans compares two plans of one dispatch; nil is a step in which it did not run.
func DiffPlans(from, to *trace.Plan) PlanDiff {
	d := diffLaunches(from, to)
	if from != nil && to != nil {
		d.Params, d.Text = from.Params != to.Params, from.Kernel != to.Kernel && !d.Route
	}
	return d
}

// diffLaunches is how two plans launch otherwise, without what takes longer to be compared.
func diffLaunches(from, to *trace.Plan) PlanDiff {
	if from == nil || to == nil {
		return PlanDiff{New: from == nil && to != nil, Gone: from != nil && to == nil}
	}
	return PlanDiff{Grid: from.Workgroups != to.Workgroups, Route: from.Reroutes(to)}
}

// LaunchesOtherwise says whether one plan launches otherwise than another.
func LaunchesOtherwise(a, b *trace.Plan) bool { return diffLaunches(a, b).Any() }

// Any says whether anything differs.
func (d PlanDiff) Any() bool { return d != PlanDiff{} }

// Regrids says whether it is more than params or a kernel's text that differs.
func (d PlanDiff) Regrids() bool { return d.Grid || d.Route || d.New || d.Gone }

func (d PlanDiff) Or(e PlanDiff) PlanDiff {
	return PlanDiff{
		Grid: d.Grid || e.Grid, Route: d.Route || e.Route, Params: d.Params || e.Params,
		Text: d.Text || e.Text, New: d.New || e.New, Gone: d.Gone || e.Gone,
	}
}

// String has a letter for each: g grid, r route, k text of the kernel, p params, + new, - gone.
func (d PlanDiff) String() string {
	var b strings.Builder
	for _, m := range []struct {
		on   bool
		mark byte
	}{{d.New, '+'}, {d.Gone, '-'}, {d.Grid, 'g'}, {d.Route, 'r'}, {d.Text, 'k'}, {d.Params, 'p'}} {
		if m.on {
			b.WriteByte(m.mark)
		}
	}
	return b.String()
}

// Delta is a dispatch, or several, against a base step.
type Delta struct {
	PlanDiff
	From *trace.Plan // of the base; nil where it did not run there, and of several dispatches
	// Timed says that both sides have repeats enough to be compared. TimeNS is then the time less BaseNS, and
	// Equal that it is within max(2 quanta, IQR), or the range of the samples where they are too few for an
	// IQR.
	Timed          bool
	TimeNS, BaseNS float64
	Equal          bool
}

// deltaOf compares a launch with the same dispatch of a base step. Times of single runs are not compared: one
// sample says nothing of its spread.
func deltaOf(now, base *Launch, resolutionNS float64, sameClock bool) Delta {
	if base == nil {
		return Delta{PlanDiff: PlanDiff{New: true}}
	}
	d := Delta{PlanDiff: DiffPlans(base.Plan, now.Plan), From: base.Plan}
	if sameClock && now.Time.N > 1 && base.Time.N > 1 {
		d.Timed, d.TimeNS, d.BaseNS = true, now.Time.Median-base.Time.Median, base.Time.Median
		d.Equal = math.Abs(d.TimeNS) <= max(resolutionNS, now.Time.Noise(), base.Time.Noise())
	}
	return d
}

// Base is what tables compare with; it may belong to another trace.
type Base struct {
	Index *Index
	Scope Scope
}

// ResolutionNS is the least difference that the clocks of a run and of the base can tell; b may be nil.
func (b *Base) ResolutionNS(x *Index) float64 {
	if b == nil {
		return resolutionNS(x.Trace)
	}
	return max(resolutionNS(x.Trace), resolutionNS(b.Index.Trace))
}

// ClockMoved says that the canary ran at another speed in a scope than at the base.
func (b *Base) ClockMoved(x *Index, s Scope) bool {
	return b.SpeedMoved(x, x.canary(s), b.Index.canary(b.Scope))
}

// SpeedMoved compares two speeds of the canary, of a run and of the base's, each in proportion to what it
// took on its own run's warm device. It does not know where one of both is 0: none ran.
func (b *Base) SpeedMoved(x *Index, now, before float64) bool {
	ns, ok := x.Trace.Clock.CanaryNS.NS()
	if base, both := b.Index.Trace.Clock.CanaryNS.NS(); ok && both && ns > 0 && base > 0 {
		now, before = now/float64(ns), before/float64(base)
	}
	return now > 0 && before > 0 && math.Abs(now/before-1) > trace.ClockMoved
}

// comparison is the launches of a scope beside those of a base.
type comparison struct {
	Of                  []*Launch // of the base, for each; nil for what did not run there
	gone                []*Launch
	byOrder, ClockMoved bool
	total               float64 // ns of the base
}

// Compare sets the Delta of every launch of a scope.
func (b *Base) Compare(ctx context.Context, x *Index, scope Scope, launches []Launch) (comparison, error) {
	then, err := b.Index.Launches(ctx, b.Scope)
	if err != nil {
		return comparison{}, err
	}
	c := comparison{ClockMoved: b.ClockMoved(x, scope), total: total(then)}
	c.Of, c.gone, c.byOrder = join(launches, then)
	for i := range launches {
		launches[i].Delta = deltaOf(&launches[i], c.Of[i], b.ResolutionNS(x), !c.ClockMoved)
	}
	return c, nil
}

// BaseCosts are the costs of a base beside those of a step.
type BaseCosts struct {
	*StepCosts
	X    *Index
	Base *Base
}

// CostsBeside are the costs of a base that can be compared with those of a step; nil where there are none, or
// the clock moved between both. b may be nil.
func (b *Base) CostsBeside(now *StepCosts) *BaseCosts {
	if b == nil || now == nil {
		return nil
	}
	c := b.Index.Costs(b.Scope)
	if c == nil || c.Step == now.Step || now.Step.Whole != nil && c.Step.Whole != nil &&
		b.SpeedMoved(now.X, now.Step.Whole.Canary, c.Step.Whole.Canary) {
		return nil
	}
	return &BaseCosts{c, now.X, b}
}

// Same says that dispatches are those of the same names in the base's graph.
func (c *BaseCosts) Same(ids []trace.DispatchID) bool {
	for _, id := range ids {
		if int(id) >= len(c.Base.Index.Trace.Graph.Dispatches) || c.Base.Index.Name(id) != c.X.Name(id) {
			return false
		}
	}
	return true
}

// join finds for every launch the one of the base that is the same dispatch: by id where the graphs agree on
// what the id is, in another graph by the names of operator and slot; of several the one of the same work.
// Where they have no dispatch in common they are joined by order. What is gone is there once, as the last
// step that had it ran it.
func join(now, base []Launch) (of []*Launch, gone []*Launch, byOrder bool) {
	of = make([]*Launch, len(now))
	b := newBaseLaunches(base)
	found := make(map[trace.DispatchID]bool, len(now))
	for i := range now {
		if of[i] = b.find(&now[i]); of[i] != nil {
			found[of[i].ID] = true
		}
	}
	if len(found) == 0 && len(base) > 0 {
		for i := range min(len(now), len(base)) {
			of[i], found[base[i].ID] = &base[i], true
		}
		byOrder = len(now) > 0
	}
	for i := range base {
		if !found[base[i].ID] {
			gone, found[base[i].ID] = append(gone, &base[i]), true
		}
	}
	return of, gone, byOrder
}

// baseLaunches finds launches of a base.
type baseLaunches struct {
	byID   map[trace.DispatchID][]*Launch
	byName map[string][]*Launch
}

func newBaseLaunches(base []Launch) baseLaunches {
	b := baseLaunches{
		make(map[trace.DispatchID][]*Launch, len(base)), make(map[string][]*Launch, len(base)),
	}
	for i := range base {
		l := &base[i]
		b.byID[l.ID] = append(b.byID[l.ID], l)
		b.byName[l.slot()] = append(b.byName[l.slot()], l)
	}
	return b
}

// slot names a dispatch in its graph.
func (l *Launch) slot() string { return l.Op.Name + "\x00" + l.Dispatch.Label }

func (b baseLaunches) find(l *Launch) *Launch {
	list := b.byID[l.ID]
	if len(list) == 0 || list[0].slot() != l.slot() {
		list = b.byName[l.slot()]
	}
	for _, c := range list {
		if trace.OwnKernel(c.Plan.Kernel) == trace.OwnKernel(l.Plan.Kernel) && c.Tokens == l.Tokens {
			return c
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}
