package basic

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// IndexSelect adds index_select: y = x[..., index[j], ...] along a dim, for each j.
//
//	x      any dims, any 32-bit type
//	index  [N], i32; an index outside the dim selects the first or the last row
//	y      dims of x; the size of the dim `axis` is N
//
// An invocation copies one element.
func IndexSelect(b *graph.Builder, name string, x graph.ValueID, axis int,
	index graph.ValueID,
) graph.ValueID {
	return kindIndexSelect.BuildOne(b, name, kind.Args{"x": x, "dim": axis, "index": index})
}

var kindIndexSelect = kind.Kind{
	Name: "index_select", Doc: "Selects the rows of x that index lists, along a dim.",
	Args: []kind.Arg{
		kind.Required("x", kind.WordTensor), kind.Required("dim", kind.IntType),
		kind.Required("index", kind.I32Tensor),
	},
	Constructors: []string{"IndexSelect"}, Add: addIndexSelect,
}

func addIndexSelect(c *kind.Call) []graph.ValueID {
	x, index := c.ArgTensor("x"), c.ArgTensor("index")
	axis, ok := c.Axis(x, c.ArgInt("dim"))
	if !ok {
		return nil
	}
	if rank := len(c.MaxDims(index)); rank != 1 {
		return c.Fail("index has rank %d, want 1", rank)
	}
	o := &indexSelect{x: x, index: index, y: c.Out("", c.DType(x)), axis: axis}
	o.kernel = c.NewKernel("index_select", shaders.Constants{"Lanes": kind.ThreadLanes})
	return c.AddOp(o, o.y)
}

type indexSelect struct {
	reference.Moves
	x, index, y graph.ValueID
	axis        int
	kernel      *graph.Kernel
}

func (o *indexSelect) Spec() graph.Spec {
	return graph.Spec{
		Kind: "index_select", Inputs: []graph.ValueID{o.x, o.index}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{
			Uses: kind.Uses(o.kernel, graph.Bind("x", o.x), graph.Bind("index", o.index),
				graph.Bind("y", o.y)),
		}},
		Attrs: map[string]any{"dim": o.axis},
	}
}

func (o *indexSelect) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x, o.index) }

func (o *indexSelect) Plan(p *graph.Planner) error {
	x, n := p.Dims(o.x), p.Numel(o.index)
	var dims [kind.MaxRank]int
	rank := copy(dims[:], x)
	dims[o.axis] = n
	p.SetDims(o.y, dims[:rank]...)
	total := shape.Product(dims[:rank])
	l := p.Dispatch(0, p.Vectors(total, 1, kind.ThreadLanes))
	l.Params.U32("n", total).U32("width", shape.Product(x[o.axis+1:])).U32("indices", n).U32("rows",
		x[o.axis])
	l.Bytes = 8*int64(total) + 4*int64(n)
	return nil
}

func (o *indexSelect) Reference(r *reference.Ref) {
	x, index := r.Tensor(o.x), r.Tensor(o.index)
	dims := slices.Clone(x.Dims)
	rows, width, n := dims[o.axis], shape.Product(dims[o.axis+1:]), len(index.Data)
	dims[o.axis] = n
	y := reference.Zeros(dims...)
	for i := range y.Data {
		line := i / width
		row := min(max(int(index.Data[line%n]), 0), rows-1)
		y.Data[i] = x.Data[(line/n*rows+row)*width+i%width]
	}
	r.Set(o.y, y)
}
