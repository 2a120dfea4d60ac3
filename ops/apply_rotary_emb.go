package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// ApplyRotaryEmb adds apply_rotary_emb, which applies RoPE to neighboring elements: it rotates the pairs
// (x[2j], x[2j+1]) of each head of q and of k. The angle depends on the position and on j.
//
//	y[2j] = x[2j] cos - x[2j+1] sin,  y[2j+1] = x[2j] sin + x[2j+1] cos
//
//	q           [..., S, heads, D], D even; or [1, heads, D] for the last position only
//	k           [..., S, kv heads, D]; or None, to rotate q only
//	cos, sin    [S, D/2], one row for each position
//	yq, yk      dims of q and k
//
// By default q and k each have a dispatch, and both run in parallel. With the fusion rule `rope` one dispatch
// rotates both. With the fusion rule rope_attention a step of one token needs no RoPE dispatch, because
// attention rotates q and k as it loads them. Source: Su et al., RoFormer (2021), in the variant of Meta's
// Llama code, which rotates neighboring elements.
func ApplyRotaryEmb(b *graph.Builder, name string, q, k, cos, sin graph.ValueID) (yq, yk graph.ValueID) {
	return kindRotary.BuildTwo(b, name, kind.Args{"q": q, "k": k, "cos": cos, "sin": sin})
}

var kindRotary = kind.Kind{
	Name: "apply_rotary_emb", Doc: "Applies RoPE to pairs of neighboring elements in each head of q and k.",
	Args: []kind.Arg{
		kind.Required("q", kind.F32Tensor), kind.Optional("k", kind.F32Tensor, graph.None), kind.Required("cos", kind.F32Tensor), kind.Required("sin", kind.F32Tensor),
	},
	Constructors: []string{"ApplyRotaryEmb"}, Add: addRotary,
}

func addRotary(c *kind.Call) []graph.ValueID {
	o := &rotary{turned: turnedOf(c)}
	o.Vec = max(2, min(kind.Vec(c.Builder, o.q, -1), kind.Vec(c.Builder, o.all(), -1)))
	o.makeKernel(c.Builder)
	return c.AddOp(o, o.outputs()...)
}

type rotary struct{ turned }

// turned holds the fields and methods that all RoPE operators share.
type turned struct {
	q, k, cos, sin, yq, yk graph.ValueID // k and yk can be None
	template               string        // name of the WGSL template
	NewKernel              *graph.Kernel
	Vec                    int  // number of elements of q or k that an invocation reads at a time
	both                   bool // a single dispatch rotates both q and k
}

// rotation is an operator that applies RoPE to q and k.
type rotation interface {
	reference.Referencer
	parts() *turned
	// check(p) returns an error if the dims of q, k, cos and sin in a step do not fit each other.
	check(p *graph.Planner) error
	// turn(p) plans the dispatches that rotate q and k.
	turn(p *graph.Planner)
}

func (o *turned) parts() *turned { return o }

func turnedOf(c *kind.Call) turned {
	o := turned{
		template: c.Kind.Name,
		q:        c.ArgTensor("q"), k: c.ArgTensor("k"), cos: c.ArgTensor("cos"), sin: c.ArgTensor("sin"),
		yq: c.Out(".q", graph.F32), yk: graph.None,
	}
	if o.k != graph.None {
		o.yk = c.Out(".k", graph.F32)
	}
	return o
}

// all returns the argument that has all tokens of the step: k, or q if there is no k.
func (o *turned) all() graph.ValueID {
	if o.k == graph.None {
		return o.q
	}
	return o.k
}

func (o *turned) inputs() []graph.ValueID { return present(o.q, o.k, o.cos, o.sin) }

func (o *turned) outputs() []graph.ValueID { return present(o.yq, o.yk) }

// present returns the values that are not None.
func present(values ...graph.ValueID) []graph.ValueID {
	return slices.DeleteFunc(values, func(v graph.ValueID) bool { return v == graph.None })
}

// turnBoth makes one dispatch rotate both q and k, if there is a k.
func (o *turned) turnBoth(b *graph.Builder) {
	o.both = o.k != graph.None
	o.makeKernel(b)
}

func (o *turned) makeKernel(b *graph.Builder) {
	o.NewKernel = kind.NewKernel(b, o.template, shaders.Constants{"Lanes": kind.ThreadLanes, "Vec": o.Vec, "Both": o.both})
}

func (o *turned) slots() []graph.Slot {
	cos, sin := graph.Bind("cosine", o.cos), graph.Bind("sine", o.sin)
	if o.both {
		return []graph.Slot{{
			Uses: kind.Uses(o.NewKernel, graph.Bind("q", o.q), graph.Bind("k", o.k), cos, sin, graph.Bind("yq", o.yq), graph.Bind("yk", o.yk)),
		}}
	}
	slots := []graph.Slot{
		{Label: "q", Uses: kind.Uses(o.NewKernel, graph.Bind("x", o.q), cos, sin, graph.Bind("y", o.yq))},
		{Label: "k", Uses: kind.Uses(o.NewKernel, graph.Bind("x", o.k), cos, sin, graph.Bind("y", o.yk))},
	}
	return slots[:o.launches()]
}

// launches returns the number of dispatches.
func (o *turned) launches() int {
	if o.both || o.k == graph.None {
		return 1
	}
	return 2
}

// launch plans one dispatch and writes the params that all RoPE kernels have. `each` is the number of
// elements that an invocation processes. `ofHead` is the number of elements of a head that are rotated.
func (o *turned) launch(p *graph.Planner, slot, each, ofHead int) *graph.Launch {
	x := o.q
	if slot > 0 {
		x = o.k
	}
	n, positions, d := p.Numel(x), p.Dim(o.all(), -3), p.Dim(x, -1)
	rows := p.Dim(x, -3) // rows of cos and sin that the kernel reads
	if o.both {
		n, rows = n+p.Numel(o.k), positions
	}
	head := d / each
	l := p.Dispatch(slot, p.Vectors(n, each, kind.ThreadLanes))
	l.Params.U32("n", n/each).U32("position", p.Dim(x, -2)*head).U32("positions", positions).
		U32("skip", positions-p.Dim(x, -3)).U32("head", head)
	if o.both {
		l.Params.U32("q", p.Numel(o.q)/each).U32("k_position", p.Dim(o.k, -2)*head)
	}
	l.Bytes = 8*int64(n) + 8*int64(rows)*int64(shape.Last(p.Dims(o.cos)))
	l.FLOPs = 3 * int64(n/d) * int64(ofHead)
	return l
}

func (o *rotary) Spec() graph.Spec {
	return graph.Spec{
		Kind: "apply_rotary_emb", Inputs: o.inputs(), Outputs: o.outputs(), Slots: o.slots(),
	}
}

func (o *rotary) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.inputs()...) }

func (o *rotary) Plan(p *graph.Planner) error {
	if err := o.check(p); err != nil {
		return err
	}
	o.turn(p)
	return nil
}

func (o *rotary) check(p *graph.Planner) error {
	positions, d, err := rotaryDims(p, o.q, o.all())
	if err != nil {
		return err
	}
	for _, table := range [2]graph.ValueID{o.cos, o.sin} {
		if t := p.Dims(table); len(t) != 2 || t[0] != positions || 2*t[1] != d {
			return p.Errorf("cos or sin has dims %v; both need dims [%d %d]", t, positions, d/2)
		}
	}
	return nil
}

func (o *rotary) turn(p *graph.Planner) {
	o.give(p)
	for slot := range o.launches() {
		o.launch(p, slot, o.Vec, p.Dim(o.q, -1))
	}
}

// give(p) sets the dims of the outputs yq and yk for a step.
func (o *turned) give(p *graph.Planner) {
	p.SetDims(o.yq, p.Dims(o.q)...)
	if o.k != graph.None {
		p.SetDims(o.yk, p.Dims(o.k)...)
	}
}

// rotaryDims returns the number of positions in k, and the head dim of q and k. It returns an error if q
// and k do not fit each other.
func rotaryDims(p *graph.Planner, q, k graph.ValueID) (positions, d int, err error) {
	qd, kd := p.Dims(q), p.Dims(k)
	if len(qd) < 3 || len(kd) < 3 {
		return 0, 0, p.Errorf("q has dims %v and k has dims %v; both need [..., positions, heads, head dim]",
			qd, kd)
	}
	positions, d = p.Dim(k, -3), p.Dim(k, -1)
	if d%2 != 0 {
		return 0, 0, p.Errorf("head dim is %d, want an even number", d)
	}
	ofLast := shape.Product(qd[:len(qd)-2]) == 1 && shape.Product(kd[:len(kd)-3]) == 1
	if p.Dim(q, -3) != positions && !ofLast || p.Dim(q, -1) != d {
		return 0, 0, p.Errorf("q has dims %v and k has dims %v; both need the same head dim, "+
			"and q needs as many positions as k (or a single position)", qd, kd)
	}
	return positions, d, nil
}

func (o *rotary) Reference(r *reference.Ref) {
	cos, sin := r.Tensor(o.cos), r.Tensor(o.sin)
	o.heads(r, func(x, y []float64, position int) {
		s := sin.Row(position)
		for j, c := range cos.Row(position) {
			y[2*j] = x[2*j]*c - x[2*j+1]*s[j]
			y[2*j+1] = x[2*j]*s[j] + x[2*j+1]*c
		}
	})
}

// heads computes the reference values of yq and yk. For each requested head of q and of k, heads calls
// turn(x, y, position). `turn` rotates the head x by the angles of the position, and stores the result in y.
func (o *turned) heads(r *reference.Ref, turn func(x, y []float64, position int)) {
	all := r.Tensor(o.all()).Dims
	positions := all[len(all)-3]
	for _, side := range [][2]graph.ValueID{{o.q, o.yq}, {o.k, o.yk}} {
		if side[0] == graph.None {
			continue
		}
		x := r.Tensor(side[0])
		y := r.Result(side[1], x.Dims...)
		rows, _ := x.Rows()
		heads, skip := x.Dims[len(x.Dims)-2], positions-x.Dims[len(x.Dims)-3]
		for row := range r.Rows(side[1], rows) {
			turn(x.Row(row), y.Row(row), (skip+row/heads)%positions)
		}
		r.Set(side[1], y)
	}
}

func (o *rotary) Tolerance(*reference.Ref, graph.ValueID) reference.Tolerance {
	return basic.TurnedPairs
}
