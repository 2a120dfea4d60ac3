package engine

import (
	"fmt"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// The graph as data: what the passes of Finish leave, which Live and Executor read and nobody changes, and
// how a trace describes it.

// Graph is a finished dynamic-shape graph: operators in execution order, the values they pass on, the
// dispatch slots in order of submission, and the memory plan. It never changes, needs no device, and serves
// every live shape within its maxima. Live holds what changes, Executor what is on a device.
type Graph struct {
	limits     gpu.Limits
	values     []value
	ops        []op
	inputs     []ValueID
	outputs    []ValueID
	dispatches []dispatch
	kernels    []*Kernel // that any corner uses
	names      map[*Kernel]string
	// layouts say where values live: the first at any shape, the last at small ones.
	layouts []layout
	own     int    // the number of the first buffer that is a value's own
	symOps  []bool // by operator: gives SymInts from inputs and SymInts only
	passes  []PassReport
}

// dispatch is a dispatch slot of an operator in the graph.
type dispatch struct {
	op     OpID
	slot   int // of the operator's Spec.Slots
	level  int // lowest level it can run at when every slot is in use
	reads  []ValueID
	writes []ValueID
	routes uint64 // in which it is in use, by bit
	// symInts: the operator reads SymInts, so its params change from step to step.
	symInts bool
	// free: nothing computed holds it back, so it runs when its result is needed.
	free bool
}

// symOnly says whether an operator gives SymInts from graph inputs and such SymInts alone.
func (g *Graph) symOnly(o *op) bool {
	for _, v := range o.spec.Outputs {
		if g.values[v].kind != symInt {
			return false
		}
	}
	for _, v := range o.spec.Inputs {
		if p := g.values[v].producer; g.values[v].role != Input && (p < 0 || !g.symOps[p]) {
			return false
		}
	}
	return len(o.spec.Outputs) > 0
}

// settleAliases grants aliases. A graph input, an output and State keep memory of their own, so an alias that
// touches one is a copy. No operator writes an intermediate after its producer gave it, so nothing else
// stands in the way.
func (g *Graph) settleAliases() {
	for i := range g.ops {
		o := &g.ops[i]
		if !o.spec.Alias {
			continue
		}
		in, out := g.root(o.spec.Inputs[0]), o.spec.Outputs[0]
		if r := g.values[in].role; (r == Intermediate || r == Constant) &&
			g.values[out].role == Intermediate && g.values[out].bytes <= g.values[in].bytes {
			g.values[out].alias, o.aliased = in, true
		}
	}
}

// root is the value whose memory v lives in.
func (g *Graph) root(v ValueID) ValueID {
	if a := g.values[v].alias; a != None {
		return a // aliases of aliases were rooted when they were granted
	}
	return v
}

// collectKernels lists the kernels that any corner uses.
func (g *Graph) collectKernels() {
	seen := map[*Kernel]bool{}
	for i := range g.ops {
		o := &g.ops[i]
		for c := range o.corner {
			for s := range o.spec.Slots {
				k := o.use(s, o.corner[c].route).Kernel
				if o.corner[c].launches[s].active && !o.aliased && !seen[k] {
					seen[k] = true
					g.kernels = append(g.kernels, k)
				}
			}
		}
	}
}

// Inputs are the graph's inputs: tensors, and SymInts that the host sets.
func (g *Graph) Inputs() []ValueID { return g.inputs }

// Outputs are the graph's output tensors.
func (g *Graph) Outputs() []ValueID { return g.outputs }

// Ops is the number of operators; their ids are 0 to Ops()-1.
func (g *Graph) Ops() int { return len(g.ops) }

// Dispatches is the number of dispatch slots.
func (g *Graph) Dispatches() int { return len(g.dispatches) }

// Operators calls yield for every operator in execution order.
func (g *Graph) Operators(yield func(OpID, string, Operator) bool) {
	for i := range g.ops {
		if !yield(g.ops[i].id, g.ops[i].name, g.ops[i].impl) {
			return
		}
	}
}

// Values is the number of values; their ids are 0 to Values()-1.
func (g *Graph) Values() int { return len(g.values) }

// ValueInfo is what a graph knows of a value before anything runs.
type ValueInfo struct {
	Name    string
	DType   DType
	Role    Role
	SymInt  bool
	MaxDims []int                  // of a tensor
	Range   [2]int64               // of a SymInt
	Load    func() ([]byte, error) // bytes of a constant, or of State at first; nil: zeros
	Column  func(at int) int       // of a row in another order: that which lies there; nil: at
}

// Value describes a value.
func (g *Graph) Value(v ValueID) ValueInfo { return g.values[v].info() }

func (v *value) info() ValueInfo {
	return ValueInfo{
		v.name, v.dtype, v.role, v.kind == symInt, v.maxDims, [2]int64{v.lo, v.hi}, v.load, v.column,
	}
}

// Describe is the graph as a trace has it, without the kernels' source where source is false.
func (g *Graph) Describe() trace.Graph {
	d := trace.Graph{Values: make([]trace.Value, len(g.values))}
	for i := range g.values {
		val := &g.values[i]
		tv := trace.Value{ID: ValueID(i), Name: val.name, Kind: val.kind.String(), Role: val.role.String()}
		if val.kind == symInt {
			tv.Role = "symint"
			d.SymInts = append(d.SymInts,
				trace.SymInt{
					ID: trace.SymIntID(len(d.SymInts)), Value: ValueID(i), Name: val.name,
					Min: val.lo, Max: val.hi,
				})
		} else {
			tv.DType, tv.MaxDims, tv.Bytes = val.dtype.String(), val.maxDims, val.bytes
			tv.Matrix = val.matrix
		}
		if s := &g.layouts[0].slot[i]; *s >= 0 {
			tv.Slot = s
		}
		if val.alias != None {
			tv.AliasOf = &val.alias
		}
		d.Values[i] = tv
	}
	for i := range g.ops {
		d.Ops = append(d.Ops, g.ops[i].describe())
	}
	for _, k := range g.kernels {
		d.Kernels = append(d.Kernels, describeKernel(g.names[k], k))
	}
	for i := range g.dispatches {
		d.Dispatches = append(d.Dispatches, g.describeDispatch(trace.DispatchID(i)))
	}
	return d
}

func (o *op) describe() trace.Op {
	d := trace.Op{
		ID: o.id, Name: o.name, Kind: o.spec.Kind, Inputs: o.spec.Inputs,
		Outputs: o.spec.Outputs, Makes: o.spec.Makes, State: o.spec.State, Attrs: o.spec.Attrs,
		Block: o.block, Parts: o.parts,
	}
	if o.layer >= 0 {
		d.Layer = &o.layer
	}
	return d
}

// named is what tables call the dispatch of a slot.
func (o *op) named(slot int) string {
	d := trace.Dispatch{Label: o.spec.Slots[slot].Label}
	return d.Named(o.name)
}

func (g *Graph) describeDispatch(id trace.DispatchID) trace.Dispatch {
	dp := &g.dispatches[id]
	o := &g.ops[dp.op]
	d := trace.Dispatch{
		ID: id, Op: dp.op, Label: o.spec.Slots[dp.slot].Label, Reads: dp.reads,
		Writes: dp.writes,
	}
	var most Grid
	for c := range o.corner {
		l := &o.corner[c].launches[dp.slot]
		if !l.active {
			continue
		}
		use := o.use(dp.slot, o.corner[c].route)
		k := slices.Index(d.Kernels, g.names[use.Kernel])
		if k < 0 {
			k = len(d.Kernels)
			d.Kernels, d.Bound = append(d.Kernels, g.names[use.Kernel]), append(d.Bound, nil)
		}
		for _, bind := range use.Bind {
			if !slices.Contains(d.Bound[k], bind.Value) {
				d.Bound[k] = append(d.Bound[k], bind.Value)
			}
		}
		if g := o.largestGrid(dp.slot, o.corner[c].route); g.Workgroups() > most.Workgroups() {
			most = g
		}
	}
	d.MaxWorkgroups = most.counts()
	return d
}

func (g Grid) counts() [3]int { return [3]int{int(g.X), int(g.Y), int(g.Z)} }

// Kernel is the graph's kernel of a name, nil where it has none.
func (g *Graph) Kernel(name string) *Kernel {
	for _, k := range g.kernels {
		if g.names[k] == name {
			return k
		}
	}
	return nil
}

// kernelOf is the graph's kernel for a dispatch on a route.
func (g *Graph) kernelOf(id trace.DispatchID, route int) *Kernel {
	d := &g.dispatches[id]
	return g.ops[d.op].use(d.slot, route).Kernel
}

// beside says whether two values are written by the same dispatches and read by none.
func (g *Graph) beside(a, b ValueID) bool {
	u, v := &g.values[a], &g.values[b]
	if u.producer < 0 || u.producer != v.producer || len(u.consumers)+len(v.consumers) > 0 {
		return false
	}
	binds := func(use Use, v ValueID) bool {
		return slices.ContainsFunc(use.Bind, func(b Binding) bool { return b.Value == v })
	}
	for _, slot := range g.ops[u.producer].spec.Slots {
		for _, use := range slot.Uses {
			if binds(use, a) != binds(use, b) {
				return false
			}
		}
	}
	return true
}

// blockNames are what is said of the block that each dispatch stands in: a part of a layer, or an operator
// outside of them.
func (g *Graph) blockNames() []string {
	names := make([]string, len(g.dispatches))
	for i := range g.dispatches {
		o := &g.ops[g.dispatches[i].op]
		switch {
		case o.layer < 0:
			names[i] = o.name
		case o.block == "":
			names[i] = fmt.Sprintf("layers.%d", o.layer)
		default:
			names[i] = fmt.Sprintf("layers.%d.%s", o.layer, o.block)
		}
	}
	return names
}
