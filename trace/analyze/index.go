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

// Index answers what a step of a trace inherits from the steps before it: live dims, levels, and where a
// dispatch stands. A trace records only what changed from step to step; the index keeps those changes by
// value, so a lookup costs the logarithm of their number.
//
// An Index is of one version of a trace and never changes: it may be read by any goroutine, and Next gives
// the index of a longer version.
type Index struct {
	Trace *trace.Trace
	Graph *graph

	dims           histories[dimsSince]      // by value
	Replanned      histories[int]            // by dispatch: the steps in which it got another plan
	RegriddedSteps []int                     // in which a dispatch got another grid or route, or came or went
	phases         map[trace.Phase]StepGroup // the steps of each
	levels         []levelsSince
	routes         []int        // of each step the first that took the same
	Rows           []tree.Row   // one for each step
	extended       *atomic.Bool // a longer version has taken the memory after the ends of the lists
}

// StepGroup are indices of steps of a kind: those that are cold, and the others.
type StepGroup struct{ warm, cold []int }

type dimsSince struct {
	step int
	dims []int
}

// levelsSince are the levels that are in force from a step on.
type levelsSince struct {
	step int
	of   map[trace.DispatchID]int // level that begins with the dispatch
	// waits are what the barrier before a dispatch waits for; nil where that was not recorded.
	waits map[trace.DispatchID][]trace.Wait
}

// graph is what the index knows of a trace's graph, the same for all versions.
type graph struct {
	producers [][]trace.OpID // by value
	makers    [][]trace.OpID
	consumers [][]trace.OpID
	Kernels   map[string]*trace.Kernel
	Symints   map[trace.ValueID]*trace.SymInt
	Layers    *layering
	// sums are stepSums of repeated steps, by the first of their dispatches: a list of dispatches is made
	// anew when it gets samples.
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

// Next is the index of a trace that has grown, or of another snapshot of the same recording; x stays as it
// is. Its cost is that of the steps that are new. A nil Index has everything before it.
func (x *Index) Next(t *trace.Trace) *Index {
	if x == nil || t.DroppedSteps != x.Trace.DroppedSteps || len(t.Steps) < len(x.Rows) ||
		!sameGraph(&x.Trace.Graph, &t.Graph) {
		return NewIndex(t)
	}
	return x.with(t)
}

// with is an index of x's steps and those that t has more.
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
			regrids = regrids || LaunchesOtherwise(PlanOf(t, c.From), PlanOf(t, c.To))
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

// routed is the first step that took the routes of a step, by those of the steps before it: most often those
// of the one just before.
func routed(t *trace.Trace, before []int, step int) int {
	for k := step - 1; k >= 0; k-- {
		if first := before[k]; (first == k || k == step-1) && sameRoutes(t, first, step) {
			return first
		}
	}
	return step
}

// sameRoutes reports that two steps ran the same dispatches, each with the same kernel by the same route.
func sameRoutes(t *trace.Trace, a, b int) bool {
	list, also := t.Steps[a].Dispatches, t.Steps[b].Dispatches
	if len(list) != len(also) {
		return false
	}
	for i := range list { // nothing is copied: of every step this is asked
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

// sameGraph compares by identity: snapshots of one recording share the graph's lists.
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

// liveDims are the dims of a step's entry, nil where the step does not compute the value. In older traces,
// those of scratch are 0 then, and a scalar has none.
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

// Largest are the largest dims of a value; of a scalar none, which is not nil.
func Largest(v *trace.Value) []int {
	if v.MaxDims == nil {
		return []int{}
	}
	return v.MaxDims
}

// Dims are the live dims of a value at a step (an index into Trace.Steps): those of the last change up to it,
// or the maximum where nothing changed yet; nil where the step does not compute it. They must not be changed.
func (x *Index) Dims(step int, v trace.ValueID) []int {
	history := x.dims.Of(int(v))
	i := sort.Search(len(history), func(i int) bool { return history[i].step > step })
	if i == 0 {
		return Largest(&x.Trace.Graph.Values[v])
	}
	return history[i-1].dims
}

// levelsAt are the levels in force at a step; nil where none are recorded.
func (x *Index) levelsAt(step int) *levelsSince {
	i := sort.Search(len(x.levels), func(i int) bool { return x.levels[i].step > step })
	if i == 0 {
		return nil
	}
	return &x.levels[i-1]
}

// LevelStarts are the levels in force at a step, by the dispatch each begins with.
func (x *Index) LevelStarts(step int) map[trace.DispatchID]int {
	return x.levelsAt(step).starts()
}

// starts are the levels by the dispatch each begins with; of nil there are none.
func (l *levelsSince) starts() map[trace.DispatchID]int {
	if l == nil {
		return nil
	}
	return l.of
}

// Find is the place of a dispatch among those of a step, or -1 where it did not run.
func (x *Index) Find(step int, id trace.DispatchID) int {
	return slices.IndexFunc(x.Trace.Steps[step].Dispatches,
		func(d trace.StepDispatch) bool { return x.Trace.Plans[d.Plan].Dispatch == id })
}

// Ran says in how many steps a dispatch ran, and which was the last, -1 for none.
func (x *Index) Ran(id trace.DispatchID) (steps, last int) {
	last = -1
	in := map[int]bool{} // of steps that are the first of their routes
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

// PlanOf is the plan that was in force for a dispatch at a step, nil where it did not run.
func (x *Index) PlanOf(step int, id trace.DispatchID) *trace.Plan {
	if i := x.Find(step, id); i >= 0 {
		return &x.Trace.Plans[x.Trace.Steps[step].Dispatches[i].Plan]
	}
	return nil
}

// Kernel is a kernel by name, nil where the trace has none of it.
func (x *Index) Kernel(name string) *trace.Kernel { return x.Graph.Kernels[name] }

// Producers are the operators that give a value.
func (x *Index) Producers(v trace.ValueID) []trace.OpID { return x.Graph.producers[v] }

// Makers are the operators that make a value where the one that gives it leaves it.
func (x *Index) Makers(v trace.ValueID) []trace.OpID { return x.Graph.makers[v] }

// Consumers are the operators that take a value.
func (x *Index) Consumers(v trace.ValueID) []trace.OpID { return x.Graph.consumers[v] }
