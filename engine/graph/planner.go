package graph

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph/grid"
	"gpuscope/engine/graph/params"
	"gpuscope/trace"
)

// Planner provides the live shapes to an operator's Plan and receives the plan's results. An operator can
// read only its own arguments. If the Planner records errors, the plan fails with the first of them.
type Planner struct {
	limits  *gpu.Limits
	values  []Value
	env     env
	op      *Op
	plan    *Plan
	request routeRequest
	aliased bool
	err     error
}

// routeRequest is a route that the user requested for an operator.
type routeRequest struct {
	route int // route index, or -1 if no route was requested
	// must controls what happens at a shape that the requested route does not support. If must is true
	// (--route), planning fails. If must is false (--static), the plan chooses another route.
	must bool
	flag string // the request as the user wrote it, such as "linear@q=gemv"
}

var noRoute = routeRequest{route: -1}

// env holds the live state of a graph, indexed by ValueID: the dims of tensors, the values of SymInts, the
// host integers of inputs, and whether a tensor is deferred.
type env struct {
	dims     [][]int
	deferred []bool
	ints     []int64
	host     [][]int64
}

// absent reports whether a step does not compute a tensor. This is the case if the tensor's producer defers
// it and no other operator materializes it. A scratch tensor is absent if its operator does not use it.
func (g *Graph) absent(e *env, v ValueID) bool { return e.deferred[v] && g.Values[v].materializer < 0 }

// Plan is the result of a call of Operator.Plan. Its memory is allocated once per operator and reused.
type Plan struct {
	Route    int
	Reason   Reason
	outs     []outPlan // results for Spec.Outputs, then those for Spec.Scratch
	Launches []Launch  // launch of each slot
}

// outPlan holds the live dims of an output or scratch tensor, or the value of an output SymInt.
type outPlan struct {
	dims     []int // for a scratch tensor that the plan does not use, all dims are 0
	int      int64
	set      bool
	deferred bool // this operator does not compute the output, or does not use the scratch tensor
}

// Launch is the plan of one dispatch slot.
type Launch struct {
	kernel *Kernel
	Grid   grid.Grid
	Params params.Block
	Bytes  int64 // modeled memory traffic of the kernel, counting each byte once
	FLOPs  int64 // modeled number of floating-point operations
	// Experts describes the tiles of a kernel whose work depends on the experts that a router chose. The grid
	// is then large enough for any choice.
	Experts trace.ExpertTiles
	Active  bool
	Needed  [3]uint32 // workgroups needed at the live shape; LiveOptions.Static can make Grid larger
}

// Limits returns the device's limits.
func (p *Planner) Limits() *gpu.Limits { return p.limits }

// Dims returns the live dims of a tensor argument. The caller must not change or keep the returned slice.
func (p *Planner) Dims(v ValueID) []int {
	if !p.declared(v) {
		return nil
	}
	return p.env.dims[v]
}

// Dim returns a live dim of a tensor argument. A negative axis counts from the end. If the tensor does not
// have the axis, the plan fails and Dim returns 0.
func (p *Planner) Dim(v ValueID, axis int) int {
	dims := p.Dims(v)
	if axis < 0 {
		axis += len(dims)
	}
	if axis < 0 || axis >= len(dims) {
		p.Errorf("%s with dims %v has no dim %d", p.name(v), dims, axis)
		return 0
	}
	return dims[axis]
}

// Numel returns the live number of elements of a tensor argument.
func (p *Planner) Numel(v ValueID) int { return Numel(p.Dims(v)) }

// Int returns the value of a SymInt argument.
func (p *Planner) Int(v ValueID) int {
	if !p.declared(v) {
		return 0
	}
	return int(p.env.ints[v])
}

// HostInts returns the elements that the host is about to write to an argument, as integers. The argument
// must be a graph input. If the number of integers is wrong, the plan fails and HostInts returns nil.
func (p *Planner) HostInts(v ValueID) []int64 {
	if !p.declared(v) {
		return nil
	}
	if !p.op.readsHost {
		p.op.readsHost, p.values[v].HostRead = true, true
	}
	host := p.env.host[v]
	if n := p.Numel(v); len(host) != n {
		p.Errorf("%s: the host supplies %d integers, but dims %v need %d", p.name(v), len(host),
			p.env.dims[v], n)
		return nil
	}
	return host
}

// Aliased reports whether the operator's first output shares memory with the operator's first input.
func (p *Planner) Aliased() bool { return p.aliased }

// SetDims sets the live dims of an output or scratch tensor.
func (p *Planner) SetDims(v ValueID, dims ...int) {
	k := p.output(v)
	if k < 0 {
		p.Errorf("the plan sets the dims of value %d, but the operator does not output this value", v)
		return
	}
	out := &p.plan.outs[k]
	out.dims, out.set, out.deferred = append(out.dims[:0], dims...), true, false
}

// Defer sets the live dims of an output that the operator does not compute at this shape. The output's
// readers do the work in their own kernels, from the operator's inputs. If one of these kernels binds the
// deferred output itself, the plan of the reader fails.
func (p *Planner) Defer(v ValueID, dims ...int) {
	p.SetDims(v, dims...)
	if k := p.output(v); k >= 0 {
		p.plan.outs[k].deferred = true
	}
}

// Deferred reports whether an argument has no content in memory, because its producer deferred it and no
// earlier operator materialized it.
func (p *Planner) Deferred(v ValueID) bool {
	return p.declared(v) && p.env.deferred[v] && !p.materializedBefore(v)
}

// SetInt sets the value of an output SymInt.
func (p *Planner) SetInt(v ValueID, n int64) {
	k := p.output(v)
	if k < 0 {
		p.Errorf("the plan sets the SymInt with value id %d, but the operator does not output this value", v)
		return
	}
	p.plan.outs[k].int, p.plan.outs[k].set = n, true
}

// Asked returns the route that the user requested, or -1. If there is a request, the plan must use this route
// or return an error.
func (p *Planner) Asked() int {
	if !p.request.must {
		return noRoute.route
	}
	return p.request.route
}

// Choose sets the route of the plan and returns the index of this route. Bit i of `allowed` is set if route
// i supports the live shape. Choose takes the route that the user requested, if it is allowed, and otherwise
// `preferred`. `reason` says why `preferred` is preferred. If the user requested a route with --route and it
// is not allowed, the plan fails.
func (p *Planner) Choose(preferred int, reason Reason, allowed uint64) int {
	p.plan.Route, p.plan.Reason = preferred, reason
	r := p.request
	switch {
	case r.route < 0 || r.route == preferred:
	case allowed>>r.route&1 != 0:
		p.plan.Route, p.plan.Reason = r.route, requestedRoute(r.must)
	case r.must:
		p.Errorf("%w %s does not support this shape (default route: %s; reason for this default: %s)",
			ErrRoute, p.op.routeLabel(r.route), p.op.routeLabel(preferred), reason)
	}
	return p.plan.Route
}

// requestedRoute is the Reason of a plan that uses the requested route. It is true if the request comes from
// --route, and false if it comes from --static.
type requestedRoute bool

func (must requestedRoute) String() string {
	if must {
		return "requested"
	}
	return "static"
}

// Dispatch makes the plan launch a slot with the given grid, on the route that the plan chose. The caller
// sets the params, bytes and FLOPs of the returned Launch.
func (p *Planner) Dispatch(slot int, g grid.Grid) *Launch {
	l := &p.plan.Launches[slot]
	l.Grid, l.Active, l.Needed = g, true, [3]uint32{g.X, g.Y, g.Z}
	if l.kernel = p.op.Use(slot, p.plan.Route).Kernel; l.kernel != nil {
		l.Params.Begin(l.kernel.Params)
	}
	l.Bytes, l.FLOPs, l.Experts = 0, 0, trace.ExpertTiles{}
	return l
}

// Errorf makes the plan fail. It returns the error with which the plan fails: the first one that was
// recorded. The caller of the plan adds the operator's name to the error. The message only needs to name the
// argument, its shape and the supported shapes.
func (p *Planner) Errorf(format string, args ...any) error {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	return p.err
}

// begin prepares the planner for a call of the operator's Plan.
func (p *Planner) begin(o *Op, into *Plan, r routeRequest, aliased bool) {
	p.op, p.plan, p.request, p.aliased, p.err = o, into, r, aliased, nil
	into.Route, into.Reason = 0, nil
	for i := range into.outs {
		into.outs[i].set = false
	}
	for i := range into.Launches {
		into.Launches[i].Active = false
	}
}

// make calls the operator's Plan and checks the result. Whether the plan fits the allocated memory is checked
// later, by Live.check.
func (p *Planner) make(o *Op, into *Plan, r routeRequest, aliased bool) error {
	p.begin(o, into, r, aliased)
	if err := o.impl.Plan(p); err != nil && p.err == nil {
		p.err = err
	}
	if p.err == nil {
		p.err = p.complete()
	}
	if p.err != nil {
		return &OpError{Op: o.Name, Kind: o.Spec.Kind, Args: p.arguments(), Err: p.err}
	}
	return nil
}

// complete checks that the plan is complete: it sets all output dims, its params match the kernels, and no
// kernel reads a deferred tensor. If the plan sets no dims for a scratch tensor, complete marks this tensor
// as unused.
func (p *Planner) complete() error {
	for i := range p.plan.outs {
		out, v := &p.plan.outs[i], p.op.out(i)
		switch {
		case out.set:
		case i < len(p.op.Spec.Outputs):
			return fmt.Errorf("the plan does not set the dims of output %s", p.name(v))
		default:
			out.dims, out.deferred = out.dims[:len(p.env.dims[v])], true
			clear(out.dims)
		}
	}
	for i := range p.plan.Launches {
		l := &p.plan.Launches[i]
		if !l.Active {
			continue
		}
		use := p.op.Use(i, p.plan.Route)
		if use.Kernel == nil {
			return fmt.Errorf("slot %q has no kernel on route %d", p.op.Spec.Slots[i].Label, p.plan.Route)
		}
		if l.kernel != use.Kernel {
			return fmt.Errorf("the plan dispatches slot %q before it chooses a route",
				p.op.Spec.Slots[i].Label)
		}
		if err := l.Params.Check(use.Kernel.Name, use.Kernel.Params); err != nil {
			return err
		}
		for _, bind := range use.Bind {
			if k := p.output(bind.Value); k >= 0 {
				if p.plan.outs[k].deferred {
					return fmt.Errorf("kernel %s binds %s, but the same plan defers this output (does not compute it)",
						use.Kernel.Name, p.name(bind.Value))
				}
			} else if p.env.deferred[bind.Value] && !p.materialized(bind.Value) {
				return fmt.Errorf("kernel %s reads %s, but at this shape this tensor is deferred: no earlier operator computes it",
					use.Kernel.Name,
					p.name(bind.Value))
			}
		}
	}
	for _, v := range p.op.Spec.Materializes {
		if p.env.deferred[v] && !p.writes(v) {
			return fmt.Errorf("%s is deferred at this shape, so this plan must write it, but no kernel of the plan does",
				p.name(v))
		}
	}
	return nil
}

// materialized reports whether this operator, or an earlier one, materializes a deferred tensor.
func (p *Planner) materialized(v ValueID) bool {
	return slices.Contains(p.op.Spec.Materializes, v) || p.materializedBefore(v)
}

// materializedBefore reports whether an earlier operator materializes a deferred tensor.
func (p *Planner) materializedBefore(v ValueID) bool {
	maker := p.values[v].materializer
	return maker >= 0 && maker < p.op.ID
}

// writes reports whether a kernel of the plan writes a tensor.
func (p *Planner) writes(v ValueID) bool {
	for i := range p.plan.Launches {
		if !p.plan.Launches[i].Active {
			continue
		}
		use := p.op.Use(i, p.plan.Route)
		for k, bind := range use.Bind {
			if bind.Value == v && use.Kernel.Storage[k].Access == gpu.ReadWrite {
				return true
			}
		}
	}
	return false
}

// arguments returns the operator's inputs with their live dims or values, for error messages. It omits
// constants.
func (p *Planner) arguments() []string {
	var list []string
	for _, v := range p.op.Spec.Inputs {
		switch val := &p.values[v]; {
		case val.Kind == SymInt:
			list = append(list, fmt.Sprintf("%s=%d", val.Name, p.env.ints[v]))
		case val.Role != Constant:
			list = append(list, fmt.Sprintf("%s%v", val.Name, p.env.dims[v]))
		}
	}
	return list
}

// output returns the index of value v in Plan.outs. It returns -1 if v is neither an output nor a scratch
// tensor of the operator.
func (p *Planner) output(v ValueID) int {
	if k := slices.Index(p.op.Spec.Outputs, v); k >= 0 {
		return k
	}
	if k := slices.Index(p.op.Spec.Scratch, v); k >= 0 {
		return len(p.op.Spec.Outputs) + k
	}
	return -1
}

func (p *Planner) declared(v ValueID) bool {
	s := &p.op.Spec
	if slices.Contains(s.Inputs, v) || slices.Contains(s.State, v) {
		return true
	}
	p.Errorf("the plan reads value %d, but this value is not an argument of the operator", v)
	return false
}

func (p *Planner) name(v ValueID) string {
	if v < 0 || int(v) >= len(p.values) {
		return fmt.Sprintf("value %d", v)
	}
	return p.values[v].Name
}

// maxElements is the largest number of elements of a tensor. With this limit, the tensor's size in bits fits
// into an int64.
const maxElements = math.MaxInt64 / 64

// Numel returns the product of dims, or 0 if it exceeds maxElements.
func Numel(dims []int) int {
	n := uint64(1)
	for _, d := range dims {
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > maxElements {
			return 0
		}
		n = lo
	}
	return int(n)
}
