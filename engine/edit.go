package engine

import (
	"fmt"
	"maps"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// Edit is another text of a kernel of the graph, compiled to run in its place: bindings, params and
// workgroups are the same, so that plans, grids and bind groups stay as they are.
type Edit struct {
	of, by *graph.Kernel
	pipe   gpu.Pipeline
}

// Name is the name by which records tell the edit from the graph's own kernel.
func (e *Edit) Name() string { return e.by.Name }

// Of is the name of the kernel in whose place it runs.
func (e *Edit) Of(g *graph.Graph) string { return g.KernelNames[e.of] }

// NewEdit compiles a kernel to run in place of the graph's of a name. One that cannot is refused; the error
// of one that does not compile holds the compiler's text.
func (x *Executor) NewEdit(of string, by *graph.Kernel) (*Edit, error) {
	own := x.g.Kernel(of)
	if own == nil {
		return nil, fmt.Errorf("the graph has no kernel %q", of)
	}
	if err := by.CanReplace(own); err != nil {
		return nil, err
	}
	p, err := x.dev.NewPipeline(gpu.PipelineDesc{
		Label: by.Name, Source: by.Source, Entry: "main", Bindings: by.Bindings(),
	})
	if err != nil {
		return nil, fmt.Errorf("compile kernel %s: %w", by.Name, err)
	}
	x.own(p)
	return &Edit{own, by, p}, nil
}

// Describe is the edit as a trace has its kernel.
func (e *Edit) Describe(g *graph.Graph) trace.Kernel {
	t := graph.DescribeKernel(e.by.Name, e.by)
	t.Of, t.Constants = e.Of(g), e.of.Constants
	return t
}

// edits are what runs in place of kernels of the graph.
type edits struct {
	own     map[*graph.Kernel]gpu.Pipeline // of kernels that something has run in place of
	inForce map[*graph.Kernel]*Edit
	names   map[*graph.Kernel]string // of inForce; never changed: records hold it
	changes int
}

// InPlace is what runs in place of the graph's kernel of a name, nil where nothing does.
func (x *Executor) InPlace(of string) *Edit { return x.edits.inForce[x.g.Kernel(of)] }

// Edits are what runs in place of kernels of the graph, in the order in which it has these.
func (x *Executor) Edits() (list []*Edit) {
	if len(x.edits.inForce) == 0 {
		return nil
	}
	for _, k := range x.g.Kernels {
		if e := x.edits.inForce[k]; e != nil {
			list = append(list, e)
		}
	}
	return list
}

// Use has an edit run in place of its kernel from the next step on.
func (x *Executor) Use(e *Edit) { x.replace(e.of, e) }

// UseOwn has the graph's kernel of a name run itself again.
func (x *Executor) UseOwn(of string) {
	if k := x.g.Kernel(of); x.edits.inForce[k] != nil {
		x.replace(k, nil)
	}
}

// replace puts an edit in force, nil for the kernel itself. It has not run yet, or not for long.
func (x *Executor) replace(k *graph.Kernel, e *Edit) {
	inForce := maps.Clone(x.edits.inForce)
	if inForce == nil {
		inForce = map[*graph.Kernel]*Edit{}
	}
	delete(inForce, k)
	if e != nil {
		inForce[k] = e
	}
	names := make(map[*graph.Kernel]string, len(inForce))
	for of, e := range inForce {
		names[of] = e.Name()
	}
	x.edits.inForce, x.edits.names = inForce, names
	x.edits.changes++
	x.runAs(k, e)
	for i := range x.g.Dispatches {
		d := &x.g.Dispatches[i]
		for r := range graph.MaxRoutes {
			if x.g.Ops[d.Op].Use(d.Slot, r).Kernel == k {
				x.hasRun[i*graph.MaxRoutes+r] = false
			}
		}
	}
}

// runAs has what is submitted from now on run an edit in place of a kernel, or for nil the kernel itself.
func (x *Executor) runAs(k *graph.Kernel, e *Edit) {
	if x.edits.own[k] == nil {
		if x.edits.own == nil {
			x.edits.own = map[*graph.Kernel]gpu.Pipeline{}
		}
		x.edits.own[k] = x.pipes[k]
	}
	if x.pipes[k] = x.edits.own[k]; e != nil {
		x.pipes[k] = e.pipe
	}
}

// runs is the graph's kernel that a dispatch of the shapes in force runs, or that another stands for.
func (x *Executor) runs(id trace.DispatchID) *graph.Kernel {
	return x.g.KernelOf(id, x.live.Plans[x.g.Dispatches[id].Op].Route)
}

// Serves are the dispatches of the last step that run the graph's kernel of a name, or what is in its place.
func (x *Executor) Serves(of string) (list []trace.DispatchID) {
	k := x.g.Kernel(of)
	for _, id := range x.live.Active() {
		if x.runs(id) == k {
			list = append(list, id)
		}
	}
	return list
}
