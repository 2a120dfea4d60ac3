package experts

import (
	"fmt"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// CombineExperts adds combine_experts: y is the sum of the results of a token's experts, each multiplied by
// its weight.
//
//	x        [1, S, k, N]: the results of the experts
//	weights  [1, S, k]
//	y        [1, S, N]
func CombineExperts(b *graph.Builder, name string, x, weights graph.ValueID) graph.ValueID {
	return kindCombine.BuildOne(b, name, kind.Args{"x": x, "weights": weights})
}

var kindCombine = kind.Kind{
	Name: "combine_experts", Doc: "For each token, the weighted sum of the results of its experts.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("weights", kind.F32Tensor),
	},
	Constructors: []string{"CombineExperts"}, Add: func(c *kind.Call) []graph.ValueID {
		o := &combine{
			x: c.ArgTensor("x"), weights: c.ArgTensor("weights"), residual: graph.None, alpha: 1,
		}
		highest, lowest := c.MaxDims(o.x), c.MinDims(o.x)
		if len(highest) != 4 || highest[0] != 1 || !slices.Equal(highest[2:], lowest[2:]) {
			return c.Fail("x %s has dims %v, want [1, S, k, N] with fixed k and N", c.Name(o.x), highest)
		}
		o.k, o.width, o.y = highest[2], highest[3], c.Out("", graph.F32)
		o.makeKernel(c.Builder)
		return c.AddOp(o, o.y)
	},
}

type combine struct {
	x, weights, y graph.ValueID
	// residual is a tensor with the dims of y (fusion rule experts_residual), or None. With a residual, y =
	// residual + alpha * the sum.
	residual      graph.ValueID
	alpha         float32
	k, width, vec int
	kernel        *graph.Kernel
}

func (o *combine) makeKernel(b *graph.Builder) {
	if o.vec = 1; o.width%4 == 0 {
		o.vec = 4
	}
	o.kernel = kind.NewKernel(b, "combine_experts", shaders.Constants{
		"Lanes": kind.ThreadLanes, "Vec": o.vec, "K": o.k, "Width": o.width / o.vec,
		"Residual": o.residual != graph.None, "Alpha": o.alpha,
	})
}

func (o *combine) Spec() graph.Spec {
	return graph.Spec{
		Kind: "combine_experts", Inputs: []graph.ValueID{o.x, o.weights}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.kernel, o.bindings(o.x, o.y)...)}},
		Attrs: map[string]any{"k": o.k},
	}
}

// bindings returns the bindings of the kernel. x has the results of the experts.
func (o *combine) bindings(x, y graph.ValueID) []graph.Binding {
	list := []graph.Binding{graph.Bind("x", x), graph.Bind("weights", o.weights)}
	if o.residual != graph.None {
		list = append(list, graph.Bind("residual", o.residual))
	}
	return append(list, graph.Bind("y", y))
}

// cost adds to a dispatch the cost of computing the sums of this many tokens.
func (o *combine) cost(l *graph.Launch, tokens int) {
	n := int64(tokens) * int64(o.width)
	l.Bytes += 4 * (n + int64(tokens*o.k))
	l.FLOPs += 2 * n * int64(o.k)
	if o.residual != graph.None {
		l.Bytes += 4 * n
		l.FLOPs += 2 * n
	}
}

func (o *combine) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x, o.weights) }

func (o *combine) Plan(p *graph.Planner) error {
	x, w := p.Dims(o.x), p.Dims(o.weights)
	if len(x) != 4 || len(w) != 3 || !slices.Equal(x[:3], w) || x[2] != o.k || x[3] != o.width {
		return p.Errorf("x has dims %v and weights has dims %v, want x [1, S, %d, %d] and weights [1, S, %d]",
			x, w, o.k, o.width, o.k)
	}
	p.SetDims(o.y, 1, x[1], o.width)
	o.dispatch(p, 0, x[1])
	return nil
}

// dispatch plans the dispatch in a slot of an operator.
func (o *combine) dispatch(p *graph.Planner, slot, tokens int) {
	n := tokens * o.width
	l := p.Dispatch(slot, p.Vectors(n, o.vec, kind.ThreadLanes))
	l.Params.U32("n", n/o.vec)
	l.Bytes = 4 * int64(n) * int64(o.k)
	o.cost(l, tokens)
}

func (o *combine) Reference(r *reference.Ref) {
	x, w := r.Tensor(o.x), r.Tensor(o.weights)
	y := r.Result(o.y, 1, x.Dims[1], o.width)
	for t := range r.Rows(o.y, x.Dims[1]) {
		clear(y.Row(t))
		for j, weight := range w.Row(t) {
			for i, v := range x.Row(t*o.k + j) {
				y.Row(t)[i] += weight * v
			}
		}
	}
	r.Set(o.y, y)
}

// RowsOf returns a tensor that has as many tokens as y.
func (o *combine) RowsOf() graph.ValueID { return o.x }

// Tolerance is relative to the largest product that is added, because products of both signs can cancel out.
func (o *combine) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	return reference.Tolerance{
		Abs: 2 * float64(o.k+1) * float64(o.k) * reference.Rounding * r.Largest(o.x) * r.Largest(o.weights),
		Why: fmt.Sprintf("f32 sum of %d products", o.k),
	}
}
