package basic

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// bmmTile is the size of a tile of results, in rows and in columns.
const bmmTile = 16

// BMM adds bmm, a product of two tensors of matrices: y = scale * a * b. If `transposed` is true, it
// multiplies by the transpose of b.
//
//	a  [..., M, K]
//	b  [..., K, N], or [..., N, K] if transposed; the leading dims are those of a
//	y  [..., M, N]
//
// A workgroup computes a tile of 16 x 16 results. For a product with constant weights, the operator linear is
// faster.
func BMM(b *graph.Builder, name string, x, y graph.ValueID, transposed bool, scale float32) graph.ValueID {
	return kindBMM.BuildOne(b, name, kind.Args{"a": x, "b": y, "transposed": transposed, "scale": scale})
}

var kindBMM = kind.Kind{
	Name: "bmm", Doc: "y = scale * a * b for each matrix of a batch. If transposed is true, b is transposed.",
	Args: []kind.Arg{
		kind.Required("a", kind.F32Tensor), kind.Required("b", kind.F32Tensor),
		kind.Optional("transposed", kind.BoolType, false), kind.Optional("scale", kind.FloatType, 1.0),
	},
	Constructors: []string{"BMM"}, Add: addBMM,
}

func addBMM(c *kind.Call) []graph.ValueID {
	o := &bmm{
		a: c.ArgTensor("a"), b: c.ArgTensor("b"), y: c.Out("", graph.F32),
		transposed: c.ArgBool("transposed"),
		scale:      float32(c.ArgFloat("scale")),
	}
	a, b := c.MaxDims(o.a), c.MaxDims(o.b)
	if len(a) < 2 || len(a) != len(b) {
		return c.Fail("a has dims %v and b has dims %v, want the same rank of at least 2", a, b)
	}
	o.kernel = c.NewKernel("bmm", shaders.Constants{"Tile": bmmTile, "Transposed": o.transposed})
	return c.AddOp(o, o.y)
}

type bmm struct {
	a, b, y    graph.ValueID
	transposed bool
	scale      float32
	kernel     *graph.Kernel
}

func (o *bmm) Spec() graph.Spec {
	return graph.Spec{
		Kind: "bmm", Inputs: []graph.ValueID{o.a, o.b}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{
			Uses: kind.Uses(o.kernel, graph.Bind("a", o.a), graph.Bind("b", o.b), graph.Bind("y", o.y)),
		}},
		Attrs: map[string]any{"transposed": o.transposed, "scale": o.scale},
	}
}

func (o *bmm) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.a, o.b) }

// sizes returns the number of matrices in a batch, and their sizes m, n and k. `ok` is false if the dims of a
// and b do not fit each other.
func (o *bmm) sizes(a, b []int) (batch, m, n, k int, ok bool) {
	last := len(a) - 1
	m, k = a[last-1], a[last]
	n, inner := b[last], b[last-1]
	if o.transposed {
		n, inner = inner, n
	}
	return shape.Product(a[:last-1]), m, n, k, inner == k && slices.Equal(a[:last-1], b[:last-1])
}

func (o *bmm) Plan(p *graph.Planner) error {
	a, b := p.Dims(o.a), p.Dims(o.b)
	batch, m, n, k, ok := o.sizes(a, b)
	if !ok {
		return p.Errorf("cannot multiply matrices a (dims %v) by matrices b (dims %v, transposed: %v)", a, b,
			o.transposed)
	}
	var dims [kind.MaxRank]int
	rank := copy(dims[:], a)
	dims[rank-1] = n
	p.SetDims(o.y, dims[:rank]...)
	l := p.Dispatch(0, p.Tiles(bmmTile*bmmTile, grid.Split("n", n, bmmTile), grid.Split("m", m, bmmTile),
		grid.Each("batch", batch)))
	l.Params.U32("m", m).U32("n", n).U32("k", k).U32("batch", batch).F32("scale", o.scale)
	l.Bytes = 4 * int64(batch) * (int64(m)*int64(k) + int64(n)*int64(k) + int64(m)*int64(n))
	l.FLOPs = 2 * int64(batch) * int64(m) * int64(n) * int64(k)
	return nil
}

func (o *bmm) Reference(r *reference.Ref) {
	a, b := r.Tensor(o.a), r.Tensor(o.b)
	batch, m, n, k, _ := o.sizes(a.Dims, b.Dims)
	dims := slices.Clone(a.Dims)
	dims[len(dims)-1] = n
	y := r.Result(o.y, dims...)
	for row := range r.Rows(o.y, batch*m) {
		matrix := b.Data[row/m*n*k:]
		for col := range r.Cols(o.y, n) {
			sum := 0.0
			for j := range k {
				if o.transposed {
					sum += a.Row(row)[j] * matrix[col*k+j]
				} else {
					sum += a.Row(row)[j] * matrix[j*n+col]
				}
			}
			y.Row(row)[col] = float64(o.scale) * sum
		}
	}
	r.Set(o.y, y)
}

// Tolerance is relative to the product of two lengths: of the longest row of a, and of the longest column of
// b (row, if b is transposed). It is not relative to the result, because the terms of a sum can cancel out.
func (o *bmm) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	a, b := r.Tensor(o.a), r.Tensor(o.b)
	batch, _, n, k, _ := o.sizes(a.Dims, b.Dims)
	longest := b.LongestRow()
	if !o.transposed {
		longest = 0
		column := make([]float64, k)
		for i := range batch * n {
			for j := range column {
				column[j] = b.Data[i/n*n*k+j*n+i%n]
			}
			longest = max(longest, reference.Length(column))
		}
	}
	most := a.LongestRow() * longest * math.Abs(float64(o.scale))
	return reference.Tolerance{
		Rel: 2 * reference.Rounding,
		Abs: reference.SumRoundings(k) * reference.Rounding * most,
		Why: fmt.Sprintf("%d products summed in f32", k),
	}
}
