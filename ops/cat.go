package ops

import (
	"fmt"
	"slices"

	"gpuscope/engine/graph"
)

// Cat adds cat: tensors one after another along a dim.
//
//	parts  dims that are equal but in dim axis, any 32-bit type
//	y      their dims, with the sum in dim axis
//
// Each part has a dispatch.
func Cat(b *graph.Builder, name string, axis int, parts ...graph.ValueID) graph.ValueID {
	return kindCat.one(b, name, Args{"parts": parts, "dim": axis})
}

var kindCat = Kind{
	Name: "cat", Doc: "Tensors one after another along a dim.",
	Args:         []Arg{{"parts", wordTensors, nil}, {"dim", intType, 0}},
	Constructors: []string{"Cat"}, add: addCat,
}

func addCat(c *call) []graph.ValueID {
	parts := c.tensors("parts")
	if len(parts) == 0 {
		return c.fail("cat of nothing")
	}
	axis, ok := c.axis(parts[0], c.int("dim"))
	if !ok {
		return nil
	}
	first, t := c.MaxDims(parts[0]), c.DType(parts[0])
	o := &cat{parts: parts, axis: axis, vec: 4, y: c.out("", t)}
	for _, v := range parts {
		if len(c.MaxDims(v)) != len(first) || c.DType(v) != t {
			return c.fail("cat of %s %s%v and %s %s%v, want one type and rank", c.Name(parts[0]), t, first,
				c.Name(v), c.DType(v), c.MaxDims(v))
		}
		o.vec = min(o.vec, innerVec(c.Builder, v, axis))
	}
	o.kernel = copyKernel(c.Builder, o.vec)
	return c.adds(o, o.y)
}

type cat struct {
	moves
	parts  []graph.ValueID
	y      graph.ValueID
	axis   int
	kernel *graph.Kernel
	vec    int
}

func (o *cat) Spec() graph.Spec {
	s := graph.Spec{Kind: "cat", Outputs: []graph.ValueID{o.y}, Attrs: map[string]any{"dim": o.axis}}
	for i, v := range o.parts {
		if !slices.Contains(s.Inputs, v) {
			s.Inputs = append(s.Inputs, v)
		}
		s.Slots = append(s.Slots, graph.Slot{Label: fmt.Sprint(i), Uses: one(o.kernel, bind("src", v), bind("dst", o.y))})
	}
	return s
}

func (o *cat) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.parts...) }

func (o *cat) Plan(p *graph.Planner) error {
	var out [maxRank]int
	first := p.Dims(o.parts[0])
	copy(out[:], first)
	out[o.axis] = 0
	for _, v := range o.parts {
		dims := p.Dims(v)
		for k, d := range dims {
			if k != o.axis && d != first[k] {
				return p.Errorf("%v and %v differ in dim %d, which is not the one they are joined along",
					first, dims, k)
			}
		}
		out[o.axis] += dims[o.axis]
	}
	inner := product(first[o.axis+1:])
	at := 0
	for i, v := range o.parts {
		rows := p.Dims(v)[o.axis]
		blockCopy{
			blocks: product(first[:o.axis]), rows: 1, width: rows * inner,
			srcBlock: rows * inner, dstStart: at * inner, dstBlock: out[o.axis] * inner,
		}.plan(p, i, o.vec)
		at += rows
	}
	p.SetDims(o.y, out[:len(first)]...)
	return nil
}

func (o *cat) Reference(r *Ref) {
	first := r.Tensor(o.parts[0]).Dims
	dims := slices.Clone(first)
	dims[o.axis] = 0
	var data []float64
	for _, v := range o.parts {
		dims[o.axis] += r.Tensor(v).Dims[o.axis]
	}
	for block := range product(first[:o.axis]) {
		for _, v := range o.parts {
			x := r.Tensor(v)
			n := product(x.Dims[o.axis:])
			data = append(data, x.Data[block*n:(block+1)*n]...)
		}
	}
	r.Set(o.y, Tensor{dims, data})
}
