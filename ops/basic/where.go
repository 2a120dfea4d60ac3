package basic

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Where adds where: y = a where the condition is not 0, else b, element by element, with broadcasting.
//
//	condition  any dims
//	a, b       any dims, of the same 32-bit type
//	y          the broadcast dims of all three
//
// An invocation computes one element.
func Where(b *graph.Builder, name string, condition, yes, no graph.ValueID) graph.ValueID {
	return kindWhere.BuildOne(b, name, kind.Args{"condition": condition, "a": yes, "b": no})
}

var kindWhere = kind.Kind{
	Name: "where", Doc: "y = a where the condition is not 0, else b, element by element, with broadcasting.",
	Args: []kind.Arg{
		kind.Required("condition", kind.F32Tensor), kind.Required("a", kind.WordTensor),
		kind.Required("b", kind.WordTensor),
	},
	Constructors: []string{"Where"}, Add: addWhere,
}

func addWhere(c *kind.Call) []graph.ValueID {
	o := &where{of: [3]graph.ValueID{c.ArgTensor("condition"), c.ArgTensor("a"), c.ArgTensor("b")}, rank: 1}
	if a, b := c.DType(o.of[1]), c.DType(o.of[2]); a != b {
		return c.Fail("a is %s and b is %s, want the same type", a, b)
	}
	for _, v := range o.of {
		o.rank = max(o.rank, len(c.MaxDims(v)))
	}
	o.y = c.Out("", c.DType(o.of[1]))
	o.kernel = c.NewKernel("where", shaders.Constants{"Lanes": kind.ThreadLanes, "Rank": o.rank})
	return c.AddOp(o, o.y)
}

type where struct {
	reference.Moves
	of     [3]graph.ValueID // condition, a and b
	y      graph.ValueID
	rank   int // rank of y, at least 1
	kernel *graph.Kernel
}

func (o *where) Spec() graph.Spec {
	s := graph.Spec{
		Kind: "where", Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{
			Uses: kind.Uses(o.kernel, graph.Bind("condition", o.of[0]), graph.Bind("a", o.of[1]),
				graph.Bind("b", o.of[2]), graph.Bind("y", o.y)),
		}},
	}
	for _, v := range o.of {
		if !slices.Contains(s.Inputs, v) {
			s.Inputs = append(s.Inputs, v)
		}
	}
	return s
}

// Corners returns the corners at which each dim of y has its largest and its smallest size.
func (o *where) Corners(r *graph.Ranges) []graph.Corner {
	var dims [2][3][]int // index: corner, operand, dim counted from the last
	for k := range o.rank {
		var lo, hi [3]int
		candidates := []int{1}
		for i, v := range o.of {
			lo[i], hi[i] = dimFromEnd(r.Min(v), k), dimFromEnd(r.Max(v), k)
			candidates = append(candidates, lo[i], hi[i])
		}
		slices.Sort(candidates)
		legal := func(n int) bool { // reports whether each operand can have size n or 1
			for i := range o.of {
				if lo[i] > 1 && (n < lo[i] || n > hi[i]) {
					return false
				}
			}
			return n <= max(hi[0], hi[1], hi[2])
		}
		smallest, largest := 0, 0
		for _, n := range candidates {
			if legal(n) {
				if largest = n; smallest == 0 {
					smallest = n
				}
			}
		}
		for corner, n := range []int{largest, smallest} {
			for i, v := range o.of {
				d := hi[i] // if no live shape is legal, planning reports the error
				if n > 0 {
					if d = 1; n >= lo[i] && n <= hi[i] {
						d = n
					}
				}
				if k < len(r.Max(v)) {
					dims[corner][i] = append(dims[corner][i], d)
				}
			}
		}
	}
	var list []graph.Corner
	for corner := range dims {
		var at graph.Corner
		for i, v := range o.of {
			if !slices.Contains(o.of[:i], v) {
				at = append(at, graph.At{Value: v, Dims: fromEnd(dims[corner][i])})
			}
		}
		list = append(list, at)
	}
	return list
}

func (o *where) Plan(p *graph.Planner) error {
	var dims [kind.MaxRank]int
	var stride [3][kind.MaxRank]int
	n, rank := 1, 0
	apart := [3]int{1, 1, 1}
	for k := range o.rank { // from the last dim
		at, size := o.rank-1-k, 1
		for _, v := range o.of {
			rank = max(rank, len(p.Dims(v)))
			if d := dimFromEnd(p.Dims(v), k); d != 1 {
				if size != 1 && size != d {
					return p.Errorf("cannot broadcast %v, %v and %v: sizes %d and %d differ", p.Dims(o.of[0]),
						p.Dims(o.of[1]), p.Dims(o.of[2]), size, d)
				}
				size = d
			}
		}
		for i, v := range o.of {
			if d := dimFromEnd(p.Dims(v), k); d != 1 {
				stride[i][at] = apart[i]
				apart[i] *= d
			}
		}
		dims[at] = size
		n *= size
	}
	p.SetDims(o.y, dims[o.rank-rank:o.rank]...)
	l := p.Dispatch(0, p.Vectors(n, 1, kind.ThreadLanes))
	l.Params.U32("n", n)
	kind.PutDims(&l.Params, &sizeNames, dims[:o.rank])
	kind.PutDims(&l.Params, &conditionStrideNames, stride[0][:o.rank])
	kind.PutDims(&l.Params, &aStrideNames, stride[1][:o.rank])
	kind.PutDims(&l.Params, &bStrideNames, stride[2][:o.rank])
	l.Bytes = 4 * (int64(n) + int64(apart[0]) + int64(apart[1]) + int64(apart[2]))
	return nil
}

func (o *where) Reference(r *reference.Ref) {
	condition, a, b := r.Tensor(o.of[0]), r.Tensor(o.of[1]), r.Tensor(o.of[2])
	rank := max(len(condition.Dims), len(a.Dims), len(b.Dims))
	dims := make([]int, rank)
	for k := range dims {
		dims[rank-1-k] = max(dimFromEnd(condition.Dims, k), dimFromEnd(a.Dims, k), dimFromEnd(b.Dims, k))
	}
	y := reference.Zeros(dims...)
	for i := range y.Data {
		from := b
		if condition.Data[repeated(condition.Dims, dims, i)] != 0 {
			from = a
		}
		y.Data[i] = from.Data[repeated(from.Dims, dims, i)]
	}
	r.Set(o.y, y)
}

var conditionStrideNames = kind.PerDim("condition_stride")
