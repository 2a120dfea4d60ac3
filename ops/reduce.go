package ops

import (
	"fmt"
	"math"

	"gpuscope/engine/graph"
	"gpuscope/shaders"
)

// reductions are the family of operators that reduce dims which lie side by side, a row each: kernels,
// reference and tests follow from it.
var reductions = []reduction{
	{
		kind: "amax", doc: "The largest over dims that lie side by side; NaN where one of them is",
		start: infinityWGSL("0xff800000u"), join: largerWGSL, needs: isNaNWGSL,
		f: func(list []float64) float64 { return ofAll(math.Max, list) }, also: oddNumbers,
	},
	{
		kind: "amin", doc: "The smallest over dims that lie side by side; NaN where one of them is",
		start: infinityWGSL("0x7f800000u"), join: smallerWGSL, needs: isNaNWGSL,
		f: func(list []float64) float64 { return ofAll(math.Min, list) }, also: oddNumbers,
	},
	{
		kind: "mean", of: "Mean", doc: "The sum over dims that lie side by side over how many elements they are",
		start: "0.0", join: "u + v", rounds: true, mean: true,
		f: func(list []float64) float64 { return total(list) / float64(len(list)) },
	},
	{
		kind: "sum", of: "Sum", doc: "The sum over dims that lie side by side", start: "0.0", join: "u + v",
		rounds: true, f: total,
	},
}

type reduction struct {
	kind string
	of   string // the Go constructor, where there is one
	doc  string
	// start is what nothing is reduced to, join what u and v are, in any order; needs are functions that it
	// calls, as a unaryRow has them.
	start, join, needs string
	rounds             bool // join does; else the result is one of the elements
	mean               bool // it is divided by how many there are
	f                  func(list []float64) float64
	also               []float64 // the tests add these to what they draw
}

var oddNumbers = []float64{math.Inf(1), math.Inf(-1), math.NaN()}

// infinityWGSL is a float of these bits, which must not be a constant.
func infinityWGSL(bits string) string { return "bitcast<f32>(" + bits + " + min(params.rows, 0u))" }

func total(list []float64) (sum float64) {
	for _, v := range list {
		sum += v
	}
	return sum
}

func ofAll(f func(a, b float64) float64, list []float64) float64 {
	y := list[0]
	for _, v := range list {
		y = ofNumbers(f, y, v)
	}
	return y
}

// Sum adds sum over dims that lie side by side, which go away, or stay as 1 with keepDims.
//
//	x  any dims
//	y  dims of x without the axes
//
// Over the last dims a workgroup sums a row of x; over others an invocation sums a column.
func Sum(b *graph.Builder, name string, x graph.ValueID, axes []int, keepDims bool) graph.ValueID {
	return KindOf("sum").one(b, name, Args{"x": x, "dims": axes, "keepdim": keepDims})
}

// Mean adds mean: the sum as Sum has it over the number of elements summed.
func Mean(b *graph.Builder, name string, x graph.ValueID, axes []int, keepDims bool) graph.ValueID {
	return KindOf("mean").one(b, name, Args{"x": x, "dims": axes, "keepdim": keepDims})
}

var kindsOfReductions = eachKind(reductions, func(r *reduction) Kind {
	return Kind{
		Name: r.kind, Doc: r.doc + ".", Constructors: constructors(r.of),
		Args: []Arg{{"x", f32Tensor, nil}, {"dims", intsType, nil}, {"keepdim", boolType, false}},
		add:  r.add,
	}
})

func (r *reduction) add(c *call) []graph.ValueID {
	x, axes := c.tensor("x"), c.ints("dims")
	dims := c.MaxDims(x)
	summed := make([]bool, len(dims))
	o := &reduce{reduction: r, x: x, keepDims: c.bool("keepdim"), first: len(summed), count: len(axes)}
	for _, a := range axes {
		axis, ok := c.axis(x, a)
		if !ok {
			return nil
		}
		summed[axis] = true
		o.first = min(o.first, axis)
	}
	for k := range axes {
		if o.first+k >= len(summed) || !summed[o.first+k] {
			return c.fail("%s over dims %v of %s, which do not lie side by side: permute it first", r.kind,
				axes, c.Name(x))
		}
	}
	if len(axes) == 0 {
		return c.fail("%s over no dims", r.kind)
	}
	o.y = c.out("", graph.F32)
	if o.rows = o.first+o.count == len(summed); o.rows {
		o.vec = innerVec(c.Builder, x, o.first-1)
		o.lanes = lanesFor(c.Builder, divUp(product(dims[o.first:]), o.vec))
		o.kernel = r.kernel(c, "rows", 1, shaders.Constants{"Lanes": o.lanes, "Vec": o.vec})
	} else {
		o.vec, o.lanes = innerVec(c.Builder, x, o.first+o.count-1), threadLanes
		o.kernel = r.kernel(c, "columns", o.vec, shaders.Constants{"Lanes": o.lanes, "Vec": o.vec})
	}
	return c.adds(o, o.y)
}

// kernel reduces rows or columns, of which it joins so many at a time.
func (r *reduction) kernel(c *call, what string, vec int, constants shaders.Constants) *graph.Kernel {
	constants["Op"], constants["Start"] = r.kind, shaders.Text(r.start)
	constants["Join"], constants["Needs"] = ofElements(r.join, vec), ofElements(r.needs, vec)
	return kernelAs(c.Builder, r.kind+"_"+what, "reduce_"+what, constants)
}

type reduce struct {
	*reduction
	x, y         graph.ValueID
	first, count int // dims summed
	keepDims     bool
	rows         bool // the summed dims are the last ones
	kernel       *graph.Kernel
	lanes, vec   int
}

func (o *reduce) Spec() graph.Spec {
	axes := make([]int, o.count)
	for k := range axes {
		axes[k] = o.first + k
	}
	return graph.Spec{
		Kind: o.kind, Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: one(o.kernel, bind("x", o.x), bind("y", o.y))}},
		Attrs: map[string]any{"dims": axes, "keepdim": o.keepDims},
	}
}

func (o *reduce) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *reduce) Plan(p *graph.Planner) error {
	dims := p.Dims(o.x)
	outer, n, inner := product(dims[:o.first]), product(dims[o.first:o.first+o.count]),
		product(dims[o.first+o.count:])
	factor := float32(1)
	if o.mean {
		factor = 1 / float32(n)
	}
	var l *graph.Launch
	if o.rows {
		l = p.Dispatch(0, p.Rows(o.lanes, divUp(n, o.vec), graph.RowsOf(outer*n, n)))
		l.Params.U32("rows", outer).U32("width", n).F32("factor", factor)
	} else {
		l = p.Dispatch(0, p.Vectors(outer*inner, o.vec, o.lanes))
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

func (o *reduce) Reference(r *Ref) {
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
	list := make([]float64, n)
	for i := range y.Data {
		for j := range list {
			list[j] = x.Data[(i/inner*n+j)*inner+i%inner]
		}
		y.Data[i] = o.f(list)
	}
	r.Set(o.y, y)
}

// Tolerance: a sum of both signs may cancel out.
func (o *reduce) Tolerance(r *Ref, _ graph.ValueID) Tolerance {
	if !o.rounds {
		return moves{}.Tolerance(r, o.y)
	}
	x := r.Tensor(o.x)
	n := product(x.Dims[o.first : o.first+o.count])
	t := Tolerance{
		Rel: summed(n) * rounding, Abs: math.Sqrt(float64(n)) * summed(n) * rounding * r.largest(o.x),
		Why: fmt.Sprintf("%d elements summed in f32", n),
	}
	if o.mean {
		t.Abs /= float64(n)
	}
	return t
}
