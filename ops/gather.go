package ops

import (
	"fmt"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/shaders"
)

// gathers are the family of operators that pick elements of a tensor by their place, whatever they hold, a
// row each: kernel, plan, reference and cost follow from where its elements come from (picked).
//
// What writes to a part of a tensor, cat and update_cache, is no member: it has a dispatch for each part, or
// changes State. Nor is embedding, whose places are data and whose table has a format, or view, whose
// elements stay where they are.
var gathers = []gatherRow{
	{
		kind: "expand",
		doc: "x repeated along its dims of 1, and along new dims before its first, to the sizes given; -1 leaves " +
			"a dim as it is.",
		args: []Arg{{"size", intsType, nil}},
		read: func(c *call, o *gather) bool {
			o.list, o.wholeRows = c.ints("size"), true
			if n := len(c.MaxDims(o.x)); len(o.list) < n || len(o.list) > maxRank {
				c.fail("size %v for %s of rank %d, want %d to %d", o.list, c.Name(o.x), n, n, maxRank)
			}
			return c.Err() == nil
		},
		attrs: func(o *gather) map[string]any { return map[string]any{"size": o.list} },
		pick:  pickExpand,
		tries: []gatherTry{
			{[]int{1, 3}, []int{1, 3}, Args{"size": []int{5, 3}}},
			{[]int{1, 1, 8}, []int{9, 1, 8}, Args{"size": []int{-1, 4, 8}}},
			{[]int{1, 8}, []int{70, 8}, Args{"size": []int{2, 3, -1, -1}}},
			{[]int{1}, []int{1}, Args{"size": []int{65}}},
		},
	},
	{
		kind: "flip", doc: "The elements of x in the opposite order along some dims.",
		args: []Arg{{"dims", intsType, nil}},
		read: func(c *call, o *gather) bool {
			o.list, o.wholeRows = slices.Clone(c.ints("dims")), true
			for k, a := range o.list {
				axis, ok := c.axis(o.x, a)
				if !ok {
					return false
				}
				if slices.Contains(o.list[:k], axis) {
					c.fail("dim %d of %s twice", axis, c.Name(o.x))
				}
				o.list[k], o.wholeRows = axis, o.wholeRows && axis != len(c.MaxDims(o.x))-1
			}
			return c.Err() == nil
		},
		attrs: func(o *gather) map[string]any { return map[string]any{"dims": o.list} },
		pick: func(o *gather, dims []int, _ [2]int) (picked, error) {
			p := all(dims)
			for _, k := range o.list {
				p.base[k], p.step[k] = dims[k]-1, -1
			}
			return p, nil
		},
		tries: []gatherTry{
			{[]int{1}, []int{130}, Args{"dims": []int{0}}},
			{[]int{1, 8}, []int{70, 8}, Args{"dims": []int{0}}},
			{[]int{2, 1, 5}, []int{2, 9, 5}, Args{"dims": []int{-1, 1}}},
			{[]int{1, 2, 3, 4}, []int{4, 2, 3, 4}, Args{"dims": []int{0, 2}}},
			{[]int{3, 4}, []int{3, 4}, Args{"dims": []int{}}},
		},
	},
	{
		kind: "permute", of: []string{"Permute"},
		doc:  "The dims of x in another order: for each dim of y the dim of x that it is.",
		args: []Arg{{"dims", intsType, nil}},
		read: func(c *call, o *gather) bool {
			order := c.ints("dims")
			seen := make([]bool, len(c.MaxDims(o.x)))
			for _, a := range order {
				axis, ok := c.axis(o.x, a)
				if !ok {
					return false
				}
				o.list, seen[axis] = append(o.list, axis), true
			}
			if len(order) != len(seen) || len(order) == 0 || slices.Contains(seen, false) {
				c.fail("%v is no order of the %d dims of %s", order, len(seen), c.Name(o.x))
			}
			o.wholeRows = last(o.list) == len(order)-1
			return c.Err() == nil
		},
		attrs: func(o *gather) map[string]any { return map[string]any{"dims": o.list} },
		pick: func(o *gather, dims []int, _ [2]int) (picked, error) {
			p := all(dims)
			for k, a := range o.list {
				p.of[k], p.size[k] = a, dims[a]
			}
			return p, nil
		},
	},
	{
		kind: "select", of: []string{"Select"}, along: true,
		doc:  "y = x[..., index, ...] along a dim, which goes away.",
		args: []Arg{{"dim", intType, nil}, {"index", intType, nil}},
		read: func(c *call, o *gather) (ok bool) {
			o.ends[0] = Fixed(c.int("index"))
			o.axis, ok = c.axis(o.x, c.int("dim"))
			return ok
		},
		attrs: func(o *gather) map[string]any {
			return map[string]any{"dim": o.axis, "index": o.ends[0].fixed}
		},
		corners: selectCorners, pick: pickSelect,
	},
	{
		kind: "slice", of: []string{"Slice", "SliceRange"},
		doc: "y = x[..., start : end : step, ...] along a dim, with both ends brought into it; or, where a " +
			"length is given, x[..., start : start+length, ...], which must be there.",
		args: []Arg{
			{"dim", intType, 0},
			{"start", symIntType, Fixed(0)},
			{"end", symIntType, Fixed(ToEnd)},
			{"step", intType, 1},
			{"length", symIntType, noLength},
		},
		along: true, read: readSlice, attrs: sliceAttrs, corners: sliceCorners, pick: pickSlice,
	},
}

type gatherRow struct {
	kind string
	of   []string // the Go constructors, where there are some
	doc  string
	args []Arg // beside x
	// along: it picks along one dim, and what follows is copied in whole.
	along bool
	// read takes the arguments, and says whether they fit x.
	read  func(c *call, o *gather) bool
	attrs func(o *gather) map[string]any
	// pick says where the elements of y come from; ends are the operator's.
	pick func(o *gather, dims []int, ends [2]int) (picked, error)
	// corners are those at which y is largest and smallest; nil: at the largest x and the smallest.
	corners func(o *gather, r *graph.Ranges) []graph.Corner
	tries   []gatherTry // that the tests make
}

// gatherTry is a try of the tests: the range of x, and arguments.
type gatherTry struct {
	lowest, highest []int
	args            Args
}

// picked is where the elements of y come from: y[i0, i1, ...] is x where its dim of[k] is at base + i_k*step,
// for each dim k of y.
type picked struct {
	rank int          // of y
	size [maxRank]int // of each dim of y
	of   [maxRank]int // the dim of x that it runs along; -1: it repeats
	step [maxRank]int // by which it does
	base [maxRank]int // by dim of x: where that begins
}

// all is every element where it is.
func all(dims []int) (p picked) {
	p.rank = copy(p.size[:], dims)
	for k := range p.rank {
		p.of[k], p.step[k] = k, 1
	}
	return p
}

// without is p with a dim of y less.
func (p picked) without(k int) picked {
	for _, list := range []*[maxRank]int{&p.size, &p.of, &p.step} {
		copy(list[k:], list[k+1:])
	}
	p.rank--
	return p
}

func pickExpand(o *gather, dims []int, _ [2]int) (p picked, err error) {
	p.rank = len(o.list)
	ahead := len(o.list) - len(dims)
	for k, n := range o.list {
		from := k - ahead
		switch {
		case from < 0 && n < 1:
			return p, fmt.Errorf("size %d of new dim %d, want at least 1", n, k)
		case from < 0:
			p.size[k], p.of[k] = n, -1
		case n == -1 || n == dims[from]:
			p.size[k], p.of[k], p.step[k] = dims[from], from, 1
		case dims[from] == 1 && n > 0:
			p.size[k], p.of[k] = n, -1
		default:
			return p, fmt.Errorf("dim %d of %v does not expand to %d", from, dims, n)
		}
	}
	return p, nil
}

// Permute adds permute: the dims of x in another order.
//
//	x      any dims, any 32-bit type
//	order  for each dim of y the dim of x that it is
//	y      dims of x in that order
//
// An invocation gathers an element, or 4 where the last dim stays the last.
func Permute(b *graph.Builder, name string, x graph.ValueID, order ...int) graph.ValueID {
	return KindOf("permute").one(b, name, Args{"x": x, "dims": order})
}

// Select adds select: y = x[..., index, ...] along a dim, which goes away. A negative index counts from the
// end of the live dim: -1 is always the last live row.
//
//	x  any dims, any 32-bit type
//	y  dims of x without dim axis
func Select(b *graph.Builder, name string, x graph.ValueID, axis, index int) graph.ValueID {
	return KindOf("select").one(b, name, Args{"x": x, "dim": axis, "index": index})
}

// selectCorners: the smallest has as many rows as the index needs.
func selectCorners(o *gather, r *graph.Ranges) []graph.Corner {
	smallest, index := slices.Clone(r.Min(o.x)), o.ends[0].fixed
	need := index + 1
	if index < 0 {
		need = -index
	}
	smallest[o.axis] = min(max(smallest[o.axis], need), r.Max(o.x)[o.axis])
	return []graph.Corner{{}, {{Value: o.x, Dims: smallest}}}
}

func pickSelect(o *gather, dims []int, ends [2]int) (picked, error) {
	row, dim := ends[0], dims[o.axis]
	if row < 0 {
		row += dim
	}
	if row < 0 || row >= dim {
		return picked{}, fmt.Errorf("index %d of dim %d of %v, want %d to %d", ends[0], o.axis, dims, -dim,
			dim-1)
	}
	p := all(dims)
	p.base[o.axis] = row
	return p.without(o.axis), nil
}

// Slice adds slice: y = x[..., start : start+length, ...] along a dim. It refuses a start and a length that x
// does not have.
//
//	x  any dims, any 32-bit type
//	y  dims of x with length in place of dim axis
//
// An invocation copies 4 elements where the dims after axis allow it.
func Slice(b *graph.Builder, name string, x graph.ValueID, axis int, start, length Int) graph.ValueID {
	return KindOf("slice").one(b, name, Args{"x": x, "dim": axis, "start": start, "length": length})
}

// SliceRange adds slice as upstream's slice_copy has it: y = x[..., from : to : step, ...] along a dim, where
// a negative end counts from the live dim's end, both are brought into 0 to the live dim, and a to of ToEnd,
// or any other number past the end, means the end.
//
//	x  any dims, any 32-bit type
//	y  dims of x with ceil((to - from) / step) in place of dim axis; nothing left is refused
func SliceRange(b *graph.Builder, name string, x graph.ValueID, axis int, from, to Int,
	step int,
) graph.ValueID {
	return KindOf("slice").one(b, name, Args{"x": x, "dim": axis, "start": from, "end": to, "step": step})
}

// ToEnd is the end of a dim, whatever its live size.
const ToEnd = 1<<31 - 1

// noLength is the length of a slice that goes by its end.
var noLength = Fixed(-1)

func readSlice(c *call, o *gather) (ok bool) {
	o.ends, o.step = [2]Int{c.sym("start"), c.sym("end")}, c.int("step")
	if length := c.sym("length"); length != noLength {
		o.ends[1], o.exact = length, true
	}
	if o.step < 1 || o.exact && o.step != 1 {
		c.fail("slice with step %d, want at least 1, and 1 where a length is given", o.step)
		return false
	}
	o.axis, ok = c.axis(o.x, c.int("dim"))
	return ok
}

func sliceAttrs(o *gather) map[string]any {
	attrs := map[string]any{"dim": o.axis, "start": o.ends[0].attr()}
	if o.exact {
		attrs["length"] = o.ends[1].attr()
	} else {
		attrs["end"], attrs["step"] = o.ends[1].attr(), o.step
	}
	return attrs
}

// cut is the first index and the count of a slice of a dim.
func (o *gather) cut(dim, start, end int) (from, n int) {
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

// sliceCorners are the legal points with the fewest and the most rows among those where the count can turn:
// the ends of each range, and where one bound meets another.
func sliceCorners(o *gather, r *graph.Ranges) []graph.Corner {
	dimLo, dimHi := r.Min(o.x)[o.axis], r.Max(o.x)[o.axis]
	startLo, startHi := o.ends[0].span(r)
	secondLo, secondHi := o.ends[1].span(r)
	dims := []int{dimLo, dimHi}
	for _, n := range []int{startLo, startHi, secondLo, secondHi, startLo + secondLo, secondLo - startLo} {
		for d := -1; d <= 1; d++ {
			dims = append(dims, min(max(abs(n)+d, dimLo), dimHi))
		}
	}
	least, most := -1, -1
	var few, many graph.Corner
	try := func(dim, start, second int) {
		if start < startLo || start > startHi || second < secondLo || second > secondHi {
			return
		}
		if o.ends[0].isSym && o.ends[0] == o.ends[1] && start != second {
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
		at := func(outer []int) graph.Corner {
			d := slices.Clone(outer)
			d[o.axis] = dim
			return slices.Concat(graph.Corner{{Value: o.x, Dims: d}}, o.ends[0].set(start),
				o.ends[1].set(second))
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
		return r.Ends(args([]graph.ValueID{o.x}, o.ends[:]...)...)
	}
	return []graph.Corner{many, few}
}

func abs(n int) int { return max(n, -n) }

func pickSlice(o *gather, dims []int, ends [2]int) (picked, error) {
	dim, start, end := dims[o.axis], ends[0], ends[1]
	if o.exact {
		end += start
		if start < 0 || end <= start || end > dim {
			return picked{}, fmt.Errorf("rows %d to %d of dim %d of %v, want at least one row of the %d",
				start, end, o.axis, dims, dim)
		}
	}
	from, n := o.cut(dim, start, end)
	if n < 1 {
		return picked{}, fmt.Errorf("rows %d to %d of dim %d of %v leave nothing", start, end, o.axis, dims)
	}
	p := all(dims)
	p.base[o.axis], p.size[o.axis], p.step[o.axis] = from, n, o.step
	return p, nil
}

var kindsOfGathers = eachKind(gathers, func(r *gatherRow) Kind {
	return Kind{
		Name: r.kind, Doc: r.doc, Args: append([]Arg{{"x", wordTensor, nil}}, r.args...), Constructors: r.of,
		add: r.add,
	}
})

func (r *gatherRow) add(c *call) []graph.ValueID {
	o := &gather{gatherRow: r, x: c.tensor("x"), vec: 1}
	if !r.read(c, o) {
		return nil
	}
	o.y = c.out("", c.DType(o.x))
	if r.along {
		o.vec = innerVec(c.Builder, o.x, o.axis)
		o.kernel = copyKernel(c.Builder, o.vec)
		return c.adds(o, o.y)
	}
	o.rank = max(len(o.list), len(c.MaxDims(o.x)))
	if o.wholeRows {
		o.vec = vec(c.Builder, o.x, -1)
	}
	o.kernel = kernelAs(c.Builder, r.kind, "gather",
		shaders.Constants{"Lanes": threadLanes, "Vec": o.vec, "Rank": o.rank})
	return c.adds(o, o.y)
}

type gather struct {
	moves
	*gatherRow
	x, y      graph.ValueID
	axis      int    // that it picks along
	ends      [2]Int // select: the index; slice: start and end, or start and length
	exact     bool   // slice: start and length must be there; else start and end are brought into range
	step      int    // of slice
	list      []int  // dims or sizes, one for each of some dims
	wholeRows bool   // the last dim of y is that of x
	rank      int    // of y, where it does not pick along one dim
	kernel    *graph.Kernel
	vec       int
}

func (o *gather) Spec() graph.Spec {
	return graph.Spec{
		Kind: o.kind, Inputs: args([]graph.ValueID{o.x}, o.ends[:]...), Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: one(o.kernel, bind("src", o.x), bind("dst", o.y))}}, Attrs: o.attrs(o),
	}
}

func (o *gather) Corners(r *graph.Ranges) []graph.Corner {
	if o.corners != nil {
		return o.corners(o, r)
	}
	return r.Ends(o.x)
}

func (o *gather) Plan(p *graph.Planner) error {
	dims := p.Dims(o.x)
	from, err := o.pick(o, dims, [2]int{o.ends[0].at(p), o.ends[1].at(p)})
	if err != nil {
		return p.Errorf("%w", err)
	}
	if o.along {
		o.blocks(dims, &from).plan(p, 0, o.vec)
	} else {
		o.elements(p, dims, &from)
	}
	p.SetDims(o.y, from.size[:from.rank]...)
	return nil
}

// blocks is the copy that picks along one dim.
func (o *gather) blocks(dims []int, p *picked) blockCopy {
	inner := product(dims[o.axis+1:])
	c := blockCopy{
		blocks: product(dims[:o.axis]), rows: 1, width: inner,
		srcStart: p.base[o.axis] * inner, srcBlock: dims[o.axis] * inner, dstBlock: inner,
	}
	if p.rank == len(dims) { // it keeps the dim
		c.rows, c.srcRow, c.dstRow = p.size[o.axis], p.step[o.axis]*inner, inner
		c.dstBlock *= c.rows
	}
	return c
}

// elements is the dispatch that picks element by element.
func (o *gather) elements(p *graph.Planner, dims []int, from *picked) {
	var apart, size, stride [maxRank]int // apart: elements from one index of a dim of x to the next
	start, n := 0, 1
	for k := len(dims) - 1; k >= 0; k-- {
		apart[k] = n
		if start += from.base[k] * n; k == len(dims)-1 {
			n *= dims[k] / o.vec
		} else {
			n *= dims[k]
		}
	}
	n = 1
	for k := range o.rank {
		if size[k] = from.size[k]; k == o.rank-1 {
			size[k] /= o.vec
		}
		if a := from.of[k]; a >= 0 {
			stride[k] = int(uint32(from.step[k] * apart[a])) // indices wrap
		}
		n *= size[k]
	}
	l := p.Dispatch(0, p.Vectors(n*o.vec, o.vec, threadLanes))
	l.Params.U32("n", n).U32("start", start)
	putDims(&l.Params, &sizeNames, size[:o.rank])
	putDims(&l.Params, &strideNames, stride[:o.rank])
	l.Bytes = 8 * int64(n) * int64(o.vec)
}

func (o *gather) Reference(r *Ref) {
	x := r.Tensor(o.x)
	from, err := o.pick(o, x.Dims, [2]int{o.ends[0].in(r), o.ends[1].in(r)})
	if err != nil {
		panic(err) // the plan refused these dims
	}
	y := zeros(from.size[:from.rank]...)
	for i := range y.Data {
		at, rest := from.base, i
		for k := from.rank - 1; k >= 0; k-- {
			if a := from.of[k]; a >= 0 {
				at[a] += rest % from.size[k] * from.step[k]
			}
			rest /= from.size[k]
		}
		place := 0
		for k, d := range x.Dims {
			place = place*d + at[k]
		}
		y.Data[i] = x.Data[place]
	}
	r.Set(o.y, y)
}

// The kernel's fields of which there is one for each dim.
var sizeNames, strideNames = perDim("size"), perDim("stride")
