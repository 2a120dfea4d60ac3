package graph

import (
	"fmt"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph/grid"
	"gpuscope/trace"
)

// The graph as data: Finish produces it, Live and Executor read it, and nothing changes it.

// Graph is a finished dynamic-shape graph: operators in execution order, their values, the dispatch slots in
// order of submission, and the memory plan. It never changes, needs no device, and serves every live shape up
// to its maximum shapes. Live has the state that changes, Executor what is on a device.
type Graph struct {
	Limits      gpu.Limits
	Values      []Value
	Ops         []Op
	inputs      []ValueID
	outputs     []ValueID
	Dispatches  []dispatch
	Kernels     []*Kernel // used at any corner
	KernelNames map[*Kernel]string
	// Layouts assign memory to values: the first fits any shape, the last only small ones.
	Layouts  []Layout
	FirstOwn int    // first buffer number of values with their own buffer
	symOps   []bool // by operator: computes SymInts only from inputs and such SymInts
	passes   []PassReport
}

// dispatch is a dispatch slot of an operator.
type dispatch struct {
	Op     OpID
	Slot   int // index in the operator's Spec.Slots
	Level  int // lowest level at which it can run if every slot is in use
	reads  []ValueID
	Writes []ValueID
	routes uint64 // bit set of the routes that use it
	// SymInts: the operator reads SymInts, so its params change every step.
	SymInts bool
	// free: it depends on no computed value, so it is delayed until its result is needed.
	free bool
}

// symOnly reports whether an operator computes only SymInts, from graph inputs and such SymInts.
func (g *Graph) symOnly(o *Op) bool {
	for _, v := range o.Spec.Outputs {
		if g.Values[v].Kind != SymInt {
			return false
		}
	}
	for _, v := range o.Spec.Inputs {
		if p := g.Values[v].Producer; g.Values[v].Role != Input && (p < 0 || !g.symOps[p]) {
			return false
		}
	}
	return len(o.Spec.Outputs) > 0
}

// settleAliases grants aliases. An alias that touches a graph input, an output or State is a copy instead,
// because those have their own memory. Nothing else prevents an alias, because no operator writes an
// intermediate after its producer.
func (g *Graph) settleAliases() {
	for i := range g.Ops {
		o := &g.Ops[i]
		if !o.Spec.Alias {
			continue
		}
		in, out := g.Root(o.Spec.Inputs[0]), o.Spec.Outputs[0]
		if r := g.Values[in].Role; (r == Intermediate || r == Constant) &&
			g.Values[out].Role == Intermediate && g.Values[out].Bytes <= g.Values[in].Bytes {
			g.Values[out].Alias, o.Aliased = in, true
		}
	}
}

// Root is the value that owns the memory of v: v itself unless it is an alias.
func (g *Graph) Root(v ValueID) ValueID {
	if a := g.Values[v].Alias; a != None {
		return a // aliases are granted in order, so a is a root
	}
	return v
}

// collectKernels lists the kernels that are used at any corner.
func (g *Graph) collectKernels() {
	seen := map[*Kernel]bool{}
	for i := range g.Ops {
		o := &g.Ops[i]
		for c := range o.corner {
			for s := range o.Spec.Slots {
				k := o.Use(s, o.corner[c].Route).Kernel
				if o.corner[c].Launches[s].Active && !o.Aliased && !seen[k] {
					seen[k] = true
					g.Kernels = append(g.Kernels, k)
				}
			}
		}
	}
}

// Inputs are the graph's inputs: tensors, and SymInts that the host sets.
func (g *Graph) Inputs() []ValueID { return g.inputs }

// Outputs are the graph's output tensors.
func (g *Graph) Outputs() []ValueID { return g.outputs }

// NumOps is the number of operators. Their ids are 0 to NumOps()-1.
func (g *Graph) NumOps() int { return len(g.Ops) }

// NumDispatches is the number of dispatch slots.
func (g *Graph) NumDispatches() int { return len(g.Dispatches) }

// Operators calls yield for every operator in execution order, with its id and name.
func (g *Graph) Operators(yield func(OpID, string, Operator) bool) {
	for i := range g.Ops {
		if !yield(g.Ops[i].ID, g.Ops[i].Name, g.Ops[i].impl) {
			return
		}
	}
}

// NumValues is the number of values. Their ids are 0 to NumValues()-1.
func (g *Graph) NumValues() int { return len(g.Values) }

// ValueInfo describes a value of a graph.
type ValueInfo struct {
	Name    string
	DType   DType
	Role    Role
	SymInt  bool
	MaxDims []int                  // of a tensor
	Range   [2]int64               // of a SymInt
	Load    func() ([]byte, error) // bytes of a constant, or initial State; nil: zeros
	Column  func(at int) int       // of permuted rows: the column stored at a place; nil: not permuted
}

// Value describes a value.
func (g *Graph) Value(v ValueID) ValueInfo { return g.Values[v].info() }

func (v *Value) info() ValueInfo {
	return ValueInfo{
		v.Name, v.DType, v.Role, v.Kind == SymInt, v.MaxDims, [2]int64{v.Lo, v.Hi}, v.Load, v.Column,
	}
}

// Describe is the graph in trace format, with its kernels' sources.
func (g *Graph) Describe() trace.Graph {
	d := trace.Graph{Values: make([]trace.Value, len(g.Values))}
	for i := range g.Values {
		val := &g.Values[i]
		tv := trace.Value{
			ID: ValueID(i), Name: val.Name, Kind: val.Kind.String(),
			Role: trace.Role(val.Role.String()),
		}
		if val.Kind == SymInt {
			tv.Role = trace.RoleSymInt
			d.SymInts = append(d.SymInts,
				trace.SymInt{
					ID: trace.SymIntID(len(d.SymInts)), Value: ValueID(i), Name: val.Name,
					Min: val.Lo, Max: val.Hi,
				})
		} else {
			tv.DType, tv.MaxDims, tv.Bytes = val.DType.String(), val.MaxDims, val.Bytes
			tv.Matrix = val.matrix
		}
		if s := &g.Layouts[0].slot[i]; *s >= 0 {
			tv.Slot = s
		}
		if val.Alias != None {
			tv.AliasOf = &val.Alias
		}
		d.Values[i] = tv
	}
	for i := range g.Ops {
		d.Ops = append(d.Ops, g.Ops[i].describe())
	}
	for _, k := range g.Kernels {
		d.Kernels = append(d.Kernels, DescribeKernel(g.KernelNames[k], k))
	}
	for i := range g.Dispatches {
		d.Dispatches = append(d.Dispatches, g.describeDispatch(trace.DispatchID(i)))
	}
	return d
}

func (o *Op) describe() trace.Op {
	d := trace.Op{
		ID: o.ID, Name: o.Name, Kind: o.Spec.Kind, Inputs: o.Spec.Inputs,
		Outputs: o.Spec.Outputs, Makes: o.Spec.Materializes, State: o.Spec.State, Attrs: o.Spec.Attrs,
		Block: o.Block, Parts: o.parts,
	}
	if o.Layer >= 0 {
		d.Layer = &o.Layer
	}
	return d
}

// named is the name of a slot's dispatch in tables.
func (o *Op) named(slot int) string {
	d := trace.Dispatch{Label: o.Spec.Slots[slot].Label}
	return d.Named(o.Name)
}

func (g *Graph) describeDispatch(id trace.DispatchID) trace.Dispatch {
	dp := &g.Dispatches[id]
	o := &g.Ops[dp.Op]
	d := trace.Dispatch{
		ID: id, Op: dp.Op, Label: o.Spec.Slots[dp.Slot].Label, Reads: dp.reads,
		Writes: dp.Writes,
	}
	var most grid.Grid
	for c := range o.corner {
		l := &o.corner[c].Launches[dp.Slot]
		if !l.Active {
			continue
		}
		use := o.Use(dp.Slot, o.corner[c].Route)
		k := slices.Index(d.Kernels, g.KernelNames[use.Kernel])
		if k < 0 {
			k = len(d.Kernels)
			d.Kernels, d.Bound = append(d.Kernels, g.KernelNames[use.Kernel]), append(d.Bound, nil)
		}
		for _, bind := range use.Bind {
			if !slices.Contains(d.Bound[k], bind.Value) {
				d.Bound[k] = append(d.Bound[k], bind.Value)
			}
		}
		if g := o.largestGrid(dp.Slot, o.corner[c].Route); g.Workgroups() > most.Workgroups() {
			most = g
		}
	}
	d.MaxWorkgroups = most.Counts()
	return d
}

// Kernel is the kernel with that name, or nil.
func (g *Graph) Kernel(name string) *Kernel {
	for _, k := range g.Kernels {
		if g.KernelNames[k] == name {
			return k
		}
	}
	return nil
}

// KernelOf is the kernel that a dispatch runs on a route.
func (g *Graph) KernelOf(id trace.DispatchID, route int) *Kernel {
	d := &g.Dispatches[id]
	return g.Ops[d.Op].Use(d.Slot, route).Kernel
}

// Beside reports whether a and b are written by the same dispatches and read by none.
func (g *Graph) Beside(a, b ValueID) bool {
	u, v := &g.Values[a], &g.Values[b]
	if u.Producer < 0 || u.Producer != v.Producer || len(u.Consumers)+len(v.Consumers) > 0 {
		return false
	}
	binds := func(use Use, v ValueID) bool {
		return slices.ContainsFunc(use.Bind, func(b Binding) bool { return b.Value == v })
	}
	for _, slot := range g.Ops[u.Producer].Spec.Slots {
		for _, use := range slot.Uses {
			if binds(use, a) != binds(use, b) {
				return false
			}
		}
	}
	return true
}

// BlockNames name the block of each dispatch: "layers.N.BLOCK", or the operator's name outside of layers.
func (g *Graph) BlockNames() []string {
	names := make([]string, len(g.Dispatches))
	for i := range g.Dispatches {
		o := &g.Ops[g.Dispatches[i].Op]
		switch {
		case o.Layer < 0:
			names[i] = o.Name
		case o.Block == "":
			names[i] = fmt.Sprintf("layers.%d", o.Layer)
		default:
			names[i] = fmt.Sprintf("layers.%d.%s", o.Layer, o.Block)
		}
	}
	return names
}
