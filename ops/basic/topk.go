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

const (
	topKTile = 1024 // elements that a workgroup sorts at a time
	MaxTopK  = 64   // largest supported k
)

// TopK adds topk: the k largest elements along the last dim, largest first, with their indices, and the
// statistics that are needed to compute their probabilities. The order is the same as in argmax: of equal
// elements the first one wins, -0 equals 0, and a NaN is larger than any number.
//
//	x       [..., N], N at least k
//	k       1 to 64
//	values  [..., k]
//	ids     [..., k], i32: indices in the row
//	stats   [..., 4]: the largest finite element, the sum of exp(x - largest) over the finite elements, the
//	        number of NaN elements, and the number of infinite elements. If no element is finite, the first
//	        two are 0.
//
// The probability of a value is exp(value - largest) / sum, so a decoder reads back k pairs instead of all
// logits. There are always two dispatches. In the dispatch `parts` each workgroup sorts 1024 elements, and
// the dispatch `final` merges the largest elements of a row's parts. The same input always produces the same
// bytes.
func TopK(b *graph.Builder, name string, x graph.ValueID, k int) (values, ids, stats graph.ValueID) {
	out := kindTopK.Build(b, name, kind.Args{"x": x, "k": k})
	if out == nil {
		return graph.None, graph.None, graph.None
	}
	return out[0], out[1], out[2]
}

var kindTopK = kind.Kind{
	Name: "topk", Doc: "The k largest elements along the last dim in descending order, their indices, and statistics from which their probabilities can be computed.",
	Args:         []kind.Arg{kind.Required("x", kind.F32Tensor), kind.Required("k", kind.IntType)},
	Constructors: []string{"TopK"}, Add: addTopK,
}

func addTopK(c *kind.Call) []graph.ValueID {
	x, k := c.ArgTensor("x"), c.ArgInt("k")
	if most := min(MaxTopK, shape.Last(c.MaxDims(x))); k < 1 || k > most {
		return c.Fail("k is %d for %s with dims %v, want 1 to %d", k, c.Name(x), c.MaxDims(x), most)
	}
	o := &topK{
		x: x, k: k, values: c.Out(".values", graph.F32), ids: c.Out(".ids", graph.I32),
		stats: c.Out(".stats", graph.F32), best: c.Temp("best", graph.U32),
		sums: c.Temp("sums", graph.F32), lanes: kind.LanesFor(c.Builder, topKTile),
	}
	constants := shaders.Constants{"Lanes": o.lanes, "Tile": topKTile, "K": k}
	o.parts, o.merge = c.NewKernel("topk", constants), c.NewKernel("topk_merge", constants)
	return c.AddOp(o, o.values, o.ids, o.stats)
}

type topK struct {
	x, values, ids, stats graph.ValueID
	best, sums            graph.ValueID // scratch: best elements and stats of each part
	k, lanes              int
	parts, merge          *graph.Kernel
}

func (o *topK) Spec() graph.Spec {
	best, sums := graph.Bind("best", o.best), graph.Bind("sums", o.sums)
	return graph.Spec{
		Kind: "topk", Inputs: []graph.ValueID{o.x},
		Outputs: []graph.ValueID{o.values, o.ids, o.stats},
		Scratch: []graph.ValueID{o.best, o.sums},
		Slots: []graph.Slot{
			{Label: "parts", Uses: kind.Uses(o.parts, graph.Bind("x", o.x), best, sums)},
			{
				Label: "final",
				Uses: kind.Uses(o.merge, best, sums, graph.Bind("values", o.values), graph.Bind("ids", o.ids),
					graph.Bind("stats", o.stats)),
			},
		},
		Attrs: map[string]any{"k": o.k},
	}
}

// Corners returns the largest x, and the smallest x with k elements in a row.
func (o *topK) Corners(r *graph.Ranges) []graph.Corner {
	smallest := slices.Clone(r.Min(o.x))
	if last := len(smallest) - 1; last >= 0 {
		smallest[last] = max(smallest[last], o.k)
	}
	return []graph.Corner{{}, {{Value: o.x, Dims: smallest}}}
}

func (o *topK) Plan(p *graph.Planner) error {
	dims := p.Dims(o.x)
	if len(dims) == 0 || shape.Last(dims) < o.k {
		return p.Errorf("k is %d, but the rows of x (dims %v) have fewer elements", o.k, dims)
	}
	width, n := shape.Last(dims), p.Numel(o.x)
	rows, parts := n/width, shape.DivUp(width, topKTile)
	var out [kind.MaxRank]int
	rank := copy(out[:], dims)
	out[rank-1] = o.k
	p.SetDims(o.values, out[:rank]...)
	p.SetDims(o.ids, out[:rank]...)
	out[rank-1] = 4
	p.SetDims(o.stats, out[:rank]...)
	p.SetDims(o.best, rows, parts, o.k, 2)
	p.SetDims(o.sums, rows, parts, 4)
	between := int64(rows) * int64(parts) * int64(8*o.k+16)

	l := p.Dispatch(0, p.Rows(o.lanes, o.lanes, grid.RowsOf(n, width),
		grid.Split("width", width, topKTile)))
	l.Params.U32("parts", rows*parts).U32("row_parts", parts).U32("width", width)
	l.Bytes, l.FLOPs = 4*int64(n)+between, 3*int64(n)

	rounds := 1 + shape.DivUp(max(0, parts*o.k-topKTile), topKTile-o.k)
	l = p.Dispatch(1, p.Rows(o.lanes, o.lanes, grid.RowsOf(n, width)))
	l.Params.U32("rows", rows).U32("row_parts", parts).U32("rounds", rounds)
	l.Bytes = between + int64(rows)*int64(8*o.k+16)
	l.FLOPs = 3 * int64(rows) * int64(parts)
	return nil
}

func (o *topK) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	rows, width := x.Rows()
	shape := func(n int) []int { return append(slices.Clone(x.Dims[:len(x.Dims)-1]), n) }
	values, ids, stats := reference.Zeros(
		shape(o.k)...), reference.Zeros(
		shape(o.k)...), reference.Zeros(
		shape(4)...)
	places := make([]int, width)
	for i := range rows {
		row, s := x.Row(i), stats.Row(i)
		largest := math.Inf(-1)
		for j, v := range row {
			places[j] = j
			switch {
			case math.IsNaN(v):
				s[2]++
			case math.IsInf(v, 0):
				s[3]++
			default:
				largest = max(largest, v)
			}
		}
		for _, v := range row {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				s[0] = largest
				s[1] += math.Exp(v - largest)
			}
		}
		slices.SortStableFunc(places, func(a, b int) int { return byRank(row[a], row[b]) })
		for j, at := range places[:o.k] {
			values.Row(i)[j], ids.Row(i)[j] = row[at], float64(at)
		}
	}
	r.Set(o.values, values)
	r.Set(o.ids, ids)
	r.Set(o.stats, stats)
}

// Tolerance is zero for the outputs `values` and `ids`, because they are copied exactly. Only the output
// `stats` is rounded.
func (o *topK) Tolerance(r *reference.Ref, v graph.ValueID) reference.Tolerance {
	if v != o.stats {
		return reference.Moves{}.Tolerance(r, v)
	}
	n := shape.Last(r.Tensor(o.x).Dims)
	return reference.Tolerance{
		Rel: reference.ULPs(8) + reference.SumRoundings(n)*reference.Rounding,
		Why: fmt.Sprintf("f32 sum of %d exponentials, in which the large ones have an error of 8 ulp", n),
	}
}

// byRank is a comparison function that sorts the largest number first, and NaN before any number.
func byRank(a, b float64) int {
	switch aNaN, bNaN := math.IsNaN(a), math.IsNaN(b); {
	case aNaN && bNaN || a == b:
		return 0
	case aNaN || a > b && !bNaN:
		return -1
	default:
		return 1
	}
}
