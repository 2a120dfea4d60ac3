package basic

import (
	"fmt"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Gathers lists the operators that select elements of a tensor by position, independent of their values. An
// operator's kernel, plan, reference and cost are all derived from the positions of the selected elements
// (type picked).
//
// Some related operators are not in this table. cat has a dispatch for each of its parts, and update_cache
// changes State: both write only a part of a tensor. embedding reads the positions from data, and its table
// has a weight format. view does not move elements.
var Gathers = []GatherRow{
	{
		Kind: "expand",
		doc: "Repeats x along dims of size 1, and along new leading dims, up to the given sizes. A size of -1 " +
			"keeps the size of the dim.",
		Args: []kind.Arg{kind.Required("size", kind.IntsType)},
		read: func(c *kind.Call, o *GatherOp) bool {
			o.list, o.wholeRows = c.ArgInts("size"), true
			if n := len(c.MaxDims(o.X)); len(o.list) < n || len(o.list) > kind.MaxRank {
				c.Fail("cannot expand %s to size %v: the tensor has rank %d, so size needs %d to %d entries",
					c.Name(o.X), o.list, n, n, kind.MaxRank)
			}
			return c.Err() == nil
		},
		attrs: func(o *GatherOp) map[string]any { return map[string]any{"size": o.list} },
		pick:  pickExpand,
		Tries: []GatherTry{
			{[]int{1, 3}, []int{1, 3}, kind.Args{"size": []int{5, 3}}},
			{[]int{1, 1, 8}, []int{9, 1, 8}, kind.Args{"size": []int{-1, 4, 8}}},
			{[]int{1, 8}, []int{70, 8}, kind.Args{"size": []int{2, 3, -1, -1}}},
			{[]int{1}, []int{1}, kind.Args{"size": []int{65}}},
		},
	},
	{
		Kind: "flip", doc: "Reverses the order of the elements of x along the given dims.",
		Args: []kind.Arg{kind.Required("dims", kind.IntsType)},
		read: func(c *kind.Call, o *GatherOp) bool {
			o.list, o.wholeRows = slices.Clone(c.ArgInts("dims")), true
			for k, a := range o.list {
				axis, ok := c.Axis(o.X, a)
				if !ok {
					return false
				}
				if slices.Contains(o.list[:k], axis) {
					c.Fail("dim %d of %s is listed twice", axis, c.Name(o.X))
				}
				o.list[k], o.wholeRows = axis, o.wholeRows && axis != len(c.MaxDims(o.X))-1
			}
			return c.Err() == nil
		},
		attrs: func(o *GatherOp) map[string]any { return map[string]any{"dims": o.list} },
		pick: func(o *GatherOp, dims []int, _ [2]int) (picked, error) {
			p := all(dims)
			for _, k := range o.list {
				p.base[k], p.step[k] = dims[k]-1, -1
			}
			return p, nil
		},
		Tries: []GatherTry{
			{[]int{1}, []int{130}, kind.Args{"dims": []int{0}}},
			{[]int{1, 8}, []int{70, 8}, kind.Args{"dims": []int{0}}},
			{[]int{2, 1, 5}, []int{2, 9, 5}, kind.Args{"dims": []int{-1, 1}}},
			{[]int{1, 2, 3, 4}, []int{4, 2, 3, 4}, kind.Args{"dims": []int{0, 2}}},
			{[]int{3, 4}, []int{3, 4}, kind.Args{"dims": []int{}}},
		},
	},
	{
		Kind: "permute", of: []string{"Permute"},
		doc:  "Reorders the dims of x. Dim k of y is dim dims[k] of x.",
		Args: []kind.Arg{kind.Required("dims", kind.IntsType)},
		read: func(c *kind.Call, o *GatherOp) bool {
			order := c.ArgInts("dims")
			seen := make([]bool, len(c.MaxDims(o.X)))
			for _, a := range order {
				axis, ok := c.Axis(o.X, a)
				if !ok {
					return false
				}
				o.list, seen[axis] = append(o.list, axis), true
			}
			if len(order) != len(seen) || len(order) == 0 || slices.Contains(seen, false) {
				c.Fail("%v is not a permutation of the %d dims of %s", order, len(seen), c.Name(o.X))
			}
			o.wholeRows = shape.Last(o.list) == len(order)-1
			return c.Err() == nil
		},
		attrs: func(o *GatherOp) map[string]any { return map[string]any{"dims": o.list} },
		pick: func(o *GatherOp, dims []int, _ [2]int) (picked, error) {
			p := all(dims)
			for k, a := range o.list {
				p.of[k], p.size[k] = a, dims[a]
			}
			return p, nil
		},
	},
	{
		Kind: "select", of: []string{"Select"}, along: true,
		doc:  "y = x[..., index, ...] along a dim. The dim is removed.",
		Args: []kind.Arg{kind.Required("dim", kind.IntType), kind.Required("index", kind.IntType)},
		read: func(c *kind.Call, o *GatherOp) (ok bool) {
			o.Ends[0] = kind.Fixed(c.ArgInt("index"))
			o.Axis, ok = c.Axis(o.X, c.ArgInt("dim"))
			return ok
		},
		attrs: func(o *GatherOp) map[string]any {
			return map[string]any{"dim": o.Axis, "index": o.Ends[0].Fixed}
		},
		corners: selectCorners, pick: pickSelect,
	},
	{
		Kind: "slice", of: []string{"Slice", "SliceRange"},
		doc: "y = x[..., start : end : step, ...] along a dim. Both ends are clamped to the size of the " +
			"dim. If length is given, y = x[..., start : start+length, ...], and the range must be inside the dim.",
		Args: []kind.Arg{
			kind.Optional("dim", kind.IntType, 0),
			kind.Optional("start", kind.SymIntType, kind.Fixed(0)),
			kind.Optional("end", kind.SymIntType, kind.Fixed(ToEnd)),
			kind.Optional("step", kind.IntType, 1),
			kind.Optional("length", kind.SymIntType, NoLength),
		},
		along: true, read: readSlice, attrs: sliceAttrs, corners: sliceCorners, pick: pickSlice,
	},
}

// GatherRow describes an operator that selects elements by position.
type GatherRow struct {
	Kind string
	of   []string // names of the Go constructors
	doc  string
	Args []kind.Arg // arguments other than x
	// along is true if the operator selects along one dim and copies all later dims as a whole.
	along bool
	// read(c, o) stores the arguments of the call in o, and reports whether they fit x.
	read  func(c *kind.Call, o *GatherOp) bool
	attrs func(o *GatherOp) map[string]any
	// pick(o, dims, ends) returns which elements of x become the elements of y. dims are the dims of x, and
	// ends are the values of GatherOp.Ends in the step.
	pick func(o *GatherOp, dims []int, ends [2]int) (picked, error)
	// corners(o, r) returns the corners at which y is largest and smallest. The field is nil if y is largest
	// whenever x is largest, and smallest whenever x is smallest.
	corners func(o *GatherOp, r *graph.Ranges) []graph.Corner
	Tries   []GatherTry // test cases
}

// GatherTry is a test case of an operator: the smallest and the largest dims of x, and the other arguments.
type GatherTry struct {
	Lowest, Highest []int
	Args            kind.Args
}

// picked describes which element of x becomes each element of y. An index i in dim k of y reads dim d = of[k]
// of x at index base[d] + i*step[k].
type picked struct {
	rank int               // rank of y
	size [kind.MaxRank]int // size of each dim of y
	of   [kind.MaxRank]int // for each dim of y, the dim of x that it reads; -1 if y repeats along the dim
	step [kind.MaxRank]int // for each dim of y, the index step in x
	base [kind.MaxRank]int // for each dim of x, the first index
}

// all returns a picked for a tensor with these dims, with all elements in their original order.
func all(dims []int) (p picked) {
	p.rank = copy(p.size[:], dims)
	for k := range p.rank {
		p.of[k], p.step[k] = k, 1
	}
	return p
}

// without(k) returns a copy of p in which y has no dim k.
func (p picked) without(k int) picked {
	for _, list := range []*[kind.MaxRank]int{&p.size, &p.of, &p.step} {
		copy(list[k:], list[k+1:])
	}
	p.rank--
	return p
}

func pickExpand(o *GatherOp, dims []int, _ [2]int) (p picked, err error) {
	p.rank = len(o.list)
	ahead := len(o.list) - len(dims)
	for k, n := range o.list {
		from := k - ahead
		switch {
		case from < 0 && n < 1:
			return p, fmt.Errorf("size of new dim %d is %d, want at least 1", k, n)
		case from < 0:
			p.size[k], p.of[k] = n, -1
		case n == -1 || n == dims[from]:
			p.size[k], p.of[k], p.step[k] = dims[from], from, 1
		case dims[from] == 1 && n > 0:
			p.size[k], p.of[k] = n, -1
		default:
			return p, fmt.Errorf("cannot expand dim %d of dims %v to size %d", from, dims, n)
		}
	}
	return p, nil
}

// Permute adds permute, which reorders the dims of x.
//
//	x      any dims, any 32-bit type
//	order  for each dim of y, the dim of x with the same data
//	y      dims of x in the new order
//
// An invocation copies one element, or 4 if the last dim of x is also the last dim of y.
func Permute(b *graph.Builder, name string, x graph.ValueID, order ...int) graph.ValueID {
	return member("permute").BuildOne(b, name, kind.Args{"x": x, "dims": order})
}

// Select adds select: y = x[..., index, ...] along a dim. The dim is removed from y. A negative index counts
// from the end of the dim: -1 is the last row that the dim has in a step.
//
//	x  any dims, any 32-bit type
//	y  dims of x without the dim `axis`
func Select(b *graph.Builder, name string, x graph.ValueID, axis, index int) graph.ValueID {
	return member("select").BuildOne(b, name, kind.Args{"x": x, "dim": axis, "index": index})
}

// selectCorners returns the largest x, and the smallest x that has enough rows for the index.
func selectCorners(o *GatherOp, r *graph.Ranges) []graph.Corner {
	smallest, index := slices.Clone(r.Min(o.X)), o.Ends[0].Fixed
	need := index + 1
	if index < 0 {
		need = -index
	}
	smallest[o.Axis] = min(max(smallest[o.Axis], need), r.Max(o.X)[o.Axis])
	return []graph.Corner{{}, {{Value: o.X, Dims: smallest}}}
}

func pickSelect(o *GatherOp, dims []int, ends [2]int) (picked, error) {
	row, dim := ends[0], dims[o.Axis]
	if row < 0 {
		row += dim
	}
	if row < 0 || row >= dim {
		return picked{}, fmt.Errorf("index %d is out of range in dim %d of dims %v, want %d to %d", ends[0],
			o.Axis, dims, -dim, dim-1)
	}
	p := all(dims)
	p.base[o.Axis] = row
	return p.without(o.Axis), nil
}

// Slice adds slice: y = x[..., start : start+length, ...] along a dim. If the range is not inside the dim in
// a step, planning this step fails with an error.
//
//	x  any dims, any 32-bit type
//	y  dims of x; the size of the dim `axis` is `length`
//
// An invocation copies 4 elements if the size of the dims after `axis` allows it.
func Slice(b *graph.Builder, name string, x graph.ValueID, axis int, start, length kind.Int) graph.ValueID {
	return member("slice").BuildOne(b, name, kind.Args{"x": x, "dim": axis, "start": start, "length": length})
}

// SliceRange adds slice with the arguments of ExecuTorch's slice_copy: y = x[..., from : to : step, ...]
// along a dim. A negative `from` or `to` counts from the end of the dim. Both are then clamped to the range
// from 0 to the size that the dim has in a step. If `to` is after the end, like ToEnd, it therefore means
// the end.
//
//	x  any dims, any 32-bit type
//	y  dims of x; the size of the dim `axis` is ceil((to - from) / step); an empty range is an error
func SliceRange(b *graph.Builder, name string, x graph.ValueID, axis int, from, to kind.Int,
	step int,
) graph.ValueID {
	return member("slice").BuildOne(b, name, kind.Args{
		"x": x, "dim": axis, "start": from, "end": to,
		"step": step,
	})
}

// ToEnd is a value for the argument `end` of slice. It means the end of the dim, whatever size the dim has.
const ToEnd = 1<<31 - 1

// NoLength is the default value of the argument `length` of slice. It means that the argument `end`
// determines the end of the slice.
var NoLength = kind.Fixed(-1)

func readSlice(c *kind.Call, o *GatherOp) (ok bool) {
	o.Ends, o.Step = [2]kind.Int{c.ArgSym("start"), c.ArgSym("end")}, c.ArgInt("step")
	if length := c.ArgSym("length"); length != NoLength {
		o.Ends[1], o.Exact = length, true
	}
	if o.Step < 1 || o.Exact && o.Step != 1 {
		c.Fail("slice has step %d, want at least 1 (exactly 1 if length is given)", o.Step)
		return false
	}
	o.Axis, ok = c.Axis(o.X, c.ArgInt("dim"))
	return ok
}

func sliceAttrs(o *GatherOp) map[string]any {
	attrs := map[string]any{"dim": o.Axis, "start": o.Ends[0].Attr()}
	if o.Exact {
		attrs["length"] = o.Ends[1].Attr()
	} else {
		attrs["end"], attrs["step"] = o.Ends[1].Attr(), o.Step
	}
	return attrs
}

// Cut returns the first index and the number of indices that a slice selects from a dim of size dim.
func (o *GatherOp) Cut(dim, start, end int) (from, n int) {
	if o.Exact {
		return start, end - start
	}
	from, to := within(start, dim), within(end, dim)
	return from, max(0, shape.DivUp(to-from, o.Step))
}

// within(i, dim) clamps the index i to the range from 0 to dim. A negative index first has dim added to it.
func within(i, dim int) int {
	if i < 0 {
		i += dim
	}
	return min(max(i, 0), dim)
}

// sliceCorners returns the legal corner at which the slice has the most rows, and the legal corner at which
// it has the fewest. At such a corner, each argument is at an end of its range, or it is just large or small
// enough to be legal together with the other arguments. The function tries only such combinations.
func sliceCorners(o *GatherOp, r *graph.Ranges) []graph.Corner {
	dimLo, dimHi := r.Min(o.X)[o.Axis], r.Max(o.X)[o.Axis]
	startLo, startHi := o.Ends[0].Span(r)
	secondLo, secondHi := o.Ends[1].Span(r)
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
		if o.Ends[0].IsSym && o.Ends[0] == o.Ends[1] && start != second {
			return // the arguments start and second are the same SymInt, so different values are impossible
		}
		end := second
		if o.Exact {
			end += start
		}
		_, n := o.Cut(dim, start, end)
		if n < 1 || o.Exact && (start < 0 || end > dim) {
			return
		}
		at := func(outer []int) graph.Corner {
			d := slices.Clone(outer)
			d[o.Axis] = dim
			return slices.Concat(graph.Corner{{Value: o.X, Dims: d}}, o.Ends[0].Set(start),
				o.Ends[1].Set(second))
		}
		if least < 0 || n < least {
			least, few = n, at(r.Min(o.X))
		}
		if n > most {
			most, many = n, at(r.Max(o.X))
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
		// No shape is legal. Planning will report the error.
		return r.Ends(kind.Operands([]graph.ValueID{o.X}, o.Ends[:]...)...)
	}
	return []graph.Corner{many, few}
}

func abs(n int) int { return max(n, -n) }

func pickSlice(o *GatherOp, dims []int, ends [2]int) (picked, error) {
	dim, start, end := dims[o.Axis], ends[0], ends[1]
	if o.Exact {
		end += start
		if start < 0 || end <= start || end > dim {
			return picked{}, fmt.Errorf(
				"slice %d:%d in dim %d of dims %v is empty or out of range, want at least one of the %d rows",
				start, end, o.Axis, dims, dim)
		}
	}
	from, n := o.Cut(dim, start, end)
	if n < 1 {
		return picked{}, fmt.Errorf("slice %d:%d in dim %d of dims %v is empty", start, end, o.Axis, dims)
	}
	p := all(dims)
	p.base[o.Axis], p.size[o.Axis], p.step[o.Axis] = from, n, o.Step
	return p, nil
}

var kindsOfGathers = kind.Each(Gathers, func(r *GatherRow) kind.Kind {
	return kind.Kind{
		Name: r.Kind, Doc: r.doc, Args: append([]kind.Arg{kind.Required("x", kind.WordTensor)},
			r.Args...), Constructors: r.of,
		Add: r.add,
	}
})

func (r *GatherRow) add(c *kind.Call) []graph.ValueID {
	o := &GatherOp{GatherRow: r, X: c.ArgTensor("x"), Vec: 1}
	if !r.read(c, o) {
		return nil
	}
	o.Y = c.Out("", c.DType(o.X))
	if r.along {
		o.Vec = InnerVec(c.Builder, o.X, o.Axis)
		o.NewKernel = CopyKernel(c.Builder, o.Vec)
		return c.AddOp(o, o.Y)
	}
	o.rank = max(len(o.list), len(c.MaxDims(o.X)))
	if o.wholeRows {
		o.Vec = kind.Vec(c.Builder, o.X, -1)
	}
	o.NewKernel = kind.NewKernelAs(c.Builder, r.Kind, "gather",
		shaders.Constants{"Lanes": kind.ThreadLanes, "Vec": o.Vec, "Rank": o.rank})
	return c.AddOp(o, o.Y)
}

// GatherOp is an operator that selects elements of a tensor by position.
type GatherOp struct {
	reference.Moves
	*GatherRow
	X, Y      graph.ValueID
	Axis      int         // dim of X along which the operator selects
	Ends      [2]kind.Int // for select: the index; for slice: start and end, or start and length
	Exact     bool        // Ends are start and length, which must fit; else start and end, which are clamped
	Step      int         // step of a slice
	list      []int       // argument of expand, flip or permute: sizes or dims
	wholeRows bool        // the last dim of Y is the last dim of X, unchanged
	rank      int         // rank of the copied tensor in the kernel, if along is false
	NewKernel *graph.Kernel
	Vec       int
}

func (o *GatherOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: o.Kind, Inputs: kind.Operands([]graph.ValueID{o.X},
			o.Ends[:]...), Outputs: []graph.ValueID{o.Y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.NewKernel, graph.Bind("src", o.X), graph.Bind("dst",
			o.Y))}}, Attrs: o.attrs(o),
	}
}

func (o *GatherOp) Corners(r *graph.Ranges) []graph.Corner {
	if o.corners != nil {
		return o.corners(o, r)
	}
	return r.Ends(o.X)
}

func (o *GatherOp) Plan(p *graph.Planner) error {
	dims := p.Dims(o.X)
	from, err := o.pick(o, dims, [2]int{o.Ends[0].At(p), o.Ends[1].At(p)})
	if err != nil {
		return p.Errorf("%w", err)
	}
	if o.along {
		o.blocks(dims, &from).Plan(p, 0, o.Vec)
	} else {
		o.elements(p, dims, &from)
	}
	p.SetDims(o.Y, from.size[:from.rank]...)
	return nil
}

// blocks returns the BlockCopy that computes y, for an operator that selects along one dim.
func (o *GatherOp) blocks(dims []int, p *picked) BlockCopy {
	inner := shape.Product(dims[o.Axis+1:])
	c := BlockCopy{
		Blocks: shape.Product(dims[:o.Axis]), Rows: 1, Width: inner,
		srcStart: p.base[o.Axis] * inner, srcBlock: dims[o.Axis] * inner, dstBlock: inner,
	}
	if p.rank == len(dims) { // the operator is slice, which keeps the dim; select removes it
		c.Rows, c.srcRow, c.dstRow = p.size[o.Axis], p.step[o.Axis]*inner, inner
		c.dstBlock *= c.Rows
	}
	return c
}

// elements plans the dispatch that computes y with one copy per element.
func (o *GatherOp) elements(p *graph.Planner, dims []int, from *picked) {
	var apart, size, stride [kind.MaxRank]int // apart is the stride of each dim of x, in elements
	start, n := 0, 1
	for k := len(dims) - 1; k >= 0; k-- {
		apart[k] = n
		if start += from.base[k] * n; k == len(dims)-1 {
			n *= dims[k] / o.Vec
		} else {
			n *= dims[k]
		}
	}
	n = 1
	for k := range o.rank {
		if size[k] = from.size[k]; k == o.rank-1 {
			size[k] /= o.Vec
		}
		if a := from.of[k]; a >= 0 {
			stride[k] = int(uint32(from.step[k] * apart[a])) // u32 wraps, so a negative step works
		}
		n *= size[k]
	}
	l := p.Dispatch(0, p.Vectors(n*o.Vec, o.Vec, kind.ThreadLanes))
	l.Params.U32("n", n).U32("start", start)
	kind.PutDims(&l.Params, &sizeNames, size[:o.rank])
	kind.PutDims(&l.Params, &strideNames, stride[:o.rank])
	l.Bytes = 8 * int64(n) * int64(o.Vec)
}

func (o *GatherOp) Reference(r *reference.Ref) {
	x := r.Tensor(o.X)
	from, err := o.pick(o, x.Dims, [2]int{o.Ends[0].In(r), o.Ends[1].In(r)})
	if err != nil {
		panic(err) // planning has already returned an error for such dims
	}
	y := reference.Zeros(from.size[:from.rank]...)
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
	r.Set(o.Y, y)
}

// The names of the params that the kernel has once for each dim.
var sizeNames, strideNames = kind.PerDim("size"), kind.PerDim("stride")
