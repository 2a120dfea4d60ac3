package analyze

import (
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"gpuscope/trace"
	"gpuscope/trace/tree"
)

// Index looks up state that a step inherits from earlier steps: the current shapes of values, levels, and
// plans. A trace records only changes of this state. The index has a list of changes for each value. The time
// of a lookup therefore grows only with the logarithm of the number of changes.
//
// An Index belongs to one version of a trace and never changes, so any goroutine may read it. Next returns
// the index of a longer version of the trace.
type Index struct {
	Trace *trace.Trace
	Graph *graph

	dims      histories[dimsSince] // indexed by value
	Replanned histories[int]       // for each dispatch, the steps in which its plan changed
	// RegriddedSteps holds the steps in which a dispatch was added or removed, or in which a grid or route
	// changed.
	RegriddedSteps []int
	phases         map[trace.Phase]StepGroup // the steps of each phase
	levels         []levelsSince
	routes         []int        // for each step, the first step that took the same routes
	Rows           []tree.Row   // one row for each step
	extended       *atomic.Bool // a longer version uses the capacity beyond the ends of the slices
}

// StepGroup is a set of steps, divided into cold and warm steps. It holds their indices.
type StepGroup struct{ warm, cold []int }

type dimsSince struct {
	step int
	dims []int
}

// levelsSince holds the levels that the step `step` recorded. They also apply to all later steps before the
// step of the next levelsSince.
type levelsSince struct {
	step int
	of   map[trace.DispatchID]int // for each dispatch that begins a level, the number of the level
	// waits holds, for each dispatch, what the barrier before the dispatch waits for. It is nil if the trace
	// did not record this.
	waits map[trace.DispatchID][]trace.Wait
}

// graph holds tables for lookups in the graph of a trace. All versions of an index share it.
type graph struct {
	producers [][]trace.OpID // indexed by value
	makers    [][]trace.OpID
	consumers [][]trace.OpID
	Kernels   map[string]*trace.Kernel
	Symints   map[trace.ValueID]*trace.SymInt
	Layers    *layering
	// sums is a cache with the stepSum of each repeated step. The key is the address of the step's first
	// dispatch. When samples are added to a step, its list of dispatches is replaced, so the key changes
	// too.
	sums sync.Map
}

// NewIndex indexes a trace.
func NewIndex(t *trace.Trace) *Index {
	x := &Index{
		Trace: t, Graph: indexGraph(&t.Graph),
		dims:      newHistories[dimsSince](len(t.Graph.Values)),
		Replanned: newHistories[int](len(t.Graph.Dispatches)),
	}
	return x.with(t)
}

// Next returns the index of t, which is a longer version of the trace of x, or another snapshot of the same
// recording. x itself does not change. Next indexes only the steps that x does not have. If x is nil, it
// indexes all steps.
func (x *Index) Next(t *trace.Trace) *Index {
	if x == nil || t.DroppedSteps != x.Trace.DroppedSteps || len(t.Steps) < len(x.Rows) ||
		!sameGraph(&x.Trace.Graph, &t.Graph) {
		return NewIndex(t)
	}
	return x.with(t)
}

// with returns an index of t. It takes over the results for the steps that x has indexed, and computes the
// results for the later steps of t.
func (x *Index) with(t *trace.Trace) *Index {
	if len(t.Steps) == len(x.Rows) {
		same := *x
		same.Trace = t
		return &same
	}
	taken := x.extended != nil && !x.extended.CompareAndSwap(false, true)
	levels, rows, regridded, routes := x.levels, x.Rows, x.RegriddedSteps, x.routes
	if taken {
		levels, rows, regridded = slices.Clip(levels), slices.Clip(rows), slices.Clip(regridded)
		routes = slices.Clip(routes)
	}
	dims, replanned := x.dims.extend(taken), x.Replanned.extend(taken)
	phases := map[trace.Phase]StepGroup{}
	for name, p := range x.phases {
		if phases[name] = p; taken {
			phases[name] = StepGroup{slices.Clip(p.warm), slices.Clip(p.cold)}
		}
	}
	for i := len(x.Rows); i < len(t.Steps); i++ {
		s := &t.Steps[i]
		for _, d := range s.Dims {
			if int(d.Value) < len(t.Graph.Values) {
				dims.append(int(d.Value), dimsSince{i, liveDims(t, &d)})
			}
		}
		if len(s.Levels) > 0 {
			of := make(map[trace.DispatchID]int, len(s.Levels))
			for k, d := range s.Levels {
				of[d] = k
			}
			var waits map[trace.DispatchID][]trace.Wait
			if len(s.Waits) > 0 {
				waits = make(map[trace.DispatchID][]trace.Wait, len(s.Levels))
			}
			for _, w := range s.Waits {
				waits[w.Dispatch] = append(waits[w.Dispatch], w)
			}
			levels = append(levels, levelsSince{i, of, waits})
		}
		regrids := false
		EachPlanChange(s, func(_ *trace.Hook, c trace.PlanChange) {
			regrids = regrids || trace.LaunchesOtherwise(PlanOf(t, c.From), PlanOf(t, c.To))
			id := int(Changed(t, c))
			if list := replanned.Of(id); len(list) == 0 || list[len(list)-1] != i {
				replanned.append(id, i)
			}
		})
		phases[s.Phase] = phases[s.Phase].With(i, s.Cold)
		if regrids {
			regridded = append(regridded, i)
		}
		routes = append(routes, routed(t, routes, i))
		rows = append(rows, tree.Row{Key: fmt.Sprintf("s%d", s.Index), Parent: -1})
	}
	return &Index{
		Trace: t, Graph: x.Graph, dims: dims.histories, Replanned: replanned.histories, levels: levels,
		Rows: rows, RegriddedSteps: regridded, routes: routes, phases: phases, extended: new(atomic.Bool),
	}
}

// routed returns the first step that took the same routes as the given step, or the step itself if no earlier
// step did. `before` holds the results for all earlier steps. The step before the given one usually took the
// same routes, and is therefore tried first.
func routed(t *trace.Trace, before []int, step int) int {
	for k := step - 1; k >= 0; k-- {
		if first := before[k]; (first == k || k == step-1) && sameRoutes(t, first, step) {
			return first
		}
	}
	return step
}

// sameRoutes reports whether two steps ran the same dispatches, each with the same kernel and route.
func sameRoutes(t *trace.Trace, a, b int) bool {
	list, also := t.Steps[a].Dispatches, t.Steps[b].Dispatches
	if len(list) != len(also) {
		return false
	}
	for i := range list { // compared without copying plans, which would be slow: this runs for every step
		if list[i].Plan == also[i].Plan {
			continue
		}
		p, q := &t.Plans[list[i].Plan], &t.Plans[also[i].Plan]
		if p.Dispatch != q.Dispatch || !p.SameKernel(q) {
			return false
		}
	}
	return true
}

// sameGraph reports whether two graphs are the same. It compares addresses, because snapshots of one
// recording share the slices of their graph.
func sameGraph(a, b *trace.Graph) bool {
	return len(a.Values) == len(b.Values) && len(a.Ops) == len(b.Ops) &&
		len(a.Dispatches) == len(b.Dispatches) && len(a.Kernels) == len(b.Kernels) &&
		(len(a.Ops) == 0 || &a.Ops[0] == &b.Ops[0])
}

func indexGraph(g *trace.Graph) *graph {
	x := &graph{
		producers: make([][]trace.OpID, len(g.Values)), makers: make([][]trace.OpID, len(g.Values)),
		consumers: make([][]trace.OpID, len(g.Values)),
		Kernels:   make(map[string]*trace.Kernel, len(g.Kernels)), Layers: layersOf(g),
		Symints: make(map[trace.ValueID]*trace.SymInt, len(g.SymInts)),
	}
	for i := range g.SymInts {
		x.Symints[g.SymInts[i].Value] = &g.SymInts[i]
	}
	for i := range g.Ops {
		for _, v := range g.Ops[i].Outputs {
			x.producers[v] = append(x.producers[v], trace.OpID(i))
		}
		for _, v := range g.Ops[i].Makes {
			x.makers[v] = append(x.makers[v], trace.OpID(i))
		}
		for _, v := range g.Ops[i].Inputs {
			if list := x.consumers[v]; len(list) == 0 || list[len(list)-1] != trace.OpID(i) {
				x.consumers[v] = append(list, trace.OpID(i))
			}
		}
	}
	for i := range g.Kernels {
		x.Kernels[g.Kernels[i].Name] = &g.Kernels[i]
	}
	return x
}

// liveDims returns the dims that a step recorded for a value, or nil if the step does not compute the value.
// Older traces recorded a dim of 0 for a scratch buffer that is not computed, and no dims for a scalar.
func liveDims(t *trace.Trace, d *trace.LiveDims) []int {
	switch {
	case t.TellsAbsent():
		return d.Dims
	case t.Graph.Values[d.Value].Role == trace.RoleScratch && slices.Contains(d.Dims, 0):
		return nil
	case d.Dims == nil:
		return []int{}
	}
	return d.Dims
}

// Largest returns the maximum dims of a value. For a scalar, which has no dims, it returns an empty slice
// instead of nil.
func Largest(v *trace.Value) []int {
	if v.MaxDims == nil {
		return []int{}
	}
	return v.MaxDims
}

// Dims returns the dims that a value had at a step, or nil if the step does not compute the value. `step` is
// an index into Trace.Steps. If neither this step nor an earlier one changed the dims, they are the maximum
// dims. The caller must not change the slice.
func (x *Index) Dims(step int, v trace.ValueID) []int {
	history := x.dims.Of(int(v))
	i := sort.Search(len(history), func(i int) bool { return history[i].step > step })
	if i == 0 {
		return Largest(&x.Trace.Graph.Values[v])
	}
	return history[i-1].dims
}

// levelsAt returns the levels that apply to a step, or nil if no levels are recorded.
func (x *Index) levelsAt(step int) *levelsSince {
	i := sort.Search(len(x.levels), func(i int) bool { return x.levels[i].step > step })
	if i == 0 {
		return nil
	}
	return &x.levels[i-1]
}

// LevelStarts returns the number of each level of a step. The key is the dispatch that begins the level.
func (x *Index) LevelStarts(step int) map[trace.DispatchID]int {
	return x.levelsAt(step).starts()
}

// starts returns the number of each level. The key is the dispatch that begins the level. If l is nil, starts
// returns nil.
func (l *levelsSince) starts() map[trace.DispatchID]int {
	if l == nil {
		return nil
	}
	return l.of
}

// Find returns the index of a dispatch in the list of dispatches that a step ran, or -1 if the step did not
// run it.
func (x *Index) Find(step int, id trace.DispatchID) int {
	return slices.IndexFunc(x.Trace.Steps[step].Dispatches,
		func(d trace.StepDispatch) bool { return x.Trace.Plans[d.Plan].Dispatch == id })
}

// Ran returns the number of steps in which a dispatch ran. It also returns the last of these steps, or -1 if
// the dispatch never ran.
func (x *Index) Ran(id trace.DispatchID) (steps, last int) {
	last = -1
	in := map[int]bool{} // key: first step with certain routes; value: whether the dispatch ran
	for i, first := range x.routes {
		if first == i {
			in[i] = x.Find(i, id) >= 0
		}
		if in[first] {
			steps, last = steps+1, i
		}
	}
	return steps, last
}

// PlanOf returns the plan with which a dispatch ran in a step, or nil if it did not run.
func (x *Index) PlanOf(step int, id trace.DispatchID) *trace.Plan {
	if i := x.Find(step, id); i >= 0 {
		return &x.Trace.Plans[x.Trace.Steps[step].Dispatches[i].Plan]
	}
	return nil
}

// Kernel returns the kernel with the given name, or nil if the trace does not describe it.
func (x *Index) Kernel(name string) *trace.Kernel { return x.Graph.Kernels[name] }

// Producers returns the operators that have a value as output.
func (x *Index) Producers(v trace.ValueID) []trace.OpID { return x.Graph.producers[v] }

// Makers returns the operators that compute a value themselves if no producer writes it. This happens, for
// example, after a fusion.
func (x *Index) Makers(v trace.ValueID) []trace.OpID { return x.Graph.makers[v] }

// Consumers returns the operators that have a value as input.
func (x *Index) Consumers(v trace.ValueID) []trace.OpID { return x.Graph.consumers[v] }
