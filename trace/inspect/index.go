package inspect

import (
	"slices"
	"sort"

	"gpuscope/trace"
)

// Index answers what a step of a trace inherits from the steps before it: live dims, levels, and where a
// dispatch stands. A trace records only what changed from step to step; the index keeps those changes by
// value, so a lookup costs the logarithm of their number.
//
// An Index is not safe for concurrent use while Sync runs.
type Index struct {
	Trace *trace.Trace
	// synced steps have been read, the first of them being the trace's step number first: a recorder drops
	// steps.
	synced, first int
	dims          [][]dimsSince
	levels        []levelsSince
	replanned     [][]int        // by dispatch: the steps in which it got another plan
	producers     [][]trace.OpID // by value
	consumers     [][]trace.OpID
	kernels       map[string]*trace.Kernel
	layers        *layering
}

type dimsSince struct {
	step int
	dims []int
}

type levelsSince struct {
	step int
	of   map[trace.DispatchID]int // level that begins with the dispatch
}

// NewIndex indexes a trace.
func NewIndex(t *trace.Trace) *Index {
	x := &Index{}
	x.Sync(t)
	return x
}

// Sync brings the index up to date with a trace that has grown, or with another snapshot of the same
// recording. Its cost is that of the steps that are new.
func (x *Index) Sync(t *trace.Trace) {
	if x.Trace == nil || t.DroppedSteps != x.first || len(t.Steps) < x.synced ||
		!sameGraph(&x.Trace.Graph, &t.Graph) {
		*x = Index{
			Trace: t, first: t.DroppedSteps,
			dims: make([][]dimsSince, len(t.Graph.Values)), replanned: make([][]int, len(t.Graph.Dispatches)),
		}
		x.indexGraph()
	}
	x.Trace = t
	for ; x.synced < len(t.Steps); x.synced++ {
		s := &t.Steps[x.synced]
		for _, d := range s.Dims {
			if int(d.Value) < len(x.dims) {
				x.dims[d.Value] = append(x.dims[d.Value], dimsSince{x.synced, d.Dims})
			}
		}
		if len(s.Levels) > 0 {
			of := make(map[trace.DispatchID]int, len(s.Levels))
			for i, d := range s.Levels {
				of[d] = i
			}
			x.levels = append(x.levels, levelsSince{x.synced, of})
		}
		eachPlanChange(s, func(_ *trace.Hook, c trace.PlanChange) {
			id := changed(t, c)
			if list := x.replanned[id]; len(list) == 0 || list[len(list)-1] != x.synced {
				x.replanned[id] = append(list, x.synced)
			}
		})
	}
}

// sameGraph compares by identity: snapshots of one recording share the graph's lists.
func sameGraph(a, b *trace.Graph) bool {
	return len(a.Values) == len(b.Values) && len(a.Ops) == len(b.Ops) &&
		len(a.Dispatches) == len(b.Dispatches) &&
		(len(a.Ops) == 0 || &a.Ops[0] == &b.Ops[0])
}

func (x *Index) indexGraph() {
	g := &x.Trace.Graph
	x.producers, x.consumers = make([][]trace.OpID, len(g.Values)), make([][]trace.OpID, len(g.Values))
	for i := range g.Ops {
		for _, v := range g.Ops[i].Outputs {
			x.producers[v] = append(x.producers[v], trace.OpID(i))
		}
		for _, v := range g.Ops[i].Inputs {
			if list := x.consumers[v]; len(list) == 0 || list[len(list)-1] != trace.OpID(i) {
				x.consumers[v] = append(list, trace.OpID(i))
			}
		}
	}
	x.kernels = make(map[string]*trace.Kernel, len(g.Kernels))
	for i := range g.Kernels {
		x.kernels[g.Kernels[i].Name] = &g.Kernels[i]
	}
	x.layers = layersOf(g)
}

// Dims are the live dims of a value at a step (an index into Trace.Steps): those of the last change up to it,
// or the maximum where nothing changed yet. They must not be changed.
func (x *Index) Dims(step int, v trace.ValueID) []int {
	history := x.dims[v]
	i := sort.Search(len(history), func(i int) bool { return history[i].step > step })
	if i == 0 {
		return x.Trace.Graph.Values[v].MaxDims
	}
	return history[i-1].dims
}

// levelStarts are the levels in force at a step, by the dispatch each begins with; nil where none are
// recorded.
func (x *Index) levelStarts(step int) map[trace.DispatchID]int {
	i := sort.Search(len(x.levels), func(i int) bool { return x.levels[i].step > step })
	if i == 0 {
		return nil
	}
	return x.levels[i-1].of
}

// Find is the place of a dispatch among those of a step, or -1 where it did not run.
func (x *Index) Find(step int, id trace.DispatchID) int {
	return slices.IndexFunc(x.Trace.Steps[step].Dispatches,
		func(d trace.StepDispatch) bool { return x.Trace.Plans[d.Plan].Dispatch == id })
}

// PlanOf is the plan that was in force for a dispatch at a step, nil where it did not run.
func (x *Index) PlanOf(step int, id trace.DispatchID) *trace.Plan {
	if i := x.Find(step, id); i >= 0 {
		return &x.Trace.Plans[x.Trace.Steps[step].Dispatches[i].Plan]
	}
	return nil
}

// Kernel is a kernel by name, nil where the trace has none of it.
func (x *Index) Kernel(name string) *trace.Kernel { return x.kernels[name] }

// Producers are the operators that give a value.
func (x *Index) Producers(v trace.ValueID) []trace.OpID { return x.producers[v] }

// Consumers are the operators that take a value.
func (x *Index) Consumers(v trace.ValueID) []trace.OpID { return x.consumers[v] }
