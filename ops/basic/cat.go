package basic

import (
	"fmt"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
)

// Cat adds cat, which concatenates tensors along a dim.
//
//	parts  dims that are equal except in the dim `axis`; any 32-bit type
//	y      dims of the parts; the size of the dim `axis` is the sum of the sizes in the parts
//
// Each part has its own dispatch.
func Cat(b *graph.Builder, name string, axis int, parts ...graph.ValueID) graph.ValueID {
	return kindCat.BuildOne(b, name, kind.Args{"parts": parts, "dim": axis})
}

var kindCat = kind.Kind{
	Name: "cat", Doc: "Concatenates tensors along a dim.",
	Args:         []kind.Arg{kind.Required("parts", kind.WordTensors), kind.Optional("dim", kind.IntType, 0)},
	Constructors: []string{"Cat"}, Add: addCat,
}

func addCat(c *kind.Call) []graph.ValueID {
	parts := c.ArgTensors("parts")
	if len(parts) == 0 {
		return c.Fail("parts is an empty list, want at least one tensor")
	}
	axis, ok := c.Axis(parts[0], c.ArgInt("dim"))
	if !ok {
		return nil
	}
	first, t := c.MaxDims(parts[0]), c.DType(parts[0])
	o := &cat{parts: parts, axis: axis, Vec: 4, y: c.Out("", t)}
	for _, v := range parts {
		if len(c.MaxDims(v)) != len(first) || c.DType(v) != t {
			return c.Fail("cannot concatenate %s (%s%v) and %s (%s%v): want the same type and rank",
				c.Name(parts[0]), t, first, c.Name(v), c.DType(v), c.MaxDims(v))
		}
		o.Vec = min(o.Vec, InnerVec(c.Builder, v, axis))
	}
	o.NewKernel = CopyKernel(c.Builder, o.Vec)
	return c.AddOp(o, o.y)
}

type cat struct {
	reference.Moves
	parts     []graph.ValueID
	y         graph.ValueID
	axis      int
	NewKernel *graph.Kernel
	Vec       int
}

func (o *cat) Spec() graph.Spec {
	s := graph.Spec{Kind: "cat", Outputs: []graph.ValueID{o.y}, Attrs: map[string]any{"dim": o.axis}}
	for i, v := range o.parts {
		if !slices.Contains(s.Inputs, v) {
			s.Inputs = append(s.Inputs, v)
		}
		s.Slots = append(s.Slots, graph.Slot{Label: fmt.Sprint(i), Uses: kind.Uses(o.NewKernel, graph.Bind("src", v), graph.Bind("dst", o.y))})
	}
	return s
}

func (o *cat) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.parts...) }

func (o *cat) Plan(p *graph.Planner) error {
	var out [kind.MaxRank]int
	first := p.Dims(o.parts[0])
	copy(out[:], first)
	out[o.axis] = 0
	for _, v := range o.parts {
		dims := p.Dims(v)
		for k, d := range dims {
			if k != o.axis && d != first[k] {
				return p.Errorf("parts with dims %v and %v differ in dim %d, but parts can differ only in the concatenated dim", first,
					dims, k)
			}
		}
		out[o.axis] += dims[o.axis]
	}
	inner := shape.Product(first[o.axis+1:])
	at := 0
	for i, v := range o.parts {
		rows := p.Dims(v)[o.axis]
		BlockCopy{
			Blocks: shape.Product(first[:o.axis]), Rows: 1, Width: rows * inner,
			srcBlock: rows * inner, DstStart: at * inner, dstBlock: out[o.axis] * inner,
		}.Plan(p, i, o.Vec)
		at += rows
	}
	p.SetDims(o.y, out[:len(first)]...)
	return nil
}

func (o *cat) Reference(r *reference.Ref) {
	first := r.Tensor(o.parts[0]).Dims
	dims := slices.Clone(first)
	dims[o.axis] = 0
	var data []float64
	for _, v := range o.parts {
		dims[o.axis] += r.Tensor(v).Dims[o.axis]
	}
	for block := range shape.Product(first[:o.axis]) {
		for _, v := range o.parts {
			x := r.Tensor(v)
			n := shape.Product(x.Dims[o.axis:])
			data = append(data, x.Data[block*n:(block+1)*n]...)
		}
	}
	r.Set(o.y, reference.Tensor{Dims: dims, Data: data})
}
