package basic

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// GatherAlong adds gather: y[i, j, ...] = x[index[i, j, ...], j, ...] along dim 0, and in the same way
// along any other dim.
//
//	x      any dims but none, any 32-bit type
//	index  rank of x, i32; its sizes are at most those of x, except along the dim. An index outside the dim
//	       selects the first or the last element
//	y      dims of index
func GatherAlong(b *graph.Builder, name string, x graph.ValueID, axis int,
	index graph.ValueID,
) graph.ValueID {
	return kindGather.BuildOne(b, name, kind.Args{"x": x, "dim": axis, "index": index})
}

// ScatterAlong adds scatter: x with the elements of src at the places that index lists: y[index[i, j, ...],
// j, ...] = src[i, j, ...] along dim 0, and in the same way along any other dim. If several elements have
// the same place, the last one is used. An index outside the dim is ignored.
//
//	x      any dims but none, any 32-bit type
//	index  rank of x, i32. No dim is larger than that dim of src. Except along the dim of the scatter, no
//	       dim is larger than that dim of x
//	src    rank and type of x
//	y      dims of x
//
// An invocation computes one element of y. It searches index for the place of the element.
func ScatterAlong(b *graph.Builder, name string, x graph.ValueID, axis int, index, src graph.ValueID,
) graph.ValueID {
	return kindScatter.BuildOne(b, name, kind.Args{"x": x, "dim": axis, "index": index, "src": src})
}

var kindGather = kind.Kind{
	Name: "gather", Doc: "Selects elements of x along a dim: each element of the input index is a position in this dim.",
	Args: []kind.Arg{
		kind.Required("x", kind.WordTensor), kind.Required("dim", kind.IntType),
		kind.Required("index", kind.I32Tensor),
	},
	Constructors: []string{"GatherAlong"}, Add: addAlong,
}

var kindScatter = kind.Kind{
	Name: "scatter", Doc: "A copy of x in which elements of src overwrite elements of x. The input index holds, for each element of src, its target along a dim.",
	Args: []kind.Arg{
		kind.Required("x", kind.WordTensor), kind.Required("dim", kind.IntType),
		kind.Required("index", kind.I32Tensor), kind.Required("src", kind.WordTensor),
	},
	Constructors: []string{"ScatterAlong"}, Add: addAlong,
}

func addAlong(c *kind.Call) []graph.ValueID {
	o := &along{x: c.ArgTensor("x"), index: c.ArgTensor("index"), src: graph.None}
	o.rank = len(c.MaxDims(o.x))
	if rank := len(c.MaxDims(o.index)); rank != o.rank || rank == 0 {
		return c.Fail("x has rank %d and index has rank %d, want the same rank of at least 1", o.rank, rank)
	}
	var ok bool
	if o.axis, ok = c.Axis(o.x, c.ArgInt("dim")); !ok {
		return nil
	}
	template := "gather_along"
	if c.Kind.Name == "scatter" {
		template, o.src = "scatter_along", c.ArgTensor("src")
		if len(c.MaxDims(o.src)) != o.rank || c.DType(o.src) != c.DType(o.x) {
			return c.Fail("x is %s %v and src is %s %v, want the same type and rank", c.DType(o.x),
				c.MaxDims(o.x), c.DType(o.src), c.MaxDims(o.src))
		}
	}
	o.y = c.Out("", c.DType(o.x))
	o.kernel = c.NewKernel(template, shaders.Constants{
		"Lanes": kind.ThreadLanes, "Rank": o.rank, "Axis": o.axis,
	})
	return c.AddOp(o, o.y)
}

// along is gather, or scatter if src is a value.
type along struct {
	reference.Moves
	x, index, src, y graph.ValueID
	axis, rank       int
	kernel           *graph.Kernel
}

func (o *along) scatters() bool { return o.src != graph.None }

func (o *along) Spec() graph.Spec {
	s := graph.Spec{
		Kind: "gather", Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Attrs: map[string]any{"dim": o.axis},
	}
	bind := []graph.Binding{graph.Bind("x", o.x), graph.Bind("index", o.index)}
	inputs := []graph.ValueID{o.index}
	if o.scatters() {
		s.Kind = "scatter"
		bind, inputs = append(bind, graph.Bind("src", o.src)), append(inputs, o.src)
	}
	for _, v := range inputs {
		if !slices.Contains(s.Inputs, v) {
			s.Inputs = append(s.Inputs, v)
		}
	}
	s.Slots = []graph.Slot{{Uses: kind.Uses(o.kernel, append(bind, graph.Bind("y", o.y))...)}}
	return s
}

// Corners returns the largest and the smallest dims at which `index` fits `x` and `src`.
func (o *along) Corners(r *graph.Ranges) []graph.Corner {
	others := []graph.ValueID{o.x}
	if o.scatters() {
		others = append(others, o.src)
	}
	largest, smallest := slices.Clone(r.Max(o.index)), r.Min(o.index)
	corners := make([]graph.Corner, 2)
	for _, v := range others {
		least := slices.Clone(r.Min(v))
		for k := range least {
			if k == o.axis && v == o.x {
				continue
			}
			largest[k] = max(min(largest[k], r.Max(v)[k]), smallest[k])
			least[k] = min(max(least[k], smallest[k]), r.Max(v)[k])
		}
		if v != o.index {
			corners[1] = append(corners[1], graph.At{Value: v, Dims: least})
		}
	}
	corners[0] = graph.Corner{{Value: o.index, Dims: largest}}
	corners[1] = append(corners[1], graph.At{Value: o.index, Dims: smallest})
	if o.scatters() && o.src == o.x {
		corners[1] = corners[1][1:]
	}
	return corners
}

func (o *along) Plan(p *graph.Planner) error {
	x, index := p.Dims(o.x), p.Dims(o.index)
	for k, n := range index {
		if k != o.axis && n > x[k] || o.scatters() && n > p.Dims(o.src)[k] {
			return p.Errorf("index has dims %v and x has dims %v, but index is too large. In every dim, the size "+
				"of src (if there is one) is the limit. In dims other than the indexed one, the size of x "+
				"is a limit too",
				index, x)
		}
	}
	dims := index
	if o.scatters() {
		dims = x
	}
	p.SetDims(o.y, dims...)
	n := graph.Numel(dims)
	l := p.Dispatch(0, p.Vectors(n, 1, kind.ThreadLanes))
	l.Params.U32("n", n)
	kind.PutDims(&l.Params, &sizeNames, dims)
	if !o.scatters() {
		l.Params.U32("in", x[o.axis])
		putStrides(l, &strideNames, x)
		l.Bytes = 12 * int64(n)
		return nil
	}
	kind.PutDims(&l.Params, &inNames, index)
	putStrides(l, &indexStrideNames, index)
	putStrides(l, &srcStrideNames, p.Dims(o.src))
	l.Bytes = 8*int64(n) + 8*int64(graph.Numel(index))
	return nil
}

// putStrides writes one param for each dim of a dense tensor: the distance, in elements, between neighbors
// along the dim.
func putStrides(l *graph.Launch, names *[kind.MaxRank]string, dims []int) {
	var stride [kind.MaxRank]int
	n := 1
	for k := len(dims) - 1; k >= 0; k-- {
		stride[k] = n
		n *= dims[k]
	}
	kind.PutDims(&l.Params, names, stride[:len(dims)])
}

// placeOf returns the index in each dim of the element with row-major index i.
func placeOf(dims []int, i int) []int {
	at := make([]int, len(dims))
	for k := len(dims) - 1; k >= 0; k-- {
		at[k] = i % dims[k]
		i /= dims[k]
	}
	return at
}

// indexOf returns the row-major index of the element with the index at[k] in each dim k.
func indexOf(dims, at []int) (i int) {
	for k, d := range dims {
		i = i*d + at[k]
	}
	return i
}

func (o *along) Reference(r *reference.Ref) {
	x, index := r.Tensor(o.x), r.Tensor(o.index)
	rows := x.Dims[o.axis]
	if !o.scatters() {
		y := reference.Zeros(index.Dims...)
		for i, row := range index.Data {
			at := placeOf(index.Dims, i)
			at[o.axis] = min(max(int(row), 0), rows-1)
			y.Data[i] = x.Data[indexOf(x.Dims, at)]
		}
		r.Set(o.y, y)
		return
	}
	src, y := r.Tensor(o.src), reference.Tensor{Dims: x.Dims, Data: slices.Clone(x.Data)}
	for i, row := range index.Data {
		at := placeOf(index.Dims, i)
		v := src.Data[indexOf(src.Dims, at)]
		if at[o.axis] = int(row); row >= 0 && int(row) < rows {
			y.Data[indexOf(y.Dims, at)] = v
		}
	}
	r.Set(o.y, y)
}

var indexStrideNames, srcStrideNames = kind.PerDim("index_stride"), kind.PerDim("src_stride")
