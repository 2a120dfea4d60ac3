package ops

import (
	"math"

	"gpuscope/engine"
	"gpuscope/shaders"
)

// argmaxPart is how many elements of a row a workgroup looks through where rows are cut into parts, and
// argmaxWhole up to how many are not cut: a second dispatch costs more than one workgroup takes for these.
const (
	argmaxPart  = 2048
	argmaxWhole = 8192
	argmaxLanes = 256
)

// Argmax adds argmax: the place of the largest element along the last dim. Of equal elements the first
// counts, -0 equals 0, and a NaN counts for more than any number, as in PyTorch.
//
//	x  [..., N]
//	y  [...], or [..., 1] with keepDim; i32
//
// A workgroup takes a row; of rows over 8192 elements it takes a part of 2048, and a second dispatch, final,
// the best of a row's parts. So a greedy decoder reads back a token and not its logits.
func Argmax(b *engine.Builder, name string, x engine.ValueID, keepDim bool) engine.ValueID {
	if !ready(b, x) {
		return engine.None
	}
	width := last(b.MaxDims(x))
	o := &argmax{
		x: x, y: b.Tensor(name, engine.I32), keepDim: keepDim, vec: vec(b, x, -1),
		split: width > argmaxWhole,
	}
	o.lanes = min(argmaxLanes, lanesFor(b, divUp(width, o.vec)))
	o.kernel = kernel(b, "argmax", shaders.Constants{"Lanes": o.lanes, "Vec": o.vec, "Pairs": o.split})
	if o.split {
		o.parts = b.Scratch(name+".parts", engine.U32)
		o.final = kernel(b, "argmax_final", shaders.Constants{"Lanes": threadLanes})
	}
	b.Add(name, o)
	return o.y
}

type argmax struct {
	x, y          engine.ValueID
	parts         engine.ValueID // scratch: key and place of each part, where rows are split
	keepDim       bool
	split         bool
	kernel, final *engine.Kernel
	lanes, vec    int
}

func (o *argmax) Spec() engine.Spec {
	s := engine.Spec{
		Kind: "argmax", Inputs: []engine.ValueID{o.x}, Outputs: []engine.ValueID{o.y},
		Slots: []engine.Slot{{Uses: one(o.kernel, bind("x", o.x), bind("y", o.y))}},
		Attrs: map[string]any{"keepdim": o.keepDim},
	}
	if o.split {
		s.Scratch = []engine.ValueID{o.parts}
		s.Slots = []engine.Slot{
			{Label: "parts", Uses: one(o.kernel, bind("x", o.x), bind("y", o.parts))},
			{Label: "final", Uses: one(o.final, bind("parts", o.parts), bind("y", o.y))},
		}
	}
	return s
}

func (o *argmax) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.x) }

func (o *argmax) Plan(p *engine.Planner) error {
	dims := p.Dims(o.x)
	if len(dims) == 0 {
		return p.Errorf("x has no dim to look along")
	}
	width, n := last(dims), p.Numel(o.x)
	rows, part, parts := n/width, width, 1
	if o.split {
		part, parts = argmaxPart, divUp(width, argmaxPart)
		p.SetDims(o.parts, rows, parts, 2)
		l := p.Dispatch(1, p.Rows(rows, threadLanes, parts))
		l.Params.U32("rows", rows).U32("row_parts", parts)
		l.Bytes = int64(rows) * int64(8*parts+4)
	}
	l := p.Dispatch(0, p.Rows(rows*parts, o.lanes, divUp(part, o.vec)))
	l.Params.U32("parts", rows*parts).U32("row_parts", parts).U32("width", width).U32("part", part)
	l.Bytes = 4 * int64(n+rows)
	if o.split {
		l.Bytes = 4*int64(n) + 8*int64(rows)*int64(parts)
	}
	if o.keepDim {
		var out [maxRank]int
		copy(out[:], dims)
		out[len(dims)-1] = 1
		p.SetDims(o.y, out[:len(dims)]...)
	} else {
		p.SetDims(o.y, dims[:len(dims)-1]...)
	}
	return nil
}

func (o *argmax) Reference(r *Ref) {
	x := r.Tensor(o.x)
	dims := append([]int{}, x.Dims[:len(x.Dims)-1]...)
	if o.keepDim {
		dims = append(dims, 1)
	}
	y := zeros(dims...)
	for i := range y.Data {
		row, best := x.row(i), 0
		for j, v := range row {
			if v > row[best] || math.IsNaN(v) && !math.IsNaN(row[best]) {
				best = j
			}
		}
		y.Data[i] = float64(best)
	}
	r.Set(o.y, y)
}
