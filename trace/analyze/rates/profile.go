package rates

import (
	"cmp"
	"context"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Profile summarizes a run or some of its steps: tokens per second of each phase, and times, shares and costs
// of each kernel.
type Profile struct {
	Trace *trace.Trace
	Rates []Rate
	// Kernels lists the kernels grouped by phase. In each phase, the kernels with the largest potential
	// saving come first. If too few costs were measured, those with the longest total time come first.
	Kernels []KernelProfile
	Costs   []*analyze.StepCosts // measured costs: one element for each phase that has costs
	Index   *analyze.Index
	Steps   []int // indices of the steps that are searched for costs and repeats
}

// Rate is the speed of the steps of one phase. These steps have the same timing level and mode. Cold steps
// are excluded, unless all steps are cold.
type Rate struct {
	Phase  trace.Phase
	Timing trace.Timing
	// Mode is "stepped" if each token was read before the next step began, and "pipelined" if not.
	Mode  string
	Steps int // number of steps from which the rate is computed
	// Cold is the number of cold steps. These steps are excluded, unless OnlyCold is set.
	Cold int
	// OnlyCold reports that all steps were cold, so cold steps are included.
	OnlyCold bool
	// Tokens is the number of tokens of the included steps. A prefill step has its input tokens, and a decode
	// step has one token.
	Tokens int
	WallNS int64 // sum of the wall times of the included steps
	Timed  int   // number of included steps with a wall time
	// MedianNS, LeastNS and MostNS are the median, the shortest and the longest wall time of a step.
	MedianNS, LeastNS, MostNS int64
	// TokensPerS is Tokens divided by WallNS. It is 0 if no wall time was measured. A few slow steps lower it
	// but not the rate of the median step.
	TokensPerS float64
	// Untimed is the rate that decode steps have if neither blocks nor dispatches are timed. It is set only
	// if the included steps were timed in such detail, and is 0 if not known.
	Untimed float64
}

// KernelProfile summarizes the dispatches of one kernel in the included steps of a phase.
type KernelProfile struct {
	Phase   trace.Phase
	Kernel  string
	Count   int     // number of dispatches
	Timed   int     // number of dispatches with a measured time
	TotalNS float64 // total time of the measured dispatches in ns
	// Share is TotalNS as a fraction of the total time of the phase. It is 0 if a dispatch of the phase was
	// not measured.
	Share float64
	// Cost is the measured cost of the kernel, from the last step of the phase that has costs. It is nil if
	// no measurement skipped exactly the dispatches of this kernel.
	Cost *analyze.RowCost
}

// MeanNS returns the mean time of the measured dispatches in ns.
func (k *KernelProfile) MeanNS() float64 {
	if k.Timed == 0 {
		return 0
	}
	return k.TotalNS / float64(k.Timed)
}

// Tally builds a profile step by step, so the steps of the run need not be kept. The zero value is ready to
// use.
type Tally struct{ groups []*group }

// group holds the sums of the steps that have the same phase, timing level and mode.
type group struct {
	phase      trace.Phase
	timing     trace.Timing
	mode       string
	warm, cold counted
}

func (g *group) has(s *trace.Step) bool {
	return g.phase == s.Phase && g.timing == s.Timing && g.mode == s.Mode()
}

// counted holds the sums of the warm steps or of the cold steps of a group.
type counted struct {
	rate    Rate
	walls   []int64 // wall times of the steps in ns
	kernels []KernelProfile
	index   map[string]int // for each kernel name, the index in kernels
}

// Add adds the step s to the profile. `t` is the trace that holds the plans of the step.
func (y *Tally) Add(t *trace.Trace, s *trace.Step) {
	i := slices.IndexFunc(y.groups, func(g *group) bool { return g.has(s) })
	if i < 0 {
		i = len(y.groups)
		y.groups = append(y.groups, &group{phase: s.Phase, timing: s.Timing, mode: s.Mode()})
	}
	c := &y.groups[i].warm
	if s.Cold {
		c = &y.groups[i].cold
	}
	c.rate.Steps++
	if ns, ok := s.CPU.TotalNS.NS(); ok {
		if c.rate.LeastNS = min(c.rate.LeastNS, ns); c.rate.Timed == 0 {
			c.rate.LeastNS = ns
		}
		c.rate.MostNS = max(c.rate.MostNS, ns)
		c.rate.Timed++
		c.walls = append(c.walls, ns)
		c.rate.WallNS = analyze.Add(c.rate.WallNS, ns)
		c.rate.Tokens += analyze.Progress(s)
	}
	for _, k := range kernelsOf(t, s) {
		c.add(k)
	}
}

// Repeating is called with a step that was added, before times of repeats are added to its dispatches. The
// caller then calls the returned function with the repeated step, and the profile has its new times.
func (y *Tally) Repeating(t *trace.Trace, s *trace.Step) (repeated func(*trace.Trace, *trace.Step)) {
	was := kernelsOf(t, s)
	return func(t *trace.Trace, s *trace.Step) {
		i := slices.IndexFunc(y.groups, func(g *group) bool { return g.has(s) })
		c := &y.groups[i].warm
		if s.Cold {
			c = &y.groups[i].cold
		}
		for _, k := range was {
			k.Count, k.Timed, k.TotalNS = -k.Count, -k.Timed, -k.TotalNS
			c.add(k)
		}
		for _, k := range kernelsOf(t, s) {
			c.add(k)
		}
	}
}

// kernelsOf returns the kernel and the time of each dispatch of a step.
func kernelsOf(t *trace.Trace, s *trace.Step) []KernelProfile {
	list := make([]KernelProfile, len(s.Dispatches))
	for i := range s.Dispatches {
		d := &s.Dispatches[i]
		time := analyze.TimeOf(d)
		list[i] = KernelProfile{
			Phase: s.Phase, Kernel: t.Plans[d.Plan].Kernel, Count: 1, TotalNS: time.Median,
		}
		if time.Measured() {
			list[i].Timed = 1
		}
	}
	return list
}

func (c *counted) add(k KernelProfile) {
	i, there := c.index[k.Kernel]
	if !there {
		if c.index == nil {
			c.index = map[string]int{}
		}
		i = len(c.kernels)
		c.index[k.Kernel] = i
		c.kernels = append(c.kernels, KernelProfile{Phase: k.Phase, Kernel: k.Kernel})
	}
	c.kernels[i].Count += k.Count
	c.kernels[i].Timed += k.Timed
	c.kernels[i].TotalNS += k.TotalNS
}

// counts returns the sums of the warm steps. If there are no warm steps, it returns the sums of the cold
// steps.
func (g *group) counts() (c *counted, onlyCold bool) {
	if g.warm.rate.Steps == 0 {
		return &g.cold, true
	}
	return &g.warm, false
}

// Profile returns the profile of all steps that were added. The trace of x may hold only the last of these
// steps. Costs and untimed rates come only from the steps that the trace of x holds.
func (y *Tally) Profile(x *analyze.Index) *Profile {
	return y.profile(x, x.EveryStep(), x.Phase(trace.Decode))
}

// profile is like Profile, but costs come only from the given steps of the trace, and untimed rates only from
// the steps in `decode`.
func (y *Tally) profile(x *analyze.Index, steps []int, decode analyze.Selection) *Profile {
	p, u := &Profile{Trace: x.Trace, Index: x, Steps: steps}, x.UntimedOf(decode)
	var phases []trace.Phase
	kernels := map[trace.Phase]*counted{}
	for _, g := range y.groups {
		c, onlyCold := g.counts()
		r := c.rate
		r.Phase, r.Timing, r.Mode, r.Cold, r.OnlyCold = g.phase, g.timing, g.mode, g.cold.rate.Steps, onlyCold
		r.MedianNS = analyze.Whole(analyze.StatsOf(slices.Clone(c.walls)).Median)
		if r.WallNS > 0 {
			r.TokensPerS = float64(r.Tokens) * 1e9 / float64(r.WallNS)
		}
		if r.Phase == trace.Decode && r.Timing.InDetail() && r.Mode == u.Mode() {
			r.Untimed = u.TokensPerS(1)
		}
		p.Rates = append(p.Rates, r)
		if kernels[g.phase] == nil {
			phases, kernels[g.phase] = append(phases, g.phase), &counted{}
		}
		for _, k := range c.kernels {
			kernels[g.phase].add(k)
		}
	}
	for _, phase := range phases {
		list := shared(kernels[phase].kernels)
		p.cost(phase, list)
		p.Kernels = append(p.Kernels, list...)
	}
	return p
}

// cost sets the costs of the kernels of a phase. If kernels with a known cost account for at least half of
// the time, it also orders the kernels by cost. In this case, kernels with a known cost come first, in
// order of potential saving. The other kernels follow in order of time.
func (p *Profile) cost(phase trace.Phase, list []KernelProfile) {
	step := -1
	for _, i := range p.Steps {
		if s := &p.Trace.Steps[i]; s.Phase == phase && len(s.Costs) > 0 {
			step = i
		}
	}
	if step < 0 {
		return
	}
	costs, of := p.Index.CostsOf(step), map[string][]trace.DispatchID{}
	p.Costs = append(p.Costs, costs)
	for _, d := range costs.Step.Dispatches {
		plan := &p.Trace.Plans[d.Plan]
		of[plan.Kernel] = append(of[plan.Kernel], plan.Dispatch)
	}
	known, all := 0.0, 0.0
	for i := range list {
		k := &list[i]
		k.Cost = costs.Of(of[k.Kernel])
		if all += k.TotalNS; k.Cost.Known() {
			known += k.TotalNS
		}
	}
	if known < all/2 {
		return
	}
	slices.SortStableFunc(list, func(a, b KernelProfile) int { return analyze.CompareCosts(a.Cost, b.Cost) })
}

// shared sets the Share of each kernel of a phase. It also sorts the kernels by time.
func shared(list []KernelProfile) []KernelProfile {
	total, all := 0.0, true
	for _, k := range list {
		total += k.TotalNS
		all = all && k.Timed == k.Count
	}
	for k := range list {
		if all && total > 0 {
			list[k].Share = list[k].TotalNS / total
		}
	}
	slices.SortStableFunc(list, func(a, b KernelProfile) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Kernel, b.Kernel))
	})
	return list
}

// Of returns the profile of the selected steps. If selection.Steps is nil, these are all steps.
func Of(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*Profile, error) {
	var y Tally
	var decode analyze.StepGroup
	steps := selection.Steps
	if steps == nil {
		steps = x.EveryStep()
	}
	for _, step := range steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s := &x.Trace.Steps[step]
		if y.Add(x.Trace, s); s.Phase == trace.Decode {
			decode = decode.With(step, s.Cold)
		}
	}
	return y.profile(x, steps, decode.Selection(string(trace.Decode))), nil
}

// Rate returns the rate of a phase, or nil if no step belongs to it. A phase has several rates if its steps
// have several timing levels or modes. Rate then returns the rate with the most steps, or the last of several
// with equally many. Excluded cold steps are counted too: their number differs from run to run, and the
// choice should not depend on it.
func (p *Profile) Rate(phase trace.Phase) *Rate {
	var best *Rate
	for i := range p.Rates {
		if r := &p.Rates[i]; r.Phase == phase && (best == nil || r.steps() >= best.steps()) {
			best = r
		}
	}
	return best
}

// steps returns the number of steps of the rate, including the excluded cold steps.
func (r *Rate) steps() int {
	if r.OnlyCold {
		return r.Steps
	}
	return r.Steps + r.Cold
}

// Timed reports whether at least one dispatch was timed.
func (p *Profile) Timed() bool {
	return slices.ContainsFunc(p.Kernels, func(k KernelProfile) bool { return k.Timed > 0 })
}

// Warm holds the times of a repeated chunk of the prompt. The chunk was repeated after the recorded run,
// when the GPU clock had reached its full speed.
type Warm struct {
	Tokens, N   int
	WallNS, Was trace.Time // WallNS: median of the N repeats; Was: time of the recorded run
	Cold        bool
}

// TokensPerS returns the rate of the repeated chunk.
func (w *Warm) TokensPerS() float64 {
	ns, _ := w.WallNS.NS()
	return float64(w.Tokens) * 1e9 / float64(max(ns, 1))
}

// Warm returns the times of the last repeated chunk of the prompt. The bool is false if there is none.
func (p *Profile) Warm() (Warm, bool) {
	for _, i := range slices.Backward(p.Steps) {
		s := &p.Trace.Steps[i]
		if s.Phase == trace.Prefill && analyze.Measured(analyze.WarmAgain(s)) {
			return Warm{len(s.Tokens), s.Whole.N, s.Whole.WallNS, s.CPU.TotalNS, s.Cold}, true
		}
	}
	return Warm{}, false
}
