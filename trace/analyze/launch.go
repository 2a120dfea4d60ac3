package analyze

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gpuscope/trace"
)

// Launch is a dispatch with what is computed of it, in a step, or in those steps of a selection in which it
// did the same work by the same route.
type Launch struct {
	Index    int // in order of submission; of several steps in the last
	ID       trace.DispatchID
	Dispatch *trace.Dispatch
	Op       *trace.Op
	Plan     *trace.Plan   // of several steps the last's
	Kernel   *trace.Kernel // nil where the trace does not describe it
	Tokens   int           // that went into the step
	Runs     int           // steps
	Step     int           // the last of them
	Time     Stats         // median of its repeats, or of its steps
	Samples  []int64       // ns, of the repeats or of the steps that were timed
	Level    int           // -1: not recorded; of several steps that in the last, -1 of what that did not run
	Waste    Waste
	Limit    Bound
	Gap      *trace.NumericError // of several steps the worst
	Delta    Delta

	Least, Most [3]int  // workgroups, where they differ from step to step
	Varies      bool    // what the live shape needs differs from step to step; Waste is the mean
	at          []int32 // the step of each sample; nil: they are repeats in one step
	bytes       float64 // modelled, of several steps the mean
	flops       float64
	streamed    float64 // modelled bytes of the whole step, which its bytes are part of
}

// Name is a dispatch's whole name.
func (l *Launch) Name() string { return l.Dispatch.Named(l.Op.Name) }

// Launches returns the selection's dispatches in the last step's submission order, followed by those it did
// not run, each as in the last step that ran it.
func (x *Index) Launches(ctx context.Context, selection Selection) ([]Launch, error) {
	if step, one := selection.One(); one {
		return x.LaunchesOf(step), ctx.Err()
	}
	// work is what times in one median have in common. Most plans are those of the step before, so a use of
	// one says which work it is without its names.
	type work struct {
		id            trace.DispatchID
		kernel, route string
		tokens        int
	}
	type use struct {
		plan   trace.PlanID
		tokens int
	}
	// place is a dispatch of a step, with the place of its launch in out. Most are those of the step before.
	type place struct {
		use
		id            trace.DispatchID
		launch, level int
	}
	var out []Launch
	var before, now []place
	index, uses := map[work]int{}, map[use]int{}
	var levels *levelsSince // of the step before
	for _, step := range selection.Steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		from := x.planning(step)
		s, same := from.s, levels == from.levels
		levels = from.levels
		for i := range s.Dispatches {
			d := &s.Dispatches[i]
			p := &x.Trace.Plans[d.Plan]
			u := use{d.Plan, len(s.Tokens)}
			if same = same && i < len(before) && before[i].id == p.Dispatch; same {
				from.level = before[i].level
			} else {
				from.reach(p.Dispatch)
			}
			k, there := 0, same && before[i].use == u
			if there {
				k = before[i].launch
			} else if k, there = uses[u]; !there {
				w := work{p.Dispatch, p.Kernel, p.Route, u.tokens}
				if k, there = index[w]; !there {
					k = len(out)
					index[w] = k
				}
				uses[u] = k
			}
			now = append(now, place{u, p.Dispatch, k, from.level})
			if k == len(out) {
				out = append(out, from.launch(i))
			} else {
				out[k].again(p, d.Error, step, i, from.level)
			}
			if ns, ok := MedianOf(d); ok {
				out[k].Samples = append(out[k].Samples, Whole(ns))
				out[k].at = append(out[k].at, int32(step))
			}
		}
		before, now = now, before[:0]
	}
	slices.SortFunc(out, func(a, b Launch) int { return cmp.Or(b.Step-a.Step, a.Index-b.Index) })
	for i := range out {
		l := &out[i]
		if l.Step != selection.Last() {
			l.Level = -1
		}
		l.bytes, l.flops = l.bytes/float64(l.Runs), l.flops/float64(l.Runs)
		l.Waste = l.Waste.scaled(1, l.Runs)
		l.Time = StatsOf(slices.Clone(l.Samples))
		l.Limit = boundOf(&x.Trace.Device, l, l.Time, l.Index == 0)
	}
	return out, nil
}

// again adds the same work in another step, by the plan that it had there.
func (l *Launch) again(p *trace.Plan, gap *trace.NumericError, step, index, level int) {
	if p != l.Plan {
		if Product(p.Workgroups) < Product(l.Least) {
			l.Least = p.Workgroups
		}
		if Product(p.Workgroups) > Product(l.Most) {
			l.Most = p.Workgroups
		}
		l.Varies = l.Varies || l.Plan.NeededGrid != p.NeededGrid
	}
	l.Waste = l.Waste.Plus(WasteOf(p, l.Kernel))
	l.Plan, l.Level, l.Step, l.Index = p, level, step, index
	l.Runs++
	l.bytes += float64(p.Bytes)
	l.flops += float64(p.FLOPs)
	l.Gap = Farther(l.Gap, gap)
}

// Farther is the numeric gap that says more against a dispatch: one that is NaN or Inf, else the larger. Nil
// is no gap.
func Farther(a, b *trace.NumericError) *trace.NumericError {
	switch {
	case a == nil:
		return b
	case b == nil || math.IsNaN(float64(a.SNRdB)) || a.SNRdB <= b.SNRdB:
		return a
	}
	return b
}

// EachTimed reports whether every dispatch of a step was timed, in the step or in repeats.
func EachTimed(s *trace.Step) bool {
	return s.Timing == trace.TimingDispatch || Repeated(s)
}

// Repeated reports whether a step was run again with every dispatch timed.
func Repeated(s *trace.Step) bool { return len(s.Dispatches) > 0 && len(s.Dispatches[0].Samples) > 0 }

// LaunchesOf computes every dispatch of a step, in order of submission.
func (x *Index) LaunchesOf(step int) []Launch {
	out := x.Planned(step)
	for i := range out {
		x.time(&out[i])
	}
	return out
}

// launchesAt computes the dispatches of a step at some places, which rise.
func (x *Index) launchesAt(step int, places ...int) []Launch {
	from, out := x.planning(step), []Launch(nil)
	for i := range from.s.Dispatches {
		if len(out) == len(places) {
			break
		}
		from.reach(x.Trace.Plans[from.s.Dispatches[i].Plan].Dispatch)
		if i == places[len(out)] {
			l := from.launch(i)
			x.time(&l)
			out = append(out, l)
		}
	}
	return out
}

// time fills in how long a dispatch of one step took.
func (x *Index) time(l *Launch) {
	s := &x.Trace.Steps[l.Step]
	d := &s.Dispatches[l.Index]
	if l.Time, l.Samples = TimeOf(d), d.Samples; EachTimed(s) {
		l.Limit = boundOf(&x.Trace.Device, l, l.Time, l.Index == 0)
	}
}

// sameSlot computes the dispatches of a selection that may be a launch's by id or by name; of several steps
// all.
func (x *Index) sameSlot(ctx context.Context, selection Selection, l *Launch) ([]Launch, error) {
	step, one := selection.One()
	if !one {
		return x.Launches(ctx, selection)
	}
	var places []int
	g := &x.Trace.Graph
	for i, sd := range x.Trace.Steps[step].Dispatches {
		d := &g.Dispatches[x.Trace.Plans[sd.Plan].Dispatch]
		if d.ID == l.ID || d.Label == l.Dispatch.Label && g.Ops[d.Op].Name == l.Op.Name {
			places = append(places, i)
		}
	}
	return x.launchesAt(step, places...), ctx.Err()
}

// Planned are the dispatches of a step without their times.
func (x *Index) Planned(step int) []Launch {
	from := x.planning(step)
	out := make([]Launch, len(from.s.Dispatches))
	for i := range out {
		from.reach(x.Trace.Plans[from.s.Dispatches[i].Plan].Dispatch)
		out[i] = from.launch(i)
	}
	return out
}

// planning makes launches of a step, one after the other.
type planning struct {
	x        *Index
	s        *trace.Step
	step     int
	levels   *levelsSince // nil where none are recorded
	level    int          // that is reached
	streamed float64      // 0 until a launch asks for it
}

func (x *Index) planning(step int) planning {
	return planning{x, &x.Trace.Steps[step], step, x.levelsAt(step), -1, 0}
}

// reach comes to a dispatch, with which a level may begin.
func (f *planning) reach(id trace.DispatchID) {
	if n, ok := f.levels.starts()[id]; ok {
		f.level = n
	}
}

// launch is the i-th dispatch of the step, in the level that is reached.
func (f *planning) launch(i int) Launch {
	t := f.x.Trace
	sd := &f.s.Dispatches[i]
	p := &t.Plans[sd.Plan]
	d, k := &t.Graph.Dispatches[p.Dispatch], f.x.Graph.Kernels[p.Kernel]
	if f.streamed == 0 {
		f.streamed = f.x.streamed(f.s)
	}
	return Launch{
		Index: i, ID: d.ID, Dispatch: d, Op: &t.Graph.Ops[d.Op], Plan: p,
		Kernel: k, Tokens: len(f.s.Tokens), Runs: 1, Step: f.step, Level: f.level,
		Waste: WasteOf(p, k), Gap: sd.Error, Least: p.Workgroups, Most: p.Workgroups,
		bytes: float64(p.Bytes), flops: float64(p.FLOPs), streamed: f.streamed,
	}
}

// Appended is what an operator appends to a cache: the last of its inputs with rows of as many elements, for
// queries may have as many, too, and stand before. It is the cache itself if there is none.
func (x *Index) Appended(o *trace.Op, cache trace.ValueID) trace.ValueID {
	row := func(v trace.ValueID) float64 {
		dims := x.Trace.Graph.Values[v].MaxDims
		return Elements(dims[min(2, len(dims)):])
	}
	for _, v := range slices.Backward(o.Inputs) {
		if row(v) == row(cache) {
			return v
		}
	}
	return cache
}

// SymInt is the value of a SymInt at a step.
func (x *Index) SymInt(step int, v trace.ValueID) (int64, bool) {
	n, ok := x.Trace.Steps[step].SymInts[x.Trace.Graph.Values[v].Name]
	return n, ok
}
