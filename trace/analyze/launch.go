package analyze

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gpuscope/trace"
)

// Launch is a dispatch with its numbers in one step, or in several steps of a selection. It covers several
// steps only if the dispatch did the same work by the same route in all of them.
type Launch struct {
	// Index is the index of the dispatch in the dispatches of Step, the last step that the launch covers.
	Index    int
	ID       trace.DispatchID
	Dispatch *trace.Dispatch
	Op       *trace.Op
	// Plan is the plan of the dispatch in Step.
	Plan    *trace.Plan
	Kernel  *trace.Kernel // nil if the trace does not describe the kernel
	Tokens  int           // number of input tokens of each step
	Runs    int           // number of steps that the launch covers
	Step    int           // last step that the launch covers: index into Trace.Steps
	Time    Stats         // statistics of Samples, or of the only run
	Samples []int64       // times in ns: one for each repeat, or one for each timed step
	// Level is the number of the level of the dispatch in the last step of the selection. A level is a group
	// of dispatches between two barriers. Level is -1 if levels were not recorded, or if the last step did
	// not run the dispatch.
	Level int
	Waste Waste
	Limit Bound
	Gap   *trace.NumericError // largest numeric error in the covered steps
	Delta Delta

	Least, Most [3]int  // smallest and largest grid in the covered steps, in workgroups
	Varies      bool    // the needed grid is not the same in all steps; Waste is a mean
	at          []int32 // step of each sample; nil if all samples are repeats of one step
	bytes       float64 // modelled; mean of the covered steps
	flops       float64
	streamed    float64 // sum of the modelled bytes of all dispatches of the step
}

// Name returns the dispatch's full name.
func (l *Launch) Name() string { return l.Dispatch.Named(l.Op.Name) }

// Launches returns the dispatches of a selection. Dispatches that the last step ran come first, in their
// order of submission. Then come the other dispatches, with the plan of the last step that ran them.
func (x *Index) Launches(ctx context.Context, selection Selection) ([]Launch, error) {
	if step, one := selection.One(); one {
		return x.LaunchesOf(step), ctx.Err()
	}
	// work is the key of a launch: times with the same key are added to the same launch. Most steps use
	// plans of earlier steps. The map `uses` therefore finds most launches by plan, without comparing the
	// names of kernels and routes.
	type work struct {
		id            trace.DispatchID
		kernel, route string
		tokens        int
	}
	type use struct {
		plan   trace.PlanID
		tokens int
	}
	// place is a dispatch of a step. `launch` is the index of its Launch in `out`. Most steps run the same
	// dispatches in the same order as the previous step. Each dispatch is therefore first compared with the
	// dispatch at the same index in the previous step.
	type place struct {
		use
		id            trace.DispatchID
		launch, level int
	}
	var out []Launch
	var before, now []place
	index, uses := map[work]int{}, map[use]int{}
	var levels *levelsSince // the levels that applied to the previous step
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
			u := use{d.Plan, TokensRead(s)}
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

// again adds another step in which the dispatch did the same work. `p` is the plan of the dispatch in this
// step.
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

// Farther returns the larger of two numeric errors. An error with a lower SNR is larger, and one whose SNR is
// NaN is the largest. An error of nil means that there was no comparison with a reference.
func Farther(a, b *trace.NumericError) *trace.NumericError {
	switch {
	case a == nil:
		return b
	case b == nil || math.IsNaN(float64(a.SNRdB)) || a.SNRdB <= b.SNRdB:
		return a
	}
	return b
}

// EachTimed reports whether every dispatch of a step was timed, either while the step ran or in repeats.
func EachTimed(s *trace.Step) bool {
	return s.Timing == trace.TimingDispatch || Repeated(s)
}

// Repeated reports whether a step was run again with every dispatch timed.
func Repeated(s *trace.Step) bool { return len(s.Dispatches) > 0 && len(s.Dispatches[0].Samples) > 0 }

// LaunchesOf returns every dispatch of a step, in order of submission, with its times.
func (x *Index) LaunchesOf(step int) []Launch {
	out := x.Planned(step)
	for i := range out {
		x.time(&out[i])
	}
	return out
}

// launchesAt returns some dispatches of a step. `places` holds their indices in the order of submission, and
// must be sorted in ascending order.
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

// time sets l.Time from the only step that l covers.
func (x *Index) time(l *Launch) {
	s := &x.Trace.Steps[l.Step]
	d := &s.Dispatches[l.Index]
	if l.Time, l.Samples = TimeOf(d), d.Samples; EachTimed(s) {
		l.Limit = boundOf(&x.Trace.Device, l, l.Time, l.Index == 0)
	}
}

// sameSlot returns the dispatches of a selection with the same id as l or with the same name as l. If the
// selection has several steps, sameSlot returns all of its dispatches.
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

// Planned returns the dispatches of a step with their plans but without their times.
func (x *Index) Planned(step int) []Launch {
	from := x.planning(step)
	out := make([]Launch, len(from.s.Dispatches))
	for i := range out {
		from.reach(x.Trace.Plans[from.s.Dispatches[i].Plan].Dispatch)
		out[i] = from.launch(i)
	}
	return out
}

// planning creates the launches of one step. It goes through the dispatches in order of submission.
type planning struct {
	x        *Index
	s        *trace.Step
	step     int
	levels   *levelsSince // nil if no levels are recorded
	level    int          // level of the dispatch that was reached last
	streamed float64      // computed when first needed; 0 before that
}

func (x *Index) planning(step int) planning {
	return planning{x, &x.Trace.Steps[step], step, x.levelsAt(step), -1, 0}
}

// reach goes on to the next dispatch, `id`. If this dispatch begins a level, that level becomes the current
// level.
func (f *planning) reach(id trace.DispatchID) {
	if n, ok := f.levels.starts()[id]; ok {
		f.level = n
	}
}

// launch returns the i-th dispatch of the step, in the current level.
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
		Kernel: k, Tokens: TokensRead(f.s), Runs: 1, Step: f.step, Level: f.level,
		Waste: WasteOf(p, k), Gap: sd.Error, Least: p.Workgroups, Most: p.Workgroups,
		bytes: float64(p.Bytes), flops: float64(p.FLOPs), streamed: f.streamed,
	}
}

// Appended returns the input that an operator appends to a KV cache. It is the last input whose rows have as
// many elements as a row of the cache. The last one is taken because queries, which come earlier, may have
// rows of the same size. If there is no such input, Appended returns the cache itself.
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

// SymInt returns the number that a value of kind symint had in a step. The bool is false if the step did not
// record it.
func (x *Index) SymInt(step int, v trace.ValueID) (int64, bool) {
	n, ok := x.Trace.Steps[step].SymInts[x.Trace.Graph.Values[v].Name]
	return n, ok
}
