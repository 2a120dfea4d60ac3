package analyze

import (
	"context"
	"math"

	"gpuscope/trace"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/analyze/noise"
)

// Delta is the difference between dispatches in a selection and the same dispatches at a baseline.
type Delta struct {
	trace.PlanDiff
	// From is the plan at the baseline. It is nil if the dispatch did not run at the baseline, or if Delta
	// compares several dispatches.
	From *trace.Plan
	// BaselineNS is the time at the baseline. HasBaseline reports that this time was measured.
	HasBaseline bool
	BaselineNS  float64
	// TimeNS is the time in the selection minus BaselineNS. Measured reports that TimeNS is known. If a
	// dispatch ran on one side but not on the other, its time on the other side is 0.
	Measured bool
	TimeNS   float64
	// Timed reports that both the selection and the baseline have enough repeats for a comparison. Equal
	// reports that the difference is then not significant (package noise).
	Timed bool
	Equal bool
}

// OneSided reports whether the dispatches ran only in the selection or only at the baseline.
func (d *Delta) OneSided() bool {
	return d.Measured && (!d.HasBaseline || d.BaselineNS+d.TimeNS == 0)
}

// deltaOf compares a launch with its counterparts at the baseline. It compares plans only if there is one
// counterpart, from the same engine. It compares times only if all launches have several samples, because the
// variation of a single sample is not known.
func (c *comparison) deltaOf(now *Launch, sameEngine bool) (d Delta) {
	list := []*Launch{now}
	then := c.Counterparts(list)
	if then.added > 0 {
		d.New, d.Measured = true, now.Time.Measured() && !c.ClockMoved && c.Joined != join.ByOrder
		if d.Measured {
			d.TimeNS = now.Time.Median
		}
		return d
	}
	if len(then.Launches) == 1 && sameEngine && !then.part {
		d.From = then.Launches[0].Plan
		if d.PlanDiff = trace.DiffPlans(d.From, now.Plan); c.Joined == join.ByOperator && d.Route {
			// Names of kernels have numbers that differ between graphs.
			d.Route = d.From.Route != now.Plan.Route
		}
		if c.Joined == join.ByID {
			d.Text = d.Text || c.otherSource(d.From.Kernel, now.Plan.Kernel)
		}
	}
	if c.ClockMoved || len(then.Launches) == 0 {
		return d
	}
	d.HasBaseline, d.Timed = true, now.Time.N > 1
	for _, l := range then.Launches {
		d.HasBaseline, d.Timed = d.HasBaseline && l.Time.Measured(), d.Timed && l.Time.N > 1
		d.BaselineNS += l.Time.Median
	}
	d.Measured = d.HasBaseline && now.Time.Measured() && then.SameWork(false)
	if d.Timed = d.Timed && d.Measured; d.Measured {
		d.TimeNS = now.Time.Median - d.BaselineNS
	}
	if d.Timed {
		d.Equal = !c.Differ(now.Time.Median, d.BaselineNS, list, then.Launches)
	}
	return d
}

// otherSource reports whether a kernel of the same name was built from another source in each run.
func (c *comparison) otherSource(from, to string) bool {
	base, now := c.baseline.Kernel(from), c.x.Kernel(to)
	return from == to && base != nil && now != nil && base.SourceSHA256 != now.SourceSHA256
}

// Differ reports whether the times of two lists of launches differ significantly.
func (c *comparison) Differ(nowNS, baselineNS float64, now, baseline []*Launch) bool {
	p := c.Pair(nowNS, baselineNS, now, baseline)
	return c.Noise.Judge(&p).Significant
}

// Pair returns the times of two lists of launches in the form in which package noise compares them.
func (c *comparison) Pair(nowNS, baselineNS float64, now, baseline []*Launch) noise.Pair {
	p := noise.Pair{
		NowNS: nowNS, BaseNS: baselineNS, Now: c.x.series(now), Base: c.baseline.series(baseline),
		Members: max(len(now), len(baseline)),
	}
	p.MoreNS, p.MoreBaseNS = c.moved(now, baseline)
	return p
}

// series returns the times of each launch. The key of a time (noise.Key) identifies the position and the
// number of tokens of its step.
func (x *Index) series(launches []*Launch) []noise.Series {
	list := make([]noise.Series, len(launches))
	for i, l := range launches {
		s := &list[i]
		s.NS = make([]float64, len(l.Samples))
		for k, ns := range l.Samples {
			s.NS[k] = float64(ns)
		}
		if l.at != nil {
			s.Keys = make([]int64, len(l.at))
		}
		for k, step := range l.at {
			s.Keys[k] = noise.Key(&x.Trace.Steps[step])
		}
	}
	return list
}

// Baseline is the selection that tables compare with. The baseline may be in another trace.
type Baseline struct {
	Index     *Index
	Selection Selection
	// Default reports that nobody chose this baseline: the screen compares a step with the previous one.
	// Tables then mark what changed, but show neither the times of the baseline nor a total.
	Default bool
}

// Chosen reports whether there is a baseline that the user chose. b may be nil.
func (b *Baseline) Chosen() bool { return b != nil && !b.Default }

// Shows reports whether tables show the times of a Delta. A difference of unknown significance is only shown
// beside a baseline that the user chose.
func (b *Baseline) Shows(d *Delta) bool { return d.Timed || b.Chosen() }

// ResolutionNS returns the smallest time difference that the timers of both runs can measure. b may be nil.
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

// SpeedMoved reports whether the GPU clock differed between a run and the baseline by more than
// trace.ClockMoved. The arguments are speeds of the canary kernel relative to the warm device: `now` was
// measured in the run, and `before` at the baseline. A speed of 0 means that no canary ran, and SpeedMoved
// then returns false.
func (b *Baseline) SpeedMoved(x *Index, now, before float64) bool {
	return math.Abs(math.Expm1(-b.clockShift(x, now, before))) > trace.ClockMoved
}

// clockShift returns the logarithm of the factor by which times of the run are longer than those of the
// baseline because of the GPU clock. The arguments are those of SpeedMoved.
func (b *Baseline) clockShift(x *Index, now, before float64) float64 {
	ns, ok := x.Trace.Clock.CanaryNS.NS()
	if baseline, both := b.Index.Trace.Clock.CanaryNS.NS(); ok && both && ns > 0 && baseline > 0 {
		now, before = now/float64(ns), before/float64(baseline)
	}
	return noise.ClockShift(before, now)
}

// ClockShift returns the logarithm of the factor by which times of a selection are longer than at the
// baseline because of the GPU clock. It is 0 if the canary did not run on both sides.
func (b *Baseline) ClockShift(x *Index, s Selection) float64 {
	return b.clockShift(x, x.canary(s), b.Index.canary(b.Selection))
}

// SameRun reports whether the baseline and x belong to the same run.
func (b *Baseline) SameRun(x *Index) bool {
	return b.Index == x || sameGraph(&b.Index.Trace.Graph, &x.Trace.Graph)
}

// noise returns the model of the noise between a selection and the baseline, before any rows are compared.
func (b *Baseline) noise(x *Index, s Selection) *noise.Model {
	m := &noise.Model{
		Band: noise.OtherRun, ResolutionNS: b.ResolutionNS(x),
		Clock: b.ClockShift(x, s),
	}
	switch {
	case x.Trace.Device.Software() || b.Index.Trace.Device.Software():
		m.Band = noise.Software
	case b.SameRun(x):
		m.Band = noise.SameRun
	}
	return m
}

// comparison is the result of pairing the launches of a selection with those of a baseline.
type comparison struct {
	Pieces     []Piece   // in order of submission, then those that only the baseline has
	Gone       []*Launch // baseline launches without a counterpart, each dispatch once
	Joined     join.How
	ClockMoved bool
	Noise      *noise.Model
	total      float64 // total time of the baseline launches in ns

	x, baseline *Index
	pairs       join.Pairs
	of          []int           // for each launch, its piece
	index       map[*Launch]int // of both sides
	layers      bool            // both graphs have layers, or neither has
}

// Compare pairs the launches of a selection with the baseline, and sets Delta of each launch.
func (b *Baseline) Compare(ctx context.Context, x *Index, selection Selection,
	launches []Launch,
) (comparison, error) {
	then, err := b.Index.Launches(ctx, b.Selection)
	if err != nil {
		return comparison{}, err
	}
	c := comparison{
		ClockMoved: b.ClockMoved(x, selection), total: total(then), x: x, baseline: b.Index,
		Noise: b.noise(x, selection),
	}
	c.join(launches, then)
	c.Noise.Tests = 2 * (len(launches) + len(c.Gone)) // all rows, and at most as many groups and totals
	var rows []noise.Pair
	for _, of := range c.Pieces {
		if len(of.Now) != 1 || len(of.Base) != 1 || c.Joined == join.ByOrder {
			continue
		}
		if now, then := of.Now[0], of.Base[0]; now.Time.N > 1 && then.Time.N > 1 {
			p := c.Pair(now.Time.Median, then.Time.Median, of.Now, of.Base)
			p.Kernel = now.Plan.Kernel + then.Plan.Kernel
			rows = append(rows, p)
		}
	}
	c.Noise.Learn(rows)
	for i := range launches {
		launches[i].Delta = c.deltaOf(&launches[i], b.SameEngine(x))
	}
	return c, nil
}

// SameEngine reports whether the same engine ran the baseline. Grids and routes of different engines cannot
// be compared, because their kernels differ. b may be nil.
func (b *Baseline) SameEngine(x *Index) bool {
	return b == nil || b.Index.Trace.Engine == x.Trace.Engine
}

// BaselineCosts holds the costs that were measured at a baseline. They are compared with the costs of a step.
type BaselineCosts struct {
	*StepCosts
	X        *Index
	Baseline *Baseline
}

// CostsBeside returns the costs of the baseline if they can be compared with the costs of a step. It returns
// nil if there are none, or if the GPU clock differed between the two measurements. b may be nil.
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

// Same reports whether each of these dispatch ids has the same name in the graph of the baseline.
func (c *BaselineCosts) Same(ids []trace.DispatchID) bool {
	for _, id := range ids {
		if int(id) >= len(c.Baseline.Index.Trace.Graph.Dispatches) ||
			c.Baseline.Index.Name(id) != c.X.Name(id) {
			return false
		}
	}
	return true
}
