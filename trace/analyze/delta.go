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

// LaunchesOtherwise reports whether two plans differ in grid or route.
func LaunchesOtherwise(a, b *trace.Plan) bool { return diffLaunches(a, b).Any() }

// Any reports whether anything differs.
func (d PlanDiff) Any() bool { return d != PlanDiff{} }

// Regrids reports whether it is more than params or a kernel's text that differs.
func (d PlanDiff) Regrids() bool { return d.Grid || d.Route || d.New || d.Gone }

// Or has what differs in either of two differences.
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

// Delta is a dispatch, or several, against a baseline step.
type Delta struct {
	PlanDiff
	From *trace.Plan // of the baseline; nil where it did not run there, and of several dispatches
	// Timed reports that both sides have repeats enough to be compared. TimeNS is then the time less BaseNS,
	// and Equal that it is within max(2 quanta, IQR), or the range of the samples where they are too few for
	// an IQR.
	Timed              bool
	TimeNS, BaselineNS float64
	Equal              bool
}

// deltaOf compares a launch with the same dispatch of a baseline step. Times of single runs are not compared:
// one sample says nothing of its spread.
func deltaOf(now, baseline *Launch, resolutionNS float64, sameClock bool) Delta {
	if baseline == nil {
		return Delta{PlanDiff: PlanDiff{New: true}}
	}
	d := Delta{PlanDiff: DiffPlans(baseline.Plan, now.Plan), From: baseline.Plan}
	if sameClock && now.Time.N > 1 && baseline.Time.N > 1 {
		d.Timed, d.TimeNS, d.BaselineNS = true, now.Time.Median-baseline.Time.Median, baseline.Time.Median
		d.Equal = math.Abs(d.TimeNS) <= max(resolutionNS, now.Time.Noise(), baseline.Time.Noise())
	}
	return d
}

// Baseline is what tables compare with; it may be in another trace.
type Baseline struct {
	Index     *Index
	Selection Selection
}

// ResolutionNS is the least difference that the clocks of a run and of the baseline can tell; b may be nil.
func (b *Baseline) ResolutionNS(x *Index) float64 {
	if b == nil {
		return resolutionNS(x.Trace)
	}
	return max(resolutionNS(x.Trace), resolutionNS(b.Index.Trace))
}

// ClockMoved reports whether the GPU clock differed between a selection and the baseline.
func (b *Baseline) ClockMoved(x *Index, s Selection) bool {
	return b.SpeedMoved(x, x.canary(s), b.Index.canary(b.Selection))
}

// SpeedMoved compares two speeds of the canary, of a run and of the baseline's, each in proportion to what it
// took on its own run's warm device. It does not know where one of both is 0: none ran.
func (b *Baseline) SpeedMoved(x *Index, now, before float64) bool {
	ns, ok := x.Trace.Clock.CanaryNS.NS()
	if baseline, both := b.Index.Trace.Clock.CanaryNS.NS(); ok && both && ns > 0 && baseline > 0 {
		now, before = now/float64(ns), before/float64(baseline)
	}
	return now > 0 && before > 0 && math.Abs(now/before-1) > trace.ClockMoved
}

// comparison is the launches of a selection beside those of a baseline.
type comparison struct {
	Of                  []*Launch // of the baseline, for each; nil for what did not run there
	gone                []*Launch
	byOrder, ClockMoved bool
	total               float64 // ns of the baseline
}

// Compare sets the Delta of every launch of a selection.
func (b *Baseline) Compare(ctx context.Context, x *Index, selection Selection,
	launches []Launch,
) (comparison, error) {
	then, err := b.Index.Launches(ctx, b.Selection)
	if err != nil {
		return comparison{}, err
	}
	c := comparison{ClockMoved: b.ClockMoved(x, selection), total: total(then)}
	c.Of, c.gone, c.byOrder = join(launches, then)
	for i := range launches {
		launches[i].Delta = deltaOf(&launches[i], c.Of[i], b.ResolutionNS(x), !c.ClockMoved)
	}
	return c, nil
}

// BaselineCosts are the costs of a baseline beside those of a step.
type BaselineCosts struct {
	*StepCosts
	X        *Index
	Baseline *Baseline
}

// CostsBeside are the costs of a baseline that can be compared with those of a step; nil where there are
// none, or the clock moved between both. b may be nil.
func (b *Baseline) CostsBeside(now *StepCosts) *BaselineCosts {
	if b == nil || now == nil {
		return nil
	}
	c := b.Index.Costs(b.Selection)
	if c == nil || c.Step == now.Step || now.Step.Whole != nil && c.Step.Whole != nil &&
		b.SpeedMoved(now.X, now.Step.Whole.Canary, c.Step.Whole.Canary) {
		return nil
	}
	return &BaselineCosts{c, now.X, b}
}

// Same reports that dispatches are those of the same names in the baseline's graph.
func (c *BaselineCosts) Same(ids []trace.DispatchID) bool {
	for _, id := range ids {
		if int(id) >= len(c.Baseline.Index.Trace.Graph.Dispatches) ||
			c.Baseline.Index.Name(id) != c.X.Name(id) {
			return false
		}
	}
	return true
}

// join finds for every launch the one of the baseline that is the same dispatch: by id where the graphs agree
// on what the id is, in another graph by the names of operator and slot; of several the one of the same work.
// Where they have no dispatch in common they are joined by order. What is gone is there once, as the last
// step that had it ran it.
func join(now, baseline []Launch) (of []*Launch, gone []*Launch, byOrder bool) {
	of = make([]*Launch, len(now))
	b := newBaselineLaunches(baseline)
	found := make(map[trace.DispatchID]bool, len(now))
	for i := range now {
		if of[i] = b.find(&now[i]); of[i] != nil {
			found[of[i].ID] = true
		}
	}
	if len(found) == 0 && len(baseline) > 0 {
		for i := range min(len(now), len(baseline)) {
			of[i], found[baseline[i].ID] = &baseline[i], true
		}
		byOrder = len(now) > 0
	}
	for i := range baseline {
		if !found[baseline[i].ID] {
			gone, found[baseline[i].ID] = append(gone, &baseline[i]), true
		}
	}
	return of, gone, byOrder
}

// baselineLaunches finds launches of a baseline.
type baselineLaunches struct {
	byID   map[trace.DispatchID][]*Launch
	byName map[string][]*Launch
}

func newBaselineLaunches(baseline []Launch) baselineLaunches {
	b := baselineLaunches{
		make(map[trace.DispatchID][]*Launch, len(baseline)), make(map[string][]*Launch, len(baseline)),
	}
	for i := range baseline {
		l := &baseline[i]
		b.byID[l.ID] = append(b.byID[l.ID], l)
		b.byName[l.slot()] = append(b.byName[l.slot()], l)
	}
	return b
}

// slot names a dispatch in its graph.
func (l *Launch) slot() string { return l.Op.Name + "\x00" + l.Dispatch.Label }

func (b baselineLaunches) find(l *Launch) *Launch {
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
