package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Operators are added in execution order. When an operator is added, the builder plans it at all its corners
// (extreme shapes). The range of its output shapes is therefore known when the next operator is added, and an
// error in a plan can name the operator. Work that needs the whole graph is done in Finish (passes.go).

// OpID identifies an operator of a graph.
type OpID = trace.OpID

const (
	maxRank   = 8  // largest rank of a tensor
	MaxRoutes = 64 // maximum number of routes of an operator: sets of routes are bits of a uint64
)

// Op is an operator in a graph.
type Op struct {
	ID     OpID
	Name   string
	Layer  int // -1 outside of layers
	Block  string
	Spec   Spec
	impl   Operator
	corner []Plan // one plan for each corner of the operator
	// Aliased is true if the first output shares memory with the first input. No dispatch is then needed.
	Aliased   bool
	readsHost bool // the plan reads the integers of a graph input (Planner.HostInts)
	// Dispatches holds the dispatch id of each of the operator's slots, or -1 if no plan can use the slot.
	Dispatches []trace.DispatchID
	request    routeRequest // route that the user requested
	// largest is the index of the corner with the most input elements. If several corners have equally
	// many, it is the one with the most work. LiveOptions.Static makes the operator use the route of this
	// corner wherever the route supports the shape.
	largest int
	parts   []string // names of the operators that were fused into this one; nil if none
}

// Use returns the kernel of a slot on a route, with the kernel's bindings. If the slot is not used on this
// route, Use returns the zero Use.
func (o *Op) Use(slot, route int) Use {
	uses := o.Spec.Slots[slot].Uses
	if len(uses) == 1 {
		route = 0
	}
	if route >= len(uses) {
		return Use{}
	}
	return uses[route]
}

// newPlan allocates an empty plan of the operator, with room for the dims of each output and scratch tensor.
func (o *Op) newPlan() Plan {
	p := Plan{
		outs:     make([]outPlan, len(o.Spec.Outputs)+len(o.Spec.Scratch)),
		Launches: make([]Launch, len(o.Spec.Slots)),
	}
	for i := range p.outs {
		p.outs[i].dims = make([]int, 0, maxRank)
	}
	return p
}

// Builder builds a graph from operators, which are added in execution order. Add plans the operator's
// corners, so the maximum shapes of its outputs are known when the next operator is added. After the first
// error all calls do nothing, and Finish returns the error.
type Builder struct {
	limits    gpu.Limits
	values    []Value
	ops       []Op
	outputs   []ValueID
	constants map[string]ValueID // constants by name
	env       env
	layer     int
	block     string
	prefix    string
	routes    map[string]string // requested routes; the key is an operator kind or kind@name
	asked     map[string]bool   // keys of `routes` that selected an operator
	fusions   []Fusion
	passBytes int64
	remade    *remade // operator that a fusion rule is building, or nil
	dump      string  // pass selected with DumpPass, or empty
	err       error
}

// NewBuilder returns a builder of an empty graph for a device with these limits.
func NewBuilder(limits gpu.Limits) *Builder {
	return &Builder{
		limits: limits, layer: -1, constants: map[string]ValueID{}, passBytes: defaultPassBytes,
	}
}

// PassBytes limits the new memory of each compute pass to about n bytes. New memory is memory for values that
// cannot reuse the memory of other values of the pass. The memory plan splits a pass that would need more. If
// the values that are in use at the same time need more than n bytes, the limit is their total size instead.
func (b *Builder) PassBytes(n int64) { b.passBytes = n }

// Err returns the builder's first error, or nil.
func (b *Builder) Err() error { return b.err }

// Errorf records an error of the code that builds the graph, unless the builder already has an error.
func (b *Builder) Errorf(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// Scope sets the layer and block of the operators that are added next, and a prefix for the names of
// operators and values. The layer is -1 for operators outside of layers.
func (b *Builder) Scope(prefix string, layer int, block string) {
	b.prefix, b.layer, b.block = prefix, layer, block
}

// Input declares a graph input with live dims between `lowest` and `highest`.
func (b *Builder) Input(name string, t DType, lowest, highest []int) ValueID {
	return b.tensor(Value{Name: name, DType: t, Role: Input, minDims: lowest, MaxDims: highest})
}

// Constant declares a constant tensor. The function `load` returns its bytes when the graph is uploaded to a
// device. Declaring the same name again with the same type and dims returns the same value, so operators
// share weights by name.
func (b *Builder) Constant(name string, t DType, dims []int, load func() ([]byte, error)) ValueID {
	if v, ok := b.constants[name]; ok && b.err == nil {
		if val := &b.values[v]; val.DType != t || !slices.Equal(val.MaxDims, dims) {
			b.Errorf("constant %s is declared twice with different types or dims: first as %s %v, then as %s %v",
				name, val.DType, val.MaxDims, t, dims)
			return None
		}
		return v
	}
	v := b.tensor(Value{Name: name, DType: t, Role: Constant, minDims: dims, MaxDims: dims, Load: load})
	if v != None {
		b.constants[name] = v
	}
	return v
}

// State declares a tensor that operators update in place and that keeps its content between steps. Its
// initial content is zeros.
func (b *Builder) State(name string, t DType, dims []int) ValueID {
	return b.StateFrom(name, t, dims, nil)
}

// StateFrom declares a State tensor. `load` returns its initial bytes; if `load` is nil, they are zeros.
func (b *Builder) StateFrom(name string, t DType, dims []int, load func() ([]byte, error)) ValueID {
	return b.tensor(Value{Name: name, DType: t, Role: State, minDims: dims, MaxDims: dims, Load: load})
}

// Tensor declares an output of the next operator to be added. The operator's plan sets its shape.
func (b *Builder) Tensor(name string, t DType) ValueID {
	return b.output(Value{Name: b.prefix + name, DType: t, Role: Intermediate})
}

// Permuted declares that each row of a tensor is stored with its elements in another order. `column` maps a
// position in the stored row to the element's column in the tensor.
func (b *Builder) Permuted(v ValueID, column func(at int) int) {
	if b.has(v) {
		b.values[v].Column = column
	}
}

// Packs declares that a constant holds the weights of a rows x cols matrix in the given weight format.
func (b *Builder) Packs(v ValueID, format string, rows, cols int) {
	if b.has(v) {
		b.values[v].matrix = &trace.Matrix{Format: format, Rows: rows, Cols: cols}
	}
}

// Scratch declares temporary memory for the next operator to be added, whose plan sets the tensor's shape.
func (b *Builder) Scratch(name string, t DType) ValueID {
	return b.add(Value{Name: b.prefix + name, DType: t, Role: Scratch})
}

// SymInt declares an integer from `lo` to `hi` that the host sets before a step. It is `first` initially.
func (b *Builder) SymInt(name string, lo, hi, first int64) ValueID {
	if b.err == nil && (lo > hi || first < lo || first > hi) {
		b.Errorf("symint %s: the initial value %d is not in the range from %d to %d", name, first, lo, hi)
	}
	return b.add(Value{Name: name, Kind: SymInt, Role: Input, Lo: lo, Hi: hi, first: first})
}

// SymIntOut declares an integer that the next operator to be added computes.
func (b *Builder) SymIntOut(name string) ValueID {
	return b.output(Value{Name: b.prefix + name, Kind: SymInt, Role: Intermediate})
}

// Output makes a tensor a graph output: the host can read its live bytes after a step. A tensor that an
// operator computes gets its own buffer, so that no later dispatch overwrites it. The same tensor may be
// made an output several times.
func (b *Builder) Output(v ValueID) {
	if b.err != nil {
		return
	}
	if !b.has(v) {
		b.Errorf("output: the graph has no value with id %d", v)
		return
	}
	val := &b.values[v]
	switch {
	case val.Kind != Tensor || val.Role == Scratch:
		b.Errorf("output %s: a %s %s cannot be a graph output; want a tensor that is not scratch",
			val.Name, val.Role, val.Kind)
		return
	case val.Role == Intermediate && val.Producer < 0:
		b.Errorf("output %s: no operator computes it", val.Name)
		return
	case val.Role == Intermediate:
		val.Role = Output
	}
	b.outputs = append(b.outputs, v)
}

func (b *Builder) has(v ValueID) bool { return v >= 0 && int(v) < len(b.values) }

// MaxDims returns the largest live dims of a tensor. It returns nil after an error or for None. The caller
// must not change the dims.
func (b *Builder) MaxDims(v ValueID) []int {
	if b.err != nil || !b.has(v) {
		return nil
	}
	return b.values[v].MaxDims
}

// MinDims returns the smallest live value of each dim of a tensor. It returns nil after an error or for None.
// The caller must not change the dims.
func (b *Builder) MinDims(v ValueID) []int {
	if b.err != nil || !b.has(v) {
		return nil
	}
	return b.values[v].minDims
}

// Producer returns the operator that outputs a value, or nil if there is none.
func (b *Builder) Producer(v ValueID) Operator {
	if !b.has(v) || b.values[v].Producer < 0 {
		return nil
	}
	return b.ops[b.values[v].Producer].impl
}

// DType returns the element type of a tensor. It returns F32 after an error or for None.
func (b *Builder) DType(v ValueID) DType {
	if b.err != nil || !b.has(v) {
		return F32
	}
	return b.values[v].DType
}

// Limits returns the device's limits.
func (b *Builder) Limits() *gpu.Limits { return &b.limits }

// Name returns the name of a value, or "nothing" if there is no such value.
func (b *Builder) Name(v ValueID) string {
	if !b.has(v) {
		return "nothing"
	}
	return b.values[v].Name
}

// Value returns the description of a value. The bool is false if there is no such value. MaxDims is nil until
// the operator that outputs the tensor has been added.
func (b *Builder) Value(v ValueID) (ValueInfo, bool) {
	if !b.has(v) {
		return ValueInfo{}, false
	}
	return b.values[v].info(), true
}

// Scoped returns the name with the prefix of the current scope.
func (b *Builder) Scoped(name string) string { return b.prefix + name }

func (b *Builder) tensor(v Value) ValueID {
	if b.err != nil {
		return None
	}
	v.minDims, v.MaxDims = slices.Clone(v.minDims), slices.Clone(v.MaxDims)
	if err := checkDims(v.minDims, v.MaxDims); err != nil {
		b.Errorf("%s %s: %w", v.Role, v.Name, err)
		return None
	}
	v.Bytes = v.DType.Bytes(Numel(v.MaxDims))
	return b.add(v)
}

func (b *Builder) add(v Value) ValueID {
	if b.err != nil {
		return None
	}
	v.Alias, v.Producer, v.materializer = None, -1, -1
	b.values = append(b.values, v)
	b.env.dims = append(b.env.dims, v.MaxDims)
	b.env.ints = append(b.env.ints, v.Hi)
	b.env.host = append(b.env.host, nil)
	b.env.deferred = append(b.env.deferred, false)
	return ValueID(len(b.values) - 1)
}

// Add appends an operator to the graph and plans its corners.
func (b *Builder) Add(name string, impl Operator) {
	if b.err != nil {
		return
	}
	if b.remade != nil {
		b.remade.ops = append(b.remade.ops, impl)
		return
	}
	o := Op{
		ID: OpID(len(b.ops)), Name: b.prefix + name, Layer: b.layer, Block: b.block, Spec: impl.Spec(),
		impl: impl,
	}
	if b.err = b.admit(&o, o.targets()); b.err != nil {
		return
	}
	b.ops = append(b.ops, o)
	b.connect(&b.ops[len(b.ops)-1])
}

// admit checks the Spec of an operator, finds the requested route and plans the operator's corners.
// `targets` lists the keys with which the user may have requested a route for the operator.
func (b *Builder) admit(o *Op, targets []string) (err error) {
	if err := b.checkSpec(o); err != nil {
		return fmt.Errorf("%s (%s): %w", o.Name, o.Spec.Kind, err)
	}
	if o.request, err = b.request(o, targets); err != nil {
		return err
	}
	err = b.planCorners(o)
	switch {
	case errors.Is(err, ErrRoute):
		return fmt.Errorf("%w %s: %w", ErrRoute, o.request.flag, err)
	case err != nil:
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

// connect records how the operator uses values: it produces its outputs, materializes the values in
// Spec.Materializes, and consumes its inputs.
func (b *Builder) connect(o *Op) {
	for _, v := range slices.Concat(o.Spec.Outputs, o.Spec.Scratch) {
		b.values[v].Producer = o.ID
	}
	for _, v := range o.Spec.Materializes {
		b.values[v].materializer = o.ID
	}
	for _, v := range o.Spec.Inputs {
		if val := &b.values[v]; val.Role != Constant && !slices.Contains(val.Consumers, o.ID) {
			val.Consumers = append(val.Consumers, o.ID)
		}
	}
}

func (b *Builder) checkSpec(o *Op) error {
	s := &o.Spec
	args := slices.Concat(s.Inputs, s.State, s.Outputs, s.Scratch, s.Materializes)
	for _, v := range args {
		if !b.has(v) {
			return fmt.Errorf("the graph has no value with id %d", v)
		}
	}
	for _, v := range s.Inputs {
		if val := &b.values[v]; val.Role == Intermediate && val.Producer < 0 || val.Role == Scratch {
			return fmt.Errorf("the operator reads %s before any operator computes it", val.Name)
		}
	}
	for _, v := range s.State {
		if val := &b.values[v]; val.Role != State {
			return fmt.Errorf("the operator lists %s as state, but its role is %s", val.Name, val.Role)
		}
	}
	for _, v := range slices.Concat(s.Outputs, s.Scratch) {
		if val := &b.values[v]; val.Producer >= 0 || val.Role != Intermediate && val.Role != Scratch {
			return fmt.Errorf(
				"the operator lists %s (role %s) as an output, but outputs must be new: declare one with Tensor, SymIntOut or Scratch",
				val.Name, val.Role)
		}
	}
	for _, v := range s.Materializes {
		if val := &b.values[v]; val.Kind != Tensor || val.Role != Intermediate || val.Producer < 0 ||
			val.Producer >= o.ID || val.materializer >= 0 && val.materializer != o.ID {
			return fmt.Errorf(
				"the operator materializes %s; want a tensor that an earlier operator outputs and that no other operator materializes", val.Name)
		}
	}
	for _, slot := range s.Slots {
		for _, use := range slot.Uses {
			if use.Kernel == nil {
				continue
			}
			if err := use.bound(); err != nil {
				return fmt.Errorf("slot %q: %w", slot.Label, err)
			}
			if n := uint32(len(use.Bind)); n > b.limits.MaxStorageBuffers {
				return fmt.Errorf("kernel %s uses %d storage buffers; the device limit is %d: %w",
					use.Kernel.Name, n, b.limits.MaxStorageBuffers, gpu.ErrUnsupported)
			}
			if n := uint32(use.Kernel.WorkgroupBytes); n > b.limits.MaxWorkgroupStorage {
				return fmt.Errorf("kernel %s uses %d bytes of workgroup memory; the device limit is %d: %w",
					use.Kernel.Name, n, b.limits.MaxWorkgroupStorage, gpu.ErrUnsupported)
			}
			for i, bind := range use.Bind {
				v := bind.Value
				if !slices.Contains(args, v) {
					return fmt.Errorf("dispatch slot %q binds value %d, but this value is not an argument of the operator",
						slot.Label, v)
				}
				if use.Kernel.Storage[i].Access == gpu.ReadWrite && slices.Contains(s.Inputs, v) {
					return fmt.Errorf("kernel %s writes %s, but this value is an input of the operator",
						use.Kernel.Name, b.values[v].Name)
				}
			}
			if n := invocations(use.Kernel); n > int64(b.limits.MaxInvocations) {
				return fmt.Errorf("kernel %s has %d invocations per workgroup; the device limit is %d: %w",
					use.Kernel.Name, n, b.limits.MaxInvocations, gpu.ErrUnsupported)
			}
		}
	}
	return nil
}

// elements returns the total number of elements in the operator's input tensors at the current dims.
func (b *Builder) elements(o *Op) (n int64) {
	for _, v := range o.Spec.Inputs {
		if b.values[v].Kind == Tensor {
			n += int64(Numel(b.env.dims[v]))
		}
	}
	return n
}

func invocations(k *Kernel) int64 {
	return int64(k.WorkgroupSize[0]) * int64(k.WorkgroupSize[1]) * int64(k.WorkgroupSize[2])
}

// planCorners plans the operator at every corner. The plans determine the range of each output's shape, and
// thus the memory for the output.
func (b *Builder) planCorners(o *Op) error {
	corners := o.impl.Corners(&Ranges{b})
	if len(corners) == 0 {
		return fmt.Errorf("%s (%s): the operator lists no corner (extreme shape), but needs at least one",
			o.Name, o.Spec.Kind)
	}
	p := Planner{limits: &b.limits, values: b.values, env: b.env}
	largest := [2]int64{-1}
	for i, corner := range corners {
		if i == 0 {
			b.startHost(corner)
		}
		made, elements, err := b.planCorner(&p, o, corner, o.request)
		if err != nil {
			return err
		}
		o.corner = append(o.corner, made)
		if size := [2]int64{elements, made.work()}; slices.Compare(size[:], largest[:]) > 0 {
			o.largest, largest = i, size
		}
	}
	// With LiveOptions.Static, the operator keeps the route of its largest corner wherever this route
	// supports the shape. Therefore the other corners are planned on this route too.
	static := routeRequest{route: o.corner[o.largest].Route}
	for i, corner := range corners {
		if o.corner[i].Route == static.route {
			continue
		}
		made, _, err := b.planCorner(&p, o, corner, static)
		if err != nil {
			return err
		}
		if made.Route == static.route {
			o.corner = append(o.corner, made)
		}
	}
	for _, v := range slices.Concat(o.Spec.Outputs, o.Spec.Scratch) {
		if val := &b.values[v]; val.Kind == Tensor {
			if val.MaxDims == nil && val.Role == Scratch {
				val.minDims, val.MaxDims = []int{0}, []int{0} // no corner uses the scratch tensor
			} else if val.MaxDims == nil {
				return fmt.Errorf("%s (%s): the plan does not set the dims of %s at any corner (extreme shape)",
					o.Name, o.Spec.Kind, val.Name)
			} else if err := checkDims(val.minDims, val.MaxDims); err != nil {
				return fmt.Errorf("%s (%s): dims of %s over all corners (extreme shapes): %w",
					o.Name, o.Spec.Kind, val.Name, err)
			}
			val.Bytes = max(4, val.DType.Bytes(Numel(val.MaxDims))) // a buffer cannot be empty
			b.env.dims[v] = val.MaxDims
		} else {
			b.env.ints[v] = val.Hi
		}
	}
	return nil
}

// planCorner plans one corner and extends the ranges of the output shapes so that they include the shapes of
// this plan. It returns the plan and the number of elements in the operator's inputs at this corner.
func (b *Builder) planCorner(p *Planner, o *Op, c Corner, r routeRequest) (made Plan, elements int64,
	err error,
) {
	made = o.newPlan()
	leave := b.enter(c)
	err = p.make(o, &made, r, false)
	elements = b.elements(o)
	leave()
	if err != nil {
		return made, 0, err
	}
	if err := b.widen(o, &made); err != nil {
		return made, 0, b.atCorner(o, c, err)
	}
	return made, elements, nil
}

// startHost sets the initial integers of graph inputs. Some plans read the integers that the host writes to a
// graph input, so the corners of their operators contain such integers. startHost copies the nonzero ones
// from one corner.
func (b *Builder) startHost(c Corner) {
	for _, a := range c {
		val := &b.values[a.Value]
		if val.firstHost == nil && a.Host != nil {
			val.firstHost = make([]int64, Numel(val.MaxDims))
		}
		for i, n := range a.Host {
			if n != 0 && i < len(val.firstHost) {
				val.firstHost[i] = n
			}
		}
	}
}

// enter makes the arguments of a corner (dims, SymInts and host integers) the builder's current ones. The
// returned function restores the previous arguments.
func (b *Builder) enter(c Corner) (leave func()) {
	was := make(Corner, 0, len(c))
	for _, a := range c {
		v := a.Value
		was = append(was, At{v, b.env.dims[v], b.env.ints[v], b.env.host[v], b.env.deferred[v]})
		b.env.ints[v], b.env.host[v], b.env.deferred[v] = a.Int, a.Host, a.Deferred
		if a.Dims != nil {
			b.env.dims[a.Value] = a.Dims
		}
	}
	return func() {
		for _, a := range slices.Backward(was) {
			v := a.Value
			b.env.dims[v], b.env.ints[v], b.env.host[v], b.env.deferred[v] = a.Dims, a.Int, a.Host, a.Deferred
		}
	}
}

func (b *Builder) atCorner(o *Op, c Corner, err error) error {
	where := "at its maximum shapes"
	var at []string
	for _, a := range c {
		if b.values[a.Value].Kind == SymInt {
			at = append(at, fmt.Sprintf("%s=%d", b.Name(a.Value), a.Int))
		} else if a.Dims != nil {
			at = append(at, fmt.Sprintf("%s%v", b.Name(a.Value), a.Dims))
		}
	}
	if len(at) > 0 {
		where = "at " + strings.Join(at, " ")
	}
	return fmt.Errorf("%s (%s), %s: %w", o.Name, o.Spec.Kind, where, err)
}

// widen extends the ranges of the operator's outputs so that they contain the outputs of a plan.
func (b *Builder) widen(o *Op, made *Plan) error {
	for i, v := range slices.Concat(o.Spec.Outputs, o.Spec.Scratch) {
		out, val := &made.outs[i], &b.values[v]
		if !out.set {
			continue
		}
		if val.Kind == SymInt {
			if len(o.corner) == 0 {
				val.Lo, val.Hi = out.int, out.int
			}
			val.Lo, val.Hi = min(val.Lo, out.int), max(val.Hi, out.int)
			val.first = val.Lo
			continue
		}
		if err := checkDims(out.dims, out.dims); err != nil {
			return fmt.Errorf("%s: %w", val.Name, err)
		}
		if val.MaxDims == nil {
			val.minDims, val.MaxDims = slices.Clone(out.dims), slices.Clone(out.dims)
			continue
		}
		if len(val.MaxDims) != len(out.dims) {
			return fmt.Errorf("%s has rank %d at this corner (extreme shape), but rank %d at an earlier one",
				val.Name, len(out.dims), len(val.MaxDims))
		}
		for j, d := range out.dims {
			val.minDims[j], val.MaxDims[j] = min(val.minDims[j], d), max(val.MaxDims[j], d)
		}
	}
	return nil
}

// work returns a measure of the work in a plan: modeled FLOPs plus bytes. It serves only to compare plans.
func (p *Plan) work() int64 {
	var w int64
	for i := range p.Launches {
		if l := &p.Launches[i]; l.Active {
			w += l.FLOPs + l.Bytes
		}
	}
	return w
}

// checkDims returns an error if no tensor can have dims from `lowest` to `highest`.
func checkDims(lowest, highest []int) error {
	if len(lowest) != len(highest) {
		return fmt.Errorf("the smallest dims have rank %d, but the largest dims have rank %d", len(lowest),
			len(highest))
	}
	if len(highest) > maxRank {
		return fmt.Errorf("the rank is %d; the maximum is %d", len(highest), maxRank)
	}
	for i, d := range highest {
		if lowest[i] < 1 || d < lowest[i] {
			return fmt.Errorf("dim %d has sizes from %d to %d; the smallest must be at least 1, and the largest must not be smaller", i, lowest[i], d)
		}
	}
	if Numel(highest) == 0 {
		return fmt.Errorf("a tensor with dims %v has more than %d elements", highest, maxElements)
	}
	return nil
}
