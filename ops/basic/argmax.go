package basic

import (
	"math"

	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// ArgmaxWhole is the largest number of elements in a row that one workgroup searches alone. For rows up to
// this length a second dispatch would cost more time than it saves. Longer rows are split into parts of
// argmaxPart elements, with one workgroup for each part.
const (
	argmaxPart  = 2048
	ArgmaxWhole = 8192
	argmaxLanes = 256
)

// Argmax adds argmax: the index of the largest element along the last dim. If several elements are equal, the
// first one wins. -0 equals 0, and a NaN is larger than any number, as in PyTorch.
//
//	x  [..., N]
//	y  [...], or [..., 1] with keepDim; i32
//
// One workgroup searches each row. If rows have more than 8192 elements, each workgroup searches a part of
// 2048 elements. A second dispatch, `final`, then finds the largest element among the results of a row's
// parts. A greedy decoder that uses this operator reads back only the index of the next token, instead of
// all logits.
func Argmax(b *graph.Builder, name string, x graph.ValueID, keepDim bool) graph.ValueID {
	return kindArgmax.BuildOne(b, name, kind.Args{"x": x, "keepdim": keepDim})
}

// ArgmaxValue adds argmax with a second output, the largest element itself. The output needs no additional
// dispatch. The value is NaN if the row of x has a NaN.
//
//	x, y   as in Argmax
//	value  dims of y; 0 and NaN lose their sign
func ArgmaxValue(b *graph.Builder, name string, x graph.ValueID, keepDim bool) (y, value graph.ValueID) {
	return kindArgmax.BuildTwo(b, name, kind.Args{"x": x, "keepdim": keepDim, "value": true})
}

var kindArgmax = kind.Kind{
	Name: "argmax", Doc: "Finds the index of the largest element along the last dim. Among equal elements the first one " +
		"wins. If value is true, the element itself is a second output.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Optional("keepdim", kind.BoolType, false), kind.Optional("value", kind.BoolType, false),
	},
	Constructors: []string{"Argmax", "ArgmaxValue"}, Add: addArgmax,
}

func addArgmax(c *kind.Call) []graph.ValueID {
	x := c.ArgTensor("x")
	width := shape.Last(c.MaxDims(x))
	o := &argmax{
		x: x, y: c.Out("", graph.I32), value: graph.None, keepDim: c.ArgBool("keepdim"),
		Vec: kind.Vec(c.Builder, x, -1), split: width > ArgmaxWhole,
	}
	if c.ArgBool("value") {
		o.value = c.Out(".value", graph.F32)
	}
	o.lanes = min(argmaxLanes, kind.LanesFor(c.Builder, shape.DivUp(width, o.Vec)))
	o.NewKernel = c.NewKernel("argmax", shaders.Constants{
		"Lanes": o.lanes, "Vec": o.Vec, "Pairs": o.split, "Value": o.hasValue() && !o.split,
	})
	if o.split {
		o.parts = c.Temp("parts", graph.U32)
		o.final = c.NewKernel("argmax_final", shaders.Constants{
			"Lanes": kind.ThreadLanes,
			"Value": o.hasValue(),
		})
	}
	if o.hasValue() {
		return c.AddOp(o, o.y, o.value)
	}
	return c.AddOp(o, o.y)
}

type argmax struct {
	reference.Moves
	x, y             graph.ValueID
	value            graph.ValueID // the largest element; None if only the index is computed
	parts            graph.ValueID // scratch: key and index of the largest element of each part
	keepDim          bool
	split            bool
	NewKernel, final *graph.Kernel
	lanes, Vec       int
}

func (o *argmax) hasValue() bool { return o.value != graph.None }

func (o *argmax) Spec() graph.Spec {
	y := []graph.Binding{graph.Bind("y", o.y)}
	if o.hasValue() {
		y = append(y, graph.Bind("value", o.value))
	}
	s := graph.Spec{
		Kind: "argmax", Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.NewKernel, append([]graph.Binding{graph.Bind("x", o.x)},
			y...)...)}},
		Attrs: map[string]any{"keepdim": o.keepDim},
	}
	if o.hasValue() {
		s.Outputs = append(s.Outputs, o.value)
	}
	if o.split {
		s.Scratch = []graph.ValueID{o.parts}
		s.Slots = []graph.Slot{
			{Label: "parts", Uses: kind.Uses(o.NewKernel, graph.Bind("x", o.x), graph.Bind("y", o.parts))},
			{Label: "final", Uses: kind.Uses(o.final, append([]graph.Binding{graph.Bind("parts", o.parts)},
				y...)...)},
		}
	}
	return s
}

func (o *argmax) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *argmax) Plan(p *graph.Planner) error {
	dims := p.Dims(o.x)
	if len(dims) == 0 {
		return p.Errorf("x has rank 0, want at least 1")
	}
	width, n := shape.Last(dims), p.Numel(o.x)
	rows, part, parts := n/width, width, 1
	if o.split {
		part, parts = argmaxPart, shape.DivUp(width, argmaxPart)
		p.SetDims(o.parts, rows, parts, 2)
		l := p.Dispatch(1, p.Rows(kind.ThreadLanes, parts, grid.RowsOf(n, width)))
		l.Params.U32("rows", rows).U32("row_parts", parts)
		l.Bytes = int64(rows) * int64(8*parts+4)
	}
	l := p.Dispatch(0, p.Rows(o.lanes, shape.DivUp(part, o.Vec), grid.RowsOf(n, width),
		grid.Split("width", width, part)))
	l.Params.U32("parts", rows*parts).U32("row_parts", parts).U32("width", width).U32("part", part)
	l.Bytes = 4 * int64(n+rows)
	if o.split {
		l.Bytes = 4*int64(n) + 8*int64(rows)*int64(parts)
	}
	var out [kind.MaxRank]int
	rank := copy(out[:], dims)
	out[rank-1] = 1
	if !o.keepDim {
		rank--
	}
	p.SetDims(o.y, out[:rank]...)
	if o.hasValue() {
		p.SetDims(o.value, out[:rank]...)
	}
	return nil
}

func (o *argmax) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	dims := append([]int{}, x.Dims[:len(x.Dims)-1]...)
	if o.keepDim {
		dims = append(dims, 1)
	}
	y, value := reference.Zeros(dims...), reference.Zeros(dims...)
	for i := range y.Data {
		row, best := x.Row(i), 0
		for j, v := range row {
			if v > row[best] || math.IsNaN(v) && !math.IsNaN(row[best]) {
				best = j
			}
		}
		y.Data[i], value.Data[i] = float64(best), row[best]
	}
	r.Set(o.y, y)
	if o.hasValue() {
		r.Set(o.value, value)
	}
}
