package engine

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gpuscope/engine/gpu"
)

// Planner is what an operator's Plan reads from and writes to. Reads are checked: an operator sees its own
// arguments and nothing else. After the first error every write is without effect, and that error is the
// plan's.
type Planner struct {
	limits  *gpu.Limits
	values  []value
	env     env
	op      *op
	plan    *plan
	request routeRequest
	aliased bool
	err     error
}

// routeRequest is a route that is asked for from outside.
type routeRequest struct {
	route int // -1: none
	// must: a shape that the route cannot do is refused (--route); else the plan's own choice stands
	// (--static).
	must bool
}

var noRoute = routeRequest{route: -1}

// env is one moment of a graph's live values: by ValueID, the dims of tensors, the values of SymInts, and the
// host integers of inputs.
type env struct {
	dims [][]int
	ints []int64
	host [][]int64
}

// plan is what one call of Operator.Plan gave. Its memory is made once for each operator and used again.
type plan struct {
	route    int
	reason   Reason
	outs     []outPlan // Spec.Outputs, then Spec.Scratch
	launches []Launch  // by slot
}

// outPlan is the live dims of an output or scratch tensor, or the value of an output SymInt.
type outPlan struct {
	dims []int
	int  int64
	set  bool
}

// Launch is what a plan gives to one dispatch slot.
type Launch struct {
	Grid   Grid
	Params Params
	Bytes  int64 // modelled: moved to or from device memory, each byte counted once
	FLOPs  int64 // modelled
	active bool
	needed [3]uint32 // workgroups of the live shape, whatever Grid is pinned to
}

// MaxParams is the largest number of 4-byte fields in a params block.
const MaxParams = 64

// Params is a kernel's params block as it is being written, field by field in the kernel's order.
type Params struct {
	n     int
	kinds [MaxParams]byte // 'u', 'i', 'f'
	data  [4 * MaxParams]byte
}

// U32 appends unsigned fields. A value outside of uint32 is written as its low bits and refused by the
// engine's check.
func (p *Params) U32(values ...int) *Params {
	for _, v := range values {
		kind := byte('u')
		if uint64(v) > math.MaxUint32 {
			kind = '!'
		}
		p.put(kind, uint32(v))
	}
	return p
}

// I32 appends signed fields.
func (p *Params) I32(values ...int) *Params {
	for _, v := range values {
		kind := byte('i')
		if v < math.MinInt32 || v > math.MaxInt32 {
			kind = '!'
		}
		p.put(kind, uint32(int32(v)))
	}
	return p
}

// F32 appends float fields.
func (p *Params) F32(values ...float32) *Params {
	for _, v := range values {
		p.put('f', math.Float32bits(v))
	}
	return p
}

func (p *Params) put(kind byte, v uint32) {
	if p.n < MaxParams {
		p.kinds[p.n] = kind
		p.data[4*p.n], p.data[4*p.n+1], p.data[4*p.n+2], p.data[4*p.n+3] = byte(v), byte(v>>8), byte(v>>16),
			byte(v>>24)
	}
	p.n++
}

// Bytes are the fields written so far, little-endian.
func (p *Params) Bytes() []byte { return p.data[:4*min(p.n, MaxParams)] }

// Limits are the device's.
func (p *Planner) Limits() *gpu.Limits { return p.limits }

// Dims are the live dims of a tensor argument. They must not be changed or kept.
func (p *Planner) Dims(v ValueID) []int {
	if !p.declared(v) {
		return nil
	}
	return p.env.dims[v]
}

// Dim is one live dim of a tensor argument; a negative axis counts from the end. An axis that is not there is
// an error and gives 0.
func (p *Planner) Dim(v ValueID, axis int) int {
	dims := p.Dims(v)
	if axis < 0 {
		axis += len(dims)
	}
	if axis < 0 || axis >= len(dims) {
		p.Errorf("%s %v has no dim %d", p.name(v), dims, axis)
		return 0
	}
	return dims[axis]
}

// Numel is the live element count of a tensor argument.
func (p *Planner) Numel(v ValueID) int { return numel(p.Dims(v)) }

// Int is the value of a SymInt argument.
func (p *Planner) Int(v ValueID) int {
	if !p.declared(v) {
		return 0
	}
	return int(p.env.ints[v])
}

// HostInts are the integers that the host is about to write to an argument that is a graph input, one for
// each element. Where there are more or fewer it is an error and gives nil.
func (p *Planner) HostInts(v ValueID) []int64 {
	if !p.declared(v) {
		return nil
	}
	if !p.op.readsHost {
		p.op.readsHost, p.values[v].hostRead = true, true
	}
	host := p.env.host[v]
	if n := p.Numel(v); len(host) != n {
		p.Errorf("%s has %d host integers for dims %v, want %d", p.name(v), len(host), p.env.dims[v], n)
		return nil
	}
	return host
}

// Aliased says whether the engine lets the operator's first output be the bytes of its first input.
func (p *Planner) Aliased() bool { return p.aliased }

// SetDims gives the live dims of an output or scratch tensor.
func (p *Planner) SetDims(v ValueID, dims ...int) {
	k := p.output(v)
	if k < 0 {
		p.Errorf("sets the dims of value %d, which is not an output of it", v)
		return
	}
	out := &p.plan.outs[k]
	out.dims, out.set = append(out.dims[:0], dims...), true
}

// SetInt gives the value of an output SymInt.
func (p *Planner) SetInt(v ValueID, n int64) {
	k := p.output(v)
	if k < 0 {
		p.Errorf("sets SymInt %d, which is not an output of it", v)
		return
	}
	p.plan.outs[k].int, p.plan.outs[k].set = n, true
}

// Choose settles the route of this plan: preferred, for reason, unless another was asked for from outside.
// Bit i of allowed says that route i can do this live shape.
func (p *Planner) Choose(preferred int, reason Reason, allowed uint64) int {
	p.plan.route, p.plan.reason = preferred, reason
	r := p.request
	switch {
	case r.route < 0 || r.route == preferred:
	case allowed>>r.route&1 != 0:
		p.plan.route, p.plan.reason = r.route, requestedRoute(r.must)
	case r.must:
		p.Errorf("%w %s cannot do this shape (it would take %s, %s)", ErrRoute, p.op.spec.Routes[r.route],
			p.op.spec.Routes[preferred], reason)
	}
	return p.plan.route
}

// requestedRoute is the Reason of a route that was asked for.
type requestedRoute bool

func (must requestedRoute) String() string {
	if must {
		return "asked for"
	}
	return "static"
}

// Dispatch puts a slot to use with a grid. The caller fills in params, bytes and FLOPs.
func (p *Planner) Dispatch(slot int, g Grid) *Launch {
	l := &p.plan.launches[slot]
	l.Grid, l.active, l.needed = g, true, [3]uint32{g.X, g.Y, g.Z}
	l.Params.n, l.Bytes, l.FLOPs = 0, 0, 0
	return l
}

// Errorf refuses the shape. The engine puts the operator in front: say which argument, its shape and what it
// should be. It returns the error for Plan to return; the first one counts.
func (p *Planner) Errorf(format string, args ...any) error {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	return p.err
}

// begin readies the planner for one call of Plan.
func (p *Planner) begin(o *op, into *plan, r routeRequest, aliased bool) {
	p.op, p.plan, p.request, p.aliased, p.err = o, into, r, aliased, nil
	into.route, into.reason = 0, nil
	for i := range into.outs {
		into.outs[i].set = false
	}
	for i := range into.launches {
		into.launches[i].active = false
	}
}

// make runs the operator's Plan into a plan and checks what can be checked without knowing what was
// allocated.
func (p *Planner) make(o *op, into *plan, r routeRequest, aliased bool) error {
	p.begin(o, into, r, aliased)
	if err := o.impl.Plan(p); err != nil && p.err == nil {
		p.err = err
	}
	if p.err == nil {
		p.err = p.complete()
	}
	if p.err != nil {
		return &OpError{Op: o.name, Kind: o.spec.Kind, Args: p.arguments(), Err: p.err}
	}
	return nil
}

// complete checks that the plan says all it must: output dims, and a params block that is the kernel's.
func (p *Planner) complete() error {
	for i, out := range p.plan.outs {
		if !out.set && i < len(p.op.spec.Outputs) {
			return fmt.Errorf("gives no shape for its output %s", p.name(p.op.spec.Outputs[i]))
		}
	}
	for i := range p.plan.launches {
		l := &p.plan.launches[i]
		if !l.active {
			continue
		}
		use := p.op.use(i, p.plan.route)
		if use.Kernel == nil {
			return fmt.Errorf("slot %q has no kernel on route %d", p.op.spec.Slots[i].Label, p.plan.route)
		}
		if l.Params.n != len(use.Kernel.Params) {
			return fmt.Errorf("kernel %s takes %d params, got %d", use.Kernel.Name, len(use.Kernel.Params),
				l.Params.n)
		}
		for j, f := range use.Kernel.Params {
			if l.Params.kinds[j] == '!' {
				return fmt.Errorf("param %s of kernel %s does not fit 32 bits", f.Name, use.Kernel.Name)
			}
			if l.Params.kinds[j] != f.Type[0] {
				return fmt.Errorf("param %s of kernel %s is %s, the plan writes %c", f.Name, use.Kernel.Name,
					f.Type, l.Params.kinds[j])
			}
		}
	}
	return nil
}

// arguments lists the operator's tensor and SymInt arguments with what they were when it refused.
func (p *Planner) arguments() []string {
	var list []string
	for _, v := range p.op.spec.Inputs {
		switch val := &p.values[v]; {
		case val.kind == symInt:
			list = append(list, fmt.Sprintf("%s=%d", val.name, p.env.ints[v]))
		case val.role != Constant:
			list = append(list, fmt.Sprintf("%s%v", val.name, p.env.dims[v]))
		}
	}
	return list
}

// output is the index of v among the plan's outputs and scratch, or -1.
func (p *Planner) output(v ValueID) int {
	if k := slices.Index(p.op.spec.Outputs, v); k >= 0 {
		return k
	}
	if k := slices.Index(p.op.spec.Scratch, v); k >= 0 {
		return len(p.op.spec.Outputs) + k
	}
	return -1
}

func (p *Planner) declared(v ValueID) bool {
	s := &p.op.spec
	if slices.Contains(s.Inputs, v) || slices.Contains(s.State, v) {
		return true
	}
	p.Errorf("reads value %d, which is not an argument of it", v)
	return false
}

func (p *Planner) name(v ValueID) string {
	if v < 0 || int(v) >= len(p.values) {
		return fmt.Sprintf("value %d", v)
	}
	return p.values[v].name
}

// maxElements is the most elements that a tensor may have: their bits can be counted in an int64.
const maxElements = math.MaxInt64 / 64

// numel is the product of dims; 0 where it is over maxElements.
func numel(dims []int) int {
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
