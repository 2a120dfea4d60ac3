package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Building. Operators are added in execution order, and each is planned at all its corners when it is added.
// So the next operator knows the largest and smallest shapes of its inputs, and an operator with a wrong plan
// is rejected by name where it was added. Work that needs the whole graph is done in Finish (passes.go).

// OpID names an operator of a graph.
type OpID = trace.OpID

const (
	maxRank   = 8  // of a tensor
	MaxRoutes = 64 // of an operator: sets of them are bits of a uint64
)

// Op is an operator in a graph.
type Op struct {
	ID     OpID
	Name   string
	Layer  int // -1: none
	Block  string
	Spec   Spec
	impl   Operator
	corner []Plan // the plans of its corners
	// Aliased: the first output shares memory with the first input, and no slot is dispatched.
	Aliased   bool
	readsHost bool // its plan reads host integers of an input
	// Dispatches are the ids of its slots, by slot index.
	Dispatches []trace.DispatchID
	request    routeRequest // the route that the user requested
	// largest is the index of the corner with the largest arguments (the most work, if several are equal).
	// Static mode pins the operator to it.
	largest int
	parts   []string // names of the operators that were fused into it; nil if none
}

// Use is the kernel that a slot runs on a route. It is the zero Use if the route does not use the slot.
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

// newPlan allocates a plan for the operator, with the memory that its corners needed.
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

// Builder builds a graph, operator by operator in execution order. Add plans the operator's corners, so the
// maximum shapes of its outputs are known when the next operator is added. After the first error all calls do
// nothing; Finish returns that error.
type Builder struct {
	limits  gpu.Limits
	values  []Value
	ops     []Op
	outputs []ValueID
	// constants are the ids of constants by name.
	constants map[string]ValueID
	env       env
	layer     int
	block     string
	prefix    string
	routes    map[string]string // requested, by operator kind or kind@name
	asked     map[string]bool   // requested routes that some operator accepted
	fusions   []Fusion
	passBytes int64
	remade    *remade // the operator that a fusion rule is building, or nil
	dump      string  // the pass to list the graph before and after
	err       error
}

// NewBuilder starts a graph for a device with these limits.
func NewBuilder(limits gpu.Limits) *Builder {
	return &Builder{
		limits: limits, layer: -1, constants: map[string]ValueID{}, passBytes: defaultPassBytes,
	}
}

// PassBytes sets how much new memory a compute pass may always use. Steps are not split into more passes
// below that.
func (b *Builder) PassBytes(n int64) { b.passBytes = n }

// Err is the first error, or nil.
func (b *Builder) Err() error { return b.err }

// Errorf records an error of the caller.
func (b *Builder) Errorf(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// Scope sets the layer (-1: none) and block of the operators that follow, and a prefix for the names of
// operators and values.
func (b *Builder) Scope(prefix string, layer int, block string) {
	b.prefix, b.layer, b.block = prefix, layer, block
}

// Input declares a graph input with live dims between lowest and highest.
func (b *Builder) Input(name string, t DType, lowest, highest []int) ValueID {
	return b.tensor(Value{Name: name, DType: t, Role: Input, minDims: lowest, MaxDims: highest})
}

// Constant declares a tensor whose bytes load returns when the graph is uploaded to a device. Declaring the
// same name again with the same type and dims returns the same value, so operators share weights by name.
func (b *Builder) Constant(name string, t DType, dims []int, load func() ([]byte, error)) ValueID {
	if v, ok := b.constants[name]; ok && b.err == nil {
		if val := &b.values[v]; val.DType != t || !slices.Equal(val.MaxDims, dims) {
			b.Errorf("constant %s: declared twice, as %s %v and as %s %v", name, val.DType, val.MaxDims, t,
				dims)
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

// State declares a tensor that operators update in place and that keeps its content between steps. It starts
// as zeros.
func (b *Builder) State(name string, t DType, dims []int) ValueID {
	return b.StateFrom(name, t, dims, nil)
}

// StateFrom declares a State tensor with initial content: the bytes that load returns.
func (b *Builder) StateFrom(name string, t DType, dims []int, load func() ([]byte, error)) ValueID {
	return b.tensor(Value{Name: name, DType: t, Role: State, minDims: dims, MaxDims: dims, Load: load})
}

// Tensor declares an output of the next operator to be added. The operator's plan sets its shape.
func (b *Builder) Tensor(name string, t DType) ValueID {
	return b.output(Value{Name: b.prefix + name, DType: t, Role: Intermediate})
}

// Permuted says that the rows of a tensor are stored in another order:
// column(at) is the column that is stored at a place.
func (b *Builder) Permuted(v ValueID, column func(at int) int) {
	if b.has(v) {
		b.values[v].Column = column
	}
}

// Packs says that a constant holds the weights of a rows x cols matrix in a weight format.
func (b *Builder) Packs(v ValueID, format string, rows, cols int) {
	if b.has(v) {
		b.values[v].matrix = &trace.Matrix{Format: format, Rows: rows, Cols: cols}
	}
}

// Scratch declares memory that only the next operator uses while it runs. Its plan sets the size.
func (b *Builder) Scratch(name string, t DType) ValueID {
	return b.add(Value{Name: b.prefix + name, DType: t, Role: Scratch})
}

// SymInt declares an integer that the host sets before a step: its range and its initial value.
func (b *Builder) SymInt(name string, lo, hi, first int64) ValueID {
	if b.err == nil && (lo > hi || first < lo || first > hi) {
		b.Errorf("symint %s: bad range %d to %d with first value %d", name, lo, hi, first)
	}
	return b.add(Value{Name: name, Kind: SymInt, Role: Input, Lo: lo, Hi: hi, first: first})
}

// SymIntOut declares an integer that the next operator to be added computes.
func (b *Builder) SymIntOut(name string) ValueID {
	return b.output(Value{Name: b.prefix + name, Kind: SymInt, Role: Intermediate})
}

// Output makes a tensor a graph output, whose live bytes can be read after a step. An operator's output gets
// its own buffer; inputs, constants and State are read from the buffer they have. A tensor may be an output
// more than once.
func (b *Builder) Output(v ValueID) {
	if b.err != nil {
		return
	}
	if !b.has(v) {
		b.Errorf("output: the graph has no value %d", v)
		return
	}
	val := &b.values[v]
	switch {
	case val.Kind != Tensor || val.Role == Scratch:
		b.Errorf("output %s: is a %s %s; want a tensor that exists after a step", val.Name, val.Role,
			val.Kind)
		return
	case val.Role == Intermediate && val.Producer < 0:
		b.Errorf("output %s: no operator computes it", val.Name)
		return
	case val.Role == Intermediate:
		val.Role = Output
	}
	b.outputs = append(b.outputs, v)
}

// has reports whether the graph has the value.
func (b *Builder) has(v ValueID) bool { return v >= 0 && int(v) < len(b.values) }

// MaxDims are the largest live dims of a tensor, nil after an error or for None. They must not be changed.
func (b *Builder) MaxDims(v ValueID) []int {
	if b.err != nil || !b.has(v) {
		return nil
	}
	return b.values[v].MaxDims
}

// MinDims are the smallest live dims of a tensor, dim by dim, nil after an error or for None. They must not
// be changed.
func (b *Builder) MinDims(v ValueID) []int {
	if b.err != nil || !b.has(v) {
		return nil
	}
	return b.values[v].minDims
}

// Producer is the operator that outputs a value, or nil.
func (b *Builder) Producer(v ValueID) Operator {
	if !b.has(v) || b.values[v].Producer < 0 {
		return nil
	}
	return b.ops[b.values[v].Producer].impl
}

// DType is the element type of a tensor, F32 after an error or for None.
func (b *Builder) DType(v ValueID) DType {
	if b.err != nil || !b.has(v) {
		return F32
	}
	return b.values[v].DType
}

// Limits are the device's limits.
func (b *Builder) Limits() *gpu.Limits { return &b.limits }

// Name is the name of a value.
func (b *Builder) Name(v ValueID) string {
	if !b.has(v) {
		return "nothing"
	}
	return b.values[v].Name
}

// Value describes a value, or returns false if there is no such value. MaxDims is nil until the tensor's
// producer has been added.
func (b *Builder) Value(v ValueID) (ValueInfo, bool) {
	if !b.has(v) {
		return ValueInfo{}, false
	}
	return b.values[v].info(), true
}

// Scoped is name with the prefix of the current scope.
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

// Add appends an operator.
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

// admit checks what an operator declares, applies the route requested for one of its targets, and plans its
// corners.
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

// connect records the operator as the producer of its outputs and a consumer of its inputs.
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
			return fmt.Errorf("the graph has no value %d", v)
		}
	}
	for _, v := range s.Inputs {
		if val := &b.values[v]; val.Role == Intermediate && val.Producer < 0 || val.Role == Scratch {
			return fmt.Errorf("reads %s before any operator computes it", val.Name)
		}
	}
	for _, v := range s.State {
		if val := &b.values[v]; val.Role != State {
			return fmt.Errorf("state %s is %s; want state", val.Name, val.Role)
		}
	}
	for _, v := range slices.Concat(s.Outputs, s.Scratch) {
		if val := &b.values[v]; val.Producer >= 0 || val.Role != Intermediate && val.Role != Scratch {
			return fmt.Errorf("writes %s, which is %s and not its output", val.Name, val.Role)
		}
	}
	for _, v := range s.Materializes {
		if val := &b.values[v]; val.Kind != Tensor || val.Role != Intermediate || val.Producer < 0 ||
			val.Producer >= o.ID || val.materializer >= 0 && val.materializer != o.ID {
			return fmt.Errorf("materializes %s, which no earlier operator outputs", val.Name)
		}
	}
	for _, slot := range s.Slots {
		for _, use := range slot.Uses {
			if use.Kernel == nil {
				continue
			}
			if err := use.bound(); err != nil {
				return fmt.Errorf("slot %q %w", slot.Label, err)
			}
			if n := uint32(len(use.Bind)); n > b.limits.MaxStorageBuffers {
				return fmt.Errorf("kernel %s: %d storage buffers, device limit %d: %w",
					use.Kernel.Name, n, b.limits.MaxStorageBuffers, gpu.ErrUnsupported)
			}
			if n := uint32(use.Kernel.WorkgroupBytes); n > b.limits.MaxWorkgroupStorage {
				return fmt.Errorf("kernel %s: %d bytes of workgroup memory, device limit %d: %w",
					use.Kernel.Name, n, b.limits.MaxWorkgroupStorage, gpu.ErrUnsupported)
			}
			for i, bind := range use.Bind {
				v := bind.Value
				if !slices.Contains(args, v) {
					return fmt.Errorf("slot %q binds value %d, which is not an argument of the operator",
						slot.Label, v)
				}
				if use.Kernel.Storage[i].Access == gpu.ReadWrite && slices.Contains(s.Inputs, v) {
					return fmt.Errorf("kernel %s writes %s, an input of the operator", use.Kernel.Name,
						b.values[v].Name)
				}
			}
			if n := invocations(use.Kernel); n > int64(b.limits.MaxInvocations) {
				return fmt.Errorf("kernel %s: %d invocations per workgroup, device limit %d: %w",
					use.Kernel.Name, n, b.limits.MaxInvocations, gpu.ErrUnsupported)
			}
		}
	}
	return nil
}

// elements is the number of elements in the operator's inputs, at the current dims.
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

// planCorners plans the operator at every corner. The plans give the maximum shapes, sizes and ranges of its
// outputs.
func (b *Builder) planCorners(o *Op) error {
	corners := o.impl.Corners(&Ranges{b})
	if len(corners) == 0 {
		return fmt.Errorf("%s (%s): Corners returned none", o.Name, o.Spec.Kind)
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
	// With LiveOptions.Static every shape that can takes the route of the largest shape.
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
				val.minDims, val.MaxDims = []int{0}, []int{0} // its route is never taken
			} else if val.MaxDims == nil {
				return fmt.Errorf("%s (%s): no corner sets the dims of %s", o.Name, o.Spec.Kind, val.Name)
			} else if err := checkDims(val.minDims, val.MaxDims); err != nil {
				return fmt.Errorf("%s (%s): over all corners: %s: %w", o.Name, o.Spec.Kind, val.Name, err)
			}
			val.Bytes = max(4, val.DType.Bytes(Numel(val.MaxDims))) // no buffer is empty
			b.env.dims[v] = val.MaxDims
		} else {
			b.env.ints[v] = val.Hi
		}
	}
	return nil
}

// planCorner plans one corner, extends the ranges of the operator's outputs, and returns how many elements
// the operator reads there.
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

// startHost takes the host integers of an operator's first corner, if not 0, as the ones that the graph
// starts with.
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

// enter sets the environment to a corner; the function it returns restores it.
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

// atCorner adds the operator and the corner to an error about its outputs.
func (b *Builder) atCorner(o *Op, c Corner, err error) error {
	where := "at its largest shapes"
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

// widen extends the ranges of the operator's outputs by the outputs of a corner's plan.
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
			return fmt.Errorf("%s: rank %d here, %d at another corner", val.Name, len(out.dims),
				len(val.MaxDims))
		}
		for j, d := range out.dims {
			val.minDims[j], val.MaxDims[j] = min(val.minDims[j], d), max(val.MaxDims[j], d)
		}
	}
	return nil
}

// work is the modelled work of a plan, to tell which of two does more.
func (p *Plan) work() int64 {
	var w int64
	for i := range p.Launches {
		if l := &p.Launches[i]; l.Active {
			w += l.FLOPs + l.Bytes
		}
	}
	return w
}

// checkDims checks a tensor's smallest and largest dims.
func checkDims(lowest, highest []int) error {
	if len(lowest) != len(highest) {
		return fmt.Errorf("smallest dims have rank %d, largest have rank %d", len(lowest), len(highest))
	}
	if len(highest) > maxRank {
		return fmt.Errorf("rank %d, at most %d", len(highest), maxRank)
	}
	for i, d := range highest {
		if lowest[i] < 1 || d < lowest[i] {
			return fmt.Errorf("dim %d is %d to %d: dims must be positive", i, lowest[i], d)
		}
	}
	if Numel(highest) == 0 {
		return fmt.Errorf("%v: more than %d elements", highest, maxElements)
	}
	return nil
}
