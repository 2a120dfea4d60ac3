package ops

import (
	"gpuscope/engine"
	"gpuscope/shaders"
)

// Sum adds sum over dims that lie side by side, which go away, or stay as 1 with keepDims.
//
//	x  any dims
//	y  dims of x without the axes
//
// Over the last dims a workgroup sums a row of x; over others an invocation sums a column.
func Sum(b *engine.Builder, name string, x engine.ValueID, axes []int, keepDims bool) engine.ValueID {
	return addSum(b, name, "sum", x, axes, keepDims)
}

// Mean adds mean: the sum as Sum has it over the number of elements summed.
func Mean(b *engine.Builder, name string, x engine.ValueID, axes []int, keepDims bool) engine.ValueID {
	return addSum(b, name, "mean", x, axes, keepDims)
}

func addSum(b *engine.Builder, name, kind string, x engine.ValueID, axes []int,
	keepDims bool,
) engine.ValueID {
	if !ready(b, x) {
		return engine.None
	}
	summed := make([]bool, len(b.MaxDims(x)))
	o := &sum{kind: kind, x: x, keepDims: keepDims, first: len(summed), count: len(axes)}
	for _, a := range axes {
		axis, ok := axisOf(b, name, x, a)
		if !ok {
			return engine.None
		}
		summed[axis] = true
		o.first = min(o.first, axis)
	}
	for k := range axes {
		if o.first+k >= len(summed) || !summed[o.first+k] {
			b.Errorf("%s: %s over dims %v of %s, which do not lie side by side: permute it first", name, kind,
				axes, b.Name(x))
			return engine.None
		}
	}
	if len(axes) == 0 {
		b.Errorf("%s: %s over no dims", name, kind)
		return engine.None
	}
	o.y = b.Tensor(name, engine.F32)
	if o.rows = o.first+o.count == len(summed); o.rows {
		o.vec = innerVec(b, x, o.first-1)
		o.lanes = lanesFor(b, divUp(product(b.MaxDims(x)[o.first:]), o.vec))
		o.kernel = kernel(b, "sum_rows", shaders.Constants{"Lanes": o.lanes, "Vec": o.vec})
	} else {
		o.vec, o.lanes = innerVec(b, x, o.first+o.count-1), threadLanes
		o.kernel = kernel(b, "sum_columns", shaders.Constants{"Lanes": o.lanes, "Vec": o.vec})
	}
	b.Add(name, o)
	return o.y
}

type sum struct {
	kind         string
	x, y         engine.ValueID
	first, count int // dims summed
	keepDims     bool
	rows         bool // the summed dims are the last ones
	kernel       *engine.Kernel
	lanes, vec   int
}

func (o *sum) Spec() engine.Spec {
	axes := make([]int, o.count)
	for k := range axes {
		axes[k] = o.first + k
	}
	return engine.Spec{
		Kind: o.kind, Inputs: []engine.ValueID{o.x}, Outputs: []engine.ValueID{o.y},
		Slots: []engine.Slot{{Uses: one(o.kernel, bind("x", o.x), bind("y", o.y))}},
		Attrs: map[string]any{"dims": axes, "keepdim": o.keepDims},
	}
}

func (o *sum) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.x) }

func (o *sum) Plan(p *engine.Planner) error {
	dims := p.Dims(o.x)
	outer, n, inner := product(dims[:o.first]), product(dims[o.first:o.first+o.count]),
		product(dims[o.first+o.count:])
	factor := float32(1)
	if o.kind == "mean" {
		factor = 1 / float32(n)
	}
	var l *engine.Launch
	if o.rows {
		l = p.Dispatch(0, p.Rows(outer, o.lanes, divUp(n, o.vec)))
		l.Params.U32("rows", outer).U32("width", n).F32("factor", factor)
	} else {
		l = p.Dispatch(0, p.Threads(outer*inner/o.vec, o.lanes))
		l.Params.U32("n", outer*inner/o.vec).U32("rows", n).U32("width", inner/o.vec).F32("factor", factor)
	}
	l.Bytes, l.FLOPs = 4*int64(outer)*int64(n+1)*int64(inner), int64(p.Numel(o.x))
	var out [maxRank]int
	rank := 0
	for k, d := range dims {
		switch {
		case k < o.first || k >= o.first+o.count:
			out[rank] = d
		case o.keepDims:
			out[rank] = 1
		default:
			continue
		}
		rank++
	}
	p.SetDims(o.y, out[:rank]...)
	return nil
}

func (o *sum) Reference(r *Ref) {
	x := r.Tensor(o.x)
	var dims []int
	for k, d := range x.Dims {
		if k < o.first || k >= o.first+o.count {
			dims = append(dims, d)
		} else if o.keepDims {
			dims = append(dims, 1)
		}
	}
	y := zeros(dims...)
	n, inner := product(x.Dims[o.first:o.first+o.count]), product(x.Dims[o.first+o.count:])
	for i, v := range x.Data {
		if o.kind == "mean" {
			v /= float64(n)
		}
		y.Data[i/inner/n*inner+i%inner] += v
	}
	r.Set(o.y, y)
}
