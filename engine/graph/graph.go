package graph

import (
	"fmt"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph/grid"
	"gpuscope/trace"
)

// Graph is a finished graph with dynamic shapes: operators in execution order, their values, the dispatch
// slots in order of submission, and the memory plan. It can run at all live shapes up to its maximum shapes.
// A Graph never changes and needs no device. Live holds the state that changes, and engine.Executor holds the
// objects on a device.
type Graph struct {
	Limits      gpu.Limits
	Values      []Value
	Ops         []Op
	inputs      []ValueID
	outputs     []ValueID
	Dispatches  []dispatch
	Kernels     []*Kernel // kernels used at any corner
	KernelNames map[*Kernel]string
	// Layouts assign memory to values. The first layout fits every shape. If there is a second layout, it
	// only fits small shapes.
	Layouts []Layout
	// joined maps an output to the first output of its buffer. It holds only outputs that share a buffer
	// with an output of another operator.
	joined   map[ValueID]ValueID
	FirstOwn int    // first buffer number of values with their own buffer
	symOps   []bool // by operator: result of symOnly
	passes   []PassReport
}

// dispatch is a dispatch slot of an operator.
type dispatch struct {
	Op     OpID
	Slot   int // index in the operator's Spec.Slots
	Level  int // level at which the dispatch runs if all slots are in use
	reads  []ValueID
	Writes []ValueID
	routes uint64 // bit set of the routes that use the slot
	// SymInts is true if the operator reads SymInts. The params of the dispatch may then change in each step.
	SymInts bool
	// free is true if Graph.delay may move the dispatch to a later level, just before its result is needed.
	free bool
}

// symOnly reports whether an operator computes only SymInts, and reads only graph inputs and outputs of other
// such operators.
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

// settleAliases decides, for each operator with Spec.Alias, whether its output shares the memory of its
// input.
//
// If the input or the output is a graph input, a graph output or State, it has its own memory, so the
// operator copies. In all other cases sharing is safe, because an intermediate is written only by its
// producer.
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

// Root returns the value that owns the memory of v. This is v itself unless v is an alias.
func (g *Graph) Root(v ValueID) ValueID {
	if a := g.Values[v].Alias; a != None {
		return a // not an alias itself: settleAliases stores the root
	}
	return v
}

// collectKernels sets g.Kernels to the kernels that are used at any corner.
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

// Inputs returns the graph's inputs: tensors, and SymInts that the host sets.
func (g *Graph) Inputs() []ValueID { return g.inputs }

// Outputs returns the graph's output tensors.
func (g *Graph) Outputs() []ValueID { return g.outputs }

// NumOps returns the number of operators. Operator ids range from 0 to NumOps()-1.
func (g *Graph) NumOps() int { return len(g.Ops) }

// NumDispatches returns the number of dispatch slots.
func (g *Graph) NumDispatches() int { return len(g.Dispatches) }

// Operators calls `yield` for every operator in execution order, with its id and name.
func (g *Graph) Operators(yield func(OpID, string, Operator) bool) {
	for i := range g.Ops {
		if !yield(g.Ops[i].ID, g.Ops[i].Name, g.Ops[i].impl) {
			return
		}
	}
}

// NumValues returns the number of values. Value ids range from 0 to NumValues()-1.
func (g *Graph) NumValues() int { return len(g.Values) }

// ValueInfo describes a value of a graph.
type ValueInfo struct {
	Name    string
	DType   DType
	Role    Role
	SymInt  bool
	MaxDims []int                  // largest dims of a tensor
	Range   [2]int64               // range of a SymInt
	Load    func() ([]byte, error) // returns the bytes of a constant or initial State; nil means zeros
	Column  func(at int) int       // see Builder.Permuted; nil if rows are not permuted
}

// Value returns the description of a value.
func (g *Graph) Value(v ValueID) ValueInfo { return g.Values[v].info() }

func (v *Value) info() ValueInfo {
	return ValueInfo{
		v.Name, v.DType, v.Role, v.Kind == SymInt, v.MaxDims, [2]int64{v.Lo, v.Hi}, v.Load, v.Column,
	}
}

// Describe returns the graph in trace format, with the sources of its kernels.
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
		for _, v := range d.Ops[i].State {
			d.Values[v].Recurrent = d.Values[v].Recurrent || g.Ops[i].Spec.Recurrent
		}
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

// named returns the name of a slot's dispatch for use in reports.
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

// Kernel returns the kernel with the given name, or nil if there is none.
func (g *Graph) Kernel(name string) *Kernel {
	for _, k := range g.Kernels {
		if g.KernelNames[k] == name {
			return k
		}
	}
	return nil
}

// KernelOf returns the kernel that runs for a dispatch if its operator uses the given route.
func (g *Graph) KernelOf(id trace.DispatchID, route int) *Kernel {
	d := &g.Dispatches[id]
	return g.Ops[d.Op].Use(d.Slot, route).Kernel
}

// Beside reports whether the outputs a and b may share a buffer, so that the host reads both with one copy.
// No operator may read them. The same dispatches must write both, or both must be in Spec.Readback of their
// operators.
func (g *Graph) Beside(a, b ValueID) bool {
	u, v := &g.Values[a], &g.Values[b]
	if u.Producer < 0 || v.Producer < 0 || len(u.Consumers)+len(v.Consumers) > 0 {
		return false
	}
	if u.Producer != v.Producer {
		return slices.Contains(g.Ops[u.Producer].Spec.Readback, a) &&
			slices.Contains(g.Ops[v.Producer].Spec.Readback, b)
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

// OutputGroups returns the graph outputs that have their own memory, in groups. The outputs of a group share
// a buffer (see Beside).
func (g *Graph) OutputGroups() (groups [][]ValueID) {
	seen := map[ValueID]bool{}
	for _, v := range g.Outputs() {
		if g.Values[v].Role != Output || !g.HasOwn(v) || seen[v] {
			continue
		}
		seen[v] = true
		if n := len(groups); n > 0 && g.Beside(groups[n-1][0], v) {
			groups[n-1] = append(groups[n-1], v)
		} else {
			groups = append(groups, []ValueID{v})
		}
	}
	return groups
}

// joinOutputs finds the outputs that share a buffer with an output of another operator.
func (g *Graph) joinOutputs() {
	g.joined = map[ValueID]ValueID{}
	for _, group := range g.OutputGroups() {
		for _, v := range group {
			if g.Values[v].Producer != g.Values[group[0]].Producer {
				g.joined[v] = group[0]
			}
		}
	}
}

// BlockNames returns the block of each dispatch, such as "layers.3.attn". For a dispatch outside of layers it
// returns the operator's name.
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
