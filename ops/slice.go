package ops

import (
	"slices"

	"gpuscope/engine"
)

// Slice adds slice: y = x[..., start : start+length, ...] along a dim. It refuses a start and a length that x
// does not have.
//
//	x  any dims, any 32-bit type
//	y  dims of x with length in place of dim axis
//
// An invocation copies 4 elements where the dims behind axis allow it.
func Slice(b *engine.Builder, name string, x engine.ValueID, axis int, start, length Int) engine.ValueID {
	return kindSlice.one(b, name, Args{"x": x, "dim": axis, "start": start, "length": length})
}

// SliceRange adds slice as upstream's slice_copy has it: y = x[..., from : to : step, ...] along a dim, where
// a negative end counts from the live dim's end, both are brought into 0 to the live dim, and a to of ToEnd,
// or any other number past the end, means the end.
//
//	x  any dims, any 32-bit type
//	y  dims of x with ceil((to - from) / step) in place of dim axis; nothing left is refused
func SliceRange(b *engine.Builder, name string, x engine.ValueID, axis int, from, to Int,
	step int,
) engine.ValueID {
	return kindSlice.one(b, name, Args{"x": x, "dim": axis, "start": from, "end": to, "step": step})
}

var kindSlice = Kind{
	Name: "slice",
	Doc: "y = x[..., start : end : step, ...] along a dim, with both ends brought into it; or, where a length is " +
		"given, x[..., start : start+length, ...], which must be there.",
	Args: []Arg{
		{"x", wordTensor, nil},
		{"dim", intType, 0},
		{"start", symIntType, Fixed(0)},
		{"end", symIntType, Fixed(ToEnd)},
		{"step", intType, 1},
		{"length", symIntType, noLength},
	},
	Constructors: []string{"Slice", "SliceRange"}, add: addSlice,
}

// noLength is the length of a slice that goes by its end.
var noLength = Fixed(-1)

func addSlice(c *call) []engine.ValueID {
	o := &slice{
		x: c.tensor("x"), start: c.sym("start"), end: c.sym("end"), length: c.sym("length"), step: c.int("step"),
	}
	if o.exact = o.length != noLength; o.exact {
		o.end = Int{}
	} else {
		o.length = Int{}
	}
	if o.step < 1 || o.exact && o.step != 1 {
		return c.fail("slice with step %d, want at least 1, and 1 where a length is given", o.step)
	}
	var ok bool
	if o.axis, ok = c.axis(o.x, c.int("dim")); !ok {
		return nil
	}
	o.y = c.out("", c.DType(o.x))
	o.vec = innerVec(c.Builder, o.x, o.axis)
	o.kernel = copyKernel(c.Builder, o.vec)
	return c.adds(o, o.y)
}

// ToEnd is the end of a dim, whatever its live size.
const ToEnd = 1<<31 - 1

type slice struct {
	x, y   engine.ValueID
	axis   int
	start  Int
	length Int  // where exact
	end    Int  // where not
	exact  bool // start and length must be there; else start and end are brought into range
	step   int
	kernel *engine.Kernel
	vec    int
}

func (o *slice) Spec() engine.Spec {
	attrs := map[string]any{"dim": o.axis, "start": o.start.attr()}
	if o.exact {
		attrs["length"] = o.length.attr()
	} else {
		attrs["end"], attrs["step"] = o.end.attr(), o.step
	}
	return engine.Spec{
		Kind: "slice", Inputs: args([]engine.ValueID{o.x}, o.start, o.length, o.end),
		Outputs: []engine.ValueID{o.y},
		Slots:   []engine.Slot{{Uses: one(o.kernel, bind("src", o.x), bind("dst", o.y))}}, Attrs: attrs,
	}
}

// cut is the first index and the count of a slice of a dim.
func (o *slice) cut(dim, start, end int) (from, n int) {
	if o.exact {
		return start, end - start
	}
	from, to := within(start, dim), within(end, dim)
	return from, max(0, divUp(to-from, o.step))
}

// within brings an index, which may count from the end, into 0 to dim.
func within(i, dim int) int {
	if i < 0 {
		i += dim
	}
	return min(max(i, 0), dim)
}

// Corners are the legal points with the fewest and the most rows among those where the count can turn: the
// ends of each range, and where one bound meets another.
func (o *slice) Corners(r *engine.Ranges) []engine.Corner {
	dimLo, dimHi := r.Min(o.x)[o.axis], r.Max(o.x)[o.axis]
	startLo, startHi := o.start.span(r)
	secondLo, secondHi := o.second().span(r)
	dims := []int{dimLo, dimHi}
	for _, n := range []int{startLo, startHi, secondLo, secondHi, startLo + secondLo, secondLo - startLo} {
		for d := -1; d <= 1; d++ {
			dims = append(dims, min(max(abs(n)+d, dimLo), dimHi))
		}
	}
	least, most := -1, -1
	var few, many engine.Corner
	try := func(dim, start, second int) {
		if start < startLo || start > startHi || second < secondLo || second > secondHi {
			return
		}
		if o.start.isSym && o.start == o.second() && start != second {
			return // one SymInt
		}
		end := second
		if o.exact {
			end += start
		}
		_, n := o.cut(dim, start, end)
		if n < 1 || o.exact && (start < 0 || end > dim) {
			return
		}
		at := func(outer []int) engine.Corner {
			d := slices.Clone(outer)
			d[o.axis] = dim
			return slices.Concat(engine.Corner{{Value: o.x, Dims: d}}, o.start.set(start),
				o.second().set(second))
		}
		if least < 0 || n < least {
			least, few = n, at(r.Min(o.x))
		}
		if n > most {
			most, many = n, at(r.Max(o.x))
		}
	}
	for _, dim := range dims {
		for _, start := range []int{
			startLo, startHi, dim - 1, dim - secondLo, dim - secondHi, secondLo - 1,
			secondHi - 1,
		} {
			for _, second := range []int{secondLo, secondHi, dim, dim - start, start + 1, 1} {
				try(dim, start, second)
			}
		}
	}
	if most < 0 {
		// no live shape is legal; the plan says so
		return r.Ends(args([]engine.ValueID{o.x}, o.start, o.length, o.end)...)
	}
	return []engine.Corner{many, few}
}

// second is the argument beside the start: the length or the end.
func (o *slice) second() Int {
	if o.exact {
		return o.length
	}
	return o.end
}

func abs(n int) int { return max(n, -n) }

func (o *slice) Plan(p *engine.Planner) error {
	dims := p.Dims(o.x)
	dim, start, end := dims[o.axis], o.start.at(p), o.end.at(p)
	if o.exact {
		end = start + o.length.at(p)
		if start < 0 || end <= start || end > dim {
			return p.Errorf("rows %d to %d of dim %d of %v, want at least one row of the %d", start, end,
				o.axis, dims, dim)
		}
	}
	from, n := o.cut(dim, start, end)
	if n < 1 {
		return p.Errorf("rows %d to %d of dim %d of %v leave nothing", start, end, o.axis, dims)
	}
	o.blocks(dims, from, n).plan(p, 0, o.vec)
	var out [maxRank]int
	copy(out[:], dims)
	out[o.axis] = n
	p.SetDims(o.y, out[:len(dims)]...)
	return nil
}

func (o *slice) blocks(dims []int, from, n int) blockCopy {
	inner := product(dims[o.axis+1:])
	return blockCopy{
		blocks: product(dims[:o.axis]), rows: n, width: inner,
		srcStart: from * inner, srcBlock: dims[o.axis] * inner, srcRow: o.step * inner,
		dstBlock: n * inner, dstRow: inner,
	}
}

func (o *slice) Reference(r *Ref) {
	x := r.Tensor(o.x)
	start, end := o.start.in(r), o.end.in(r)
	if o.exact {
		end = start + o.length.in(r)
	}
	from, n := o.cut(x.Dims[o.axis], start, end)
	dims := slices.Clone(x.Dims)
	dims[o.axis] = n
	y := zeros(dims...)
	inner, rows := product(dims[o.axis+1:]), x.Dims[o.axis]
	for i := range y.Data {
		column, row, block := i%inner, i/inner%n, i/inner/n
		y.Data[i] = x.Data[(block*rows+from+row*o.step)*inner+column]
	}
	r.Set(o.y, y)
}
