package rates

import (
	"cmp"
	"context"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Profile is what a run cost, over all of its steps: tokens a second, and each kernel's part.
type Profile struct {
	Trace   *trace.Trace
	Rates   []Rate
	Kernels []KernelProfile      // by phase, then by what there is to save, or by total, falling
	Costs   []*analyze.StepCosts // of each phase that has some
	Index   *analyze.Index
	Steps   []int // of the trace, that costs and repeats are taken from
}

// Rate is how fast the steps of one phase went that were timed alike and followed each other alike. Cold
// steps are left out, unless there are no others.
type Rate struct {
	Phase  trace.Phase
	Timing trace.Timing
	Mode   string // stepped: the token of each step was read back before the next; or pipelined
	Steps  int    // that count
	Cold   int    // left out, or, where OnlyCold, the ones that count
	// OnlyCold reports that there were none but cold steps.
	OnlyCold bool
	Tokens   int   // of the steps that count: in for prefill, one each for decode
	WallNS   int64 // their sum
	Timed    int   // of the steps, that have a wall time
	// LeastNS and MostNS are the least and the largest; the steps are at different positions, so their median
	// means nothing.
	LeastNS, MostNS int64
	TokensPerS      float64 // 0 where no wall time was measured
	// Untimed is the rate of decode steps as they run untimed, where more than these as a whole was timed; 0
	// where that is not known.
	Untimed float64
}

// KernelProfile is a kernel in the steps of a phase that count.
type KernelProfile struct {
	Phase   trace.Phase
	Kernel  string
	Count   int     // dispatches
	Timed   int     // of them, that were measured
	TotalNS float64 // of those
	Share   float64 // of the phase's total; 0 where not all dispatches of the phase were measured
	// Cost is that of the kernel in the last step of the phase that has costs; nil where it was not left out
	// by itself.
	Cost *analyze.RowCost
}

// MeanNS is the mean of the dispatches that were measured.
func (k *KernelProfile) MeanNS() float64 {
	if k.Timed == 0 {
		return 0
	}
	return k.TotalNS / float64(k.Timed)
}

// Tally adds up a profile step by step, for a run whose steps are not kept. The zero Tally is ready for use.
type Tally struct{ groups []*group }

// group is the steps of one phase, timing level and mode.
type group struct {
	phase      trace.Phase
	timing     trace.Timing
	mode       string
	warm, cold counted
}

func (g *group) has(s *trace.Step) bool {
	return g.phase == s.Phase && g.timing == s.Timing && g.mode == s.Mode()
}

// counted are steps added up.
type counted struct {
	rate    Rate
	kernels []KernelProfile
	index   map[string]int // in kernels, by name
}

// Add takes in a step of a trace, whose plans the step names.
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
		c.rate.WallNS = analyze.Add(c.rate.WallNS, ns)
		c.rate.Tokens += analyze.Progress(s)
	}
	for i := range s.Dispatches {
		d := &s.Dispatches[i]
		time := analyze.TimeOf(d)
		one := KernelProfile{Phase: s.Phase, Kernel: t.Plans[d.Plan].Kernel, Count: 1, TotalNS: time.Median}
		if time.Measured() {
			one.Timed = 1
		}
		c.add(one)
	}
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

// counts are the steps of a group whose times mean something: all but the cold ones, or all where all are
// cold.
func (g *group) counts() (c *counted, onlyCold bool) {
	if g.warm.rate.Steps == 0 {
		return &g.cold, true
	}
	return &g.warm, false
}

// Profile is the profile of the steps so far, all of those of a trace, which may keep the last of them alone:
// of those it looks at costs, and at what decode steps take untimed.
func (y *Tally) Profile(x *analyze.Index) *Profile {
	return y.profile(x, x.EveryStep(), x.Phase(trace.Decode))
}

// profile is Profile of some of the trace's steps, of which the decode steps are those of a selection.
func (y *Tally) profile(x *analyze.Index, steps []int, decode analyze.Selection) *Profile {
	p, u := &Profile{Trace: x.Trace, Index: x, Steps: steps}, x.UntimedOf(decode)
	var phases []trace.Phase
	kernels := map[trace.Phase]*counted{}
	for _, g := range y.groups {
		c, onlyCold := g.counts()
		r := c.rate
		r.Phase, r.Timing, r.Mode, r.Cold, r.OnlyCold = g.phase, g.timing, g.mode, g.cold.rate.Steps, onlyCold
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

// cost gives the kernels of a phase their costs. Where those make up most of its time they are in order by
// what there is to save, the rest after them by time.
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

// shared gives the kernels of a phase their shares, and sorts them.
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

// Of computes the profile of the steps of a selection, without one of all.
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

// Rate is the rate of a phase; of several timing levels or modes that of the most steps, of as many the later
// one. Cold steps are among them: how many those are is not the same each time. Nil where no step was of the
// phase.
func (p *Profile) Rate(phase trace.Phase) *Rate {
	var best *Rate
	for i := range p.Rates {
		if r := &p.Rates[i]; r.Phase == phase && (best == nil || r.steps() >= best.steps()) {
			best = r
		}
	}
	return best
}

// steps is how many steps there were, those left out too.
func (r *Rate) steps() int {
	if r.OnlyCold {
		return r.Steps
	}
	return r.Steps + r.Cold
}

// Timed reports that some dispatches of the steps were timed as they ran.
func (p *Profile) Timed() bool {
	return slices.ContainsFunc(p.Kernels, func(k KernelProfile) bool { return k.Timed > 0 })
}

// Warm is a piece of the prompt that was run again after the run, when the device was at its clocks.
type Warm struct {
	Tokens, N   int
	WallNS, Was trace.Time // median of N, and as it ran first
	Cold        bool
}

// TokensPerS is the rate of the repeated piece.
func (w *Warm) TokensPerS() float64 {
	ns, _ := w.WallNS.NS()
	return float64(w.Tokens) * 1e9 / float64(max(ns, 1))
}

// Warm is the last piece of the prompt that was run again; false where none was.
func (p *Profile) Warm() (Warm, bool) {
	for _, i := range slices.Backward(p.Steps) {
		s := &p.Trace.Steps[i]
		if s.Phase == trace.Prefill && analyze.Measured(analyze.WarmAgain(s)) {
			return Warm{len(s.Tokens), s.Whole.N, s.Whole.WallNS, s.CPU.TotalNS, s.Cold}, true
		}
	}
	return Warm{}, false
}
