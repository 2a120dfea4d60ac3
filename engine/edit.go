package engine

import (
	"fmt"
	"maps"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// Edit is edited source code that is compiled and can run in place of a kernel of the graph. An edit has the
// same bindings, params and workgroup size as the kernel, so plans, grids and bind groups do not change.
type Edit struct {
	of, by *graph.Kernel
	pipe   gpu.Pipeline
}

// Name returns the name that identifies the edit in records.
func (e *Edit) Name() string { return e.by.Name }

// Of returns the name of the graph's kernel that the edit replaces.
func (e *Edit) Of(g *graph.Graph) string { return g.KernelNames[e.of] }

// NewEdit compiles a replacement for a kernel of the graph. The first argument is the name of the graph's
// kernel, and the second is its replacement. NewEdit returns an error if the replacement does not match the
// bindings, params and grids of the graph's kernel. If the replacement does not compile, the error contains
// the compiler's message.
func (x *Executor) NewEdit(of string, by *graph.Kernel) (*Edit, error) {
	own := x.g.Kernel(of)
	if own == nil {
		return nil, fmt.Errorf("kernel %q does not exist in the graph", of)
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

// Describe returns the description of the edited kernel for a trace.
func (e *Edit) Describe(g *graph.Graph) trace.Kernel {
	t := graph.DescribeKernel(e.by.Name, e.by)
	t.Of, t.Constants = e.Of(g), e.of.Constants
	return t
}

// edits records which edits run in place of kernels of the graph.
type edits struct {
	own     map[*graph.Kernel]gpu.Pipeline // original pipelines of all kernels that an edit has ever replaced
	inForce map[*graph.Kernel]*Edit
	// names holds the names of the edits in `inForce`. The map is replaced, never modified, because records
	// of earlier steps keep the old map.
	names   map[*graph.Kernel]string
	changes int
}

// InPlace returns the edit that runs in place of the named kernel, or nil if there is no such edit.
func (x *Executor) InPlace(of string) *Edit { return x.edits.inForce[x.g.Kernel(of)] }

// Edits returns the edits that run in place of kernels, in the order of the graph's kernels.
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

// Use makes an edit run in place of its kernel, starting with the next step.
func (x *Executor) Use(e *Edit) { x.replace(e.of, e) }

// UseOwn removes the edit of the named kernel. The graph's own kernel then runs again.
func (x *Executor) UseOwn(of string) {
	if k := x.g.Kernel(of); x.edits.inForce[k] != nil {
		x.replace(k, nil)
	}
}

// replace makes an edit run in place of a kernel, or restores the kernel if the edit is nil. The executor
// then treats the dispatches of the kernel as if they had never run, because the first run after a switch is
// cold.
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

// runAs makes later submits run edit e in place of kernel k, or k itself if e is nil.
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

// runs returns the graph's kernel for a dispatch at the current shapes, whether or not an edit replaces this
// kernel.
func (x *Executor) runs(id trace.DispatchID) *graph.Kernel {
	return x.g.KernelOf(id, x.live.Plans[x.g.Dispatches[id].Op].Route)
}

// Serves returns the dispatches of the last step that belong to the named kernel. An edit may run in place of
// the kernel.
func (x *Executor) Serves(of string) (list []trace.DispatchID) {
	k := x.g.Kernel(of)
	for _, id := range x.live.Active() {
		if x.runs(id) == k {
			list = append(list, id)
		}
	}
	return list
}
