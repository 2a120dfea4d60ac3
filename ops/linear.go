package ops

import (
	"math/bits"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
	"gpuscope/shaders"
)

// Linear adds linear: y = x * w' + bias.
//
//	x     [..., K]
//	w     [N, K], in any of weight.Formats. The kind of the operator is linear for f32, and linear_NAME for
//	      the format NAME
//	bias  [N], constant, or graph.None
//	y     dims of x, with N instead of K
//
// Weights above the device's limit on the size of a binding are split by rows, and each part has its own
// dispatch.
//
// The route depends on the number of rows of x. For one row the route is `gemv`: a lane holds its columns of
// x while it processes up to 16 rows of w. If only the last row of y is ever read, the route `last` does the
// same for the last row of x (fusion rule `last`). The route `gemv_splits` is for a row that attention writes
// as partial results (splits): a lane first computes the weighted sum of the splits in its columns. A row
// that only linears read is stored in the order in which their lanes load it (fusion rules norm, attention
// and spread).
//
// The route for up to 4 rows is batch4, and the route for 5 to 16 rows is batch8. These kernels load the
// weights once for 4 and for 8 rows of x. For more rows the kernels are tiled: a tile has 64 x 64 results, or
// 128 x 64 if there are enough tiles to fill a GPU. If there are few tiles, the columns of x are divided. In
// tile64, four teams of lanes in a workgroup share the columns. If workgroup memory is small or N is large,
// there are only two teams. In split64 and split128 several workgroups share the columns, and another
// dispatch adds up their partial sums. split64 is used for 17 or more rows if two conditions hold: K is at
// least 1,024, and the sum of N over all linears that run in parallel is at most 4,096. If K is not a
// multiple of 8, tiles are used for any number of rows.
func Linear(b *graph.Builder, name string, x graph.ValueID, w weight.Matrix,
	bias graph.ValueID,
) graph.ValueID {
	return kind.First(New(b, w.Format.KindName("linear"), name, kind.Args{"x": x, "weight": w, "bias": bias}))
}

var kindsOfLinear = kind.EachFormat(kind.Kind{
	Name: "linear", Doc: "y = x * weight' + bias, where weight' is the transpose of weight.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("weight", kind.MatrixType), kind.Optional("bias",
			kind.F32Tensor, graph.None),
	},
	Constructors: []string{"Linear"}, Routes: linearRouteNames,
	Add: func(c *kind.Call) []graph.ValueID {
		o := &linear{
			x: c.ArgTensor("x"), w: c.ArgMatrix("weight"), bias: c.ArgTensor("bias"),
			residual: graph.None,
		}
		return []graph.ValueID{o.add(c.Builder, c.OpName)}
	},
})

var linearKinds = kind.Names(kindsOfLinear)

// linear is a matrix product of rows with constant weights in any weight format.
type linear struct {
	x, y graph.ValueID
	w    weight.Matrix
	bias graph.ValueID // or None
	// residual is a tensor that is added to the product, or None. x and residual have the same number of
	// rows. Or one of them has a single row, which is combined with every row of the other.
	residual graph.ValueID
	// gated is set if the linear computes both branches of a gated MLP: w has the rows of gate, followed by
	// the rows of up, and y = act(gate) * up. On some routes the linear's own kernel computes y (see the
	// method `joins`). On all other routes it writes gate and up to the scratch tensor Product, and the
	// kernel `join` computes y from Product.
	gated   *basic.GatedRow
	Product graph.ValueID
	join    *graph.Kernel
	// beside is the total number of weight rows of all linears that read x, or 0 if no other linear reads x.
	// tiled is the same total, but does not include linears that read only the last row of x.
	beside, tiled int
	sums          graph.ValueID // scratch: partial sums, if several workgroups share the columns of x
	sum           *graph.Kernel // the kernel that adds up the partial sums
	// before is the operator that produces x, if it can defer a single row of x. The linear's kernel for one
	// row then computes this row. Otherwise before is nil.
	before leaver
	// spread is set by the fusion rule `spread`, if only linears read y. It is an interleaved row, which
	// replaces y if y has a single row. The kernel for one row then also computes act(gate) * up.
	spread *spreadRow
	// `makes` is set by the fusion rule norm_sum. It is a norm with a residual: its result is the sum of the
	// residual and a normalized row. The linear's kernel for one row computes this sum, and stores it for the
	// other readers of the sum. The field `before` is then the norm of this sum.
	makes *rmsNorm
	made  *spreadRow // interleaved row that replaces the sum (fusion rule spread_sum), or nil
	// next is the norm of y, if the kernel for one row computes the norm's element-wise part. Otherwise next
	// is nil.
	next *rmsNorm
	Last bool // y has only the last row

	parts   []weight.Part
	Routes  kind.Routes
	shapes  []linearShape   // by route
	kernels []*graph.Kernel // by route
}

// leaver is an operator that can defer its output if the output has a single row. The linears that read this
// row then compute it themselves, in their kernels for one row. They compute it from the values that the
// methods `left` and `besides` return.
type leaver interface {
	// left(route) returns the value that a linear's kernel for this route reads instead of x. It returns None
	// if this kernel reads x.
	left(route int) graph.ValueID
	// leavesAll() reports whether the operator always defers an output with a single row, unless the user
	// requests a route that computes it.
	leavesAll() bool
	// besides() returns further bindings that a kernel needs to compute the deferred row, in addition to the
	// value that the method `left` returns.
	besides() []graph.Binding
	// specialize(route, c, chunk) sets the template constants c of a kernel that computes the deferred row.
	// chunk is the number of columns that a lane processes at a time.
	specialize(route int, c shaders.Constants, chunk int)
	// planLeft adds params and costs to a dispatch whose kernel computes the deferred row.
	planLeft(route int, p *graph.Planner, l *graph.Launch)
	// leftRow computes the reference value of the deferred row x, from the values that replace x.
	leftRow(r *reference.Ref, x reference.Tensor) reference.Tensor
	// leftTolerance returns the tolerance that computing the deferred row adds to the linear's result, and
	// the reason for it. This tolerance is relative to the largest element in a row of the result.
	leftTolerance(k int) (row float64, why string)
}

// linearRoute describes a route of a linear.
type linearRoute struct {
	name string
	why  kind.Reason
	// upTo(o) returns the largest number of rows of x for which the route is preferred.
	upTo func(o *linear) int
	// shape(o, limits) returns how the kernel of the route divides the work. If it returns the zero shape,
	// the route is ruled out.
	shape func(o *linear, limits *gpu.Limits) linearShape
}

// linearRoutes are the routes of a linear, ordered from the fewest rows of x to the most.
var linearRoutes = []linearRoute{
	linearGEMV:   {"gemv", kind.OneRow, upTo(1), (*linear).gemv},
	linearSplits: {"gemv_splits", kind.LeftInSplits, upTo(1), (*linear).gemvOfSplits},
	linearLast:   {"last", kind.LastRow, upTo(kind.Always), (*linear).gemvOfLast},
	{"batch4", kind.AtMost4Rows, upTo(4), batch(4, 16)},
	{"batch8", kind.AtMost16Rows, upTo(batchRows), batch(8, 8)},
	linearSplit64: {"split64", kind.AtMost64Rows, upTo(smallTile), splitTiles64},
	{"tile64", kind.FewTiles64, (*linear).tile64Rows, tiles64},
	linearSplit128: {"split128", kind.FewTiles128, (*linear).splitRows, splitTiles128},
	{"tile128", kind.ManyTiles128, upTo(kind.Always), tiles(largeTile, 1)},
}

// Indices of routes in linearRoutes.
const (
	linearGEMV     = 0 // x has one row
	linearSplits   = 1 // x has one row, which attention writes as partial results
	linearLast     = 2 // only the last of several rows is computed
	linearSplit64  = 5 // several workgroups share the columns of x, in tiles of 64 rows
	linearSplit128 = 7 // several workgroups share the columns of x, in tiles of 128 rows
)

// splitRoutes are the routes on which several workgroups share the columns of x.
var splitRoutes = [...]int{linearSplit64, linearSplit128}

// splitRoute(route) reports whether several workgroups share the columns of x on this route.
func splitRoute(route int) bool { return slices.Contains(splitRoutes[:], route) }

func upTo(rows int) func(*linear) int { return func(*linear) int { return rows } }

var linearRouteNames = func() (list []string) {
	for _, r := range linearRoutes {
		list = append(list, r.name)
	}
	return list
}()

// add makes the kernels, adds the operator to the graph and returns y.
func (o *linear) add(b *graph.Builder, name string) graph.ValueID {
	if err := o.w.CheckSize(); err != nil {
		b.Errorf("%s: %w", name, err)
		return graph.None
	}
	if o.bias != graph.None {
		if d := b.MaxDims(o.bias); len(d) != 1 || d[0] != o.w.Rows {
			b.Errorf("%s: bias %s has dims %v, want [%d]", name, b.Name(o.bias), d, o.w.Rows)
			return graph.None
		}
	}
	o.parts = o.w.Declare(b)
	o.plan(b.Limits())
	o.makeKernels(b)
	o.y = b.Tensor(name, graph.F32)
	if o.splits() {
		o.sums = b.Scratch(name+".sums", graph.F32)
	}
	b.Add(name, o)
	return o.y
}

// sumVec returns how many columns one invocation of the kernel `sum` processes.
func (o *linear) sumVec() int {
	if o.w.Rows%4 != 0 {
		return 1
	}
	return 4
}

// cols returns the number of columns of y.
func (o *linear) cols() int {
	if o.gated != nil {
		return o.w.Rows / 2
	}
	return o.w.Rows
}

// joins(route) reports whether the linear's kernel for this route computes y = act(gate) * up itself, so that
// no second dispatch is needed.
func (o *linear) joins(route int) bool { return o.gated != nil && o.shapes[route].batch <= 1 }

// plan sets the routes and the kernel shapes for a device.
func (o *linear) plan(limits *gpu.Limits) {
	o.Routes, o.shapes = make(kind.Routes, len(linearRoutes)), make([]linearShape, len(linearRoutes))
	for i, r := range linearRoutes {
		o.shapes[i] = r.shape(o, limits)
		o.Routes[i] = kind.Route{Name: r.name, Why: r.why, Aside: i == linearSplits}
		// split64 cannot process more than UpTo rows, because it would then need more scratch memory than
		// any other route.
		o.Routes[i].Only = o.shapes[i].batch == 1 || i == linearSplit64
		if o.shapes[i].lanes > 0 {
			o.Routes[i].UpTo = r.upTo(o)
		}
	}
}

func (o *linear) Spec() graph.Spec {
	s := graph.Spec{
		Kind: o.w.Format.KindName("linear"), Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Routes: linearRouteNames, Attrs: map[string]any{"in": o.w.Cols, "out": o.w.Rows},
	}
	if g := o.w.Format.Group; g > 0 {
		s.Attrs["group_size"] = g
	}
	if o.next != nil {
		o.next.declare(&s)
	}
	if o.spread != nil {
		s.Outputs = append(s.Outputs, o.spread.value)
	}
	switch {
	case o.made != nil:
		s.Outputs = append(s.Outputs, o.made.value)
	case o.makes != nil:
		s.Materializes = []graph.ValueID{o.makes.y}
	}
	for i := range o.parts {
		p := &o.parts[i]
		s.Inputs = append(s.Inputs, p.Arrays...)
		slot := graph.Slot{Label: weight.PartLabel(i, len(o.parts)), Uses: make([]graph.Use, len(o.kernels))}
		if o.gated != nil {
			slot.Label = "product"
		}
		for r, k := range o.kernels {
			if k != nil {
				slot.Uses[r] = graph.Use{Kernel: k, Bind: o.bindings(r, p)}
			}
		}
		s.Slots = append(s.Slots, slot)
	}
	for _, v := range []graph.ValueID{o.bias, o.residual} {
		if v != graph.None {
			s.Inputs = append(s.Inputs, v)
		}
	}
	if o.before != nil {
		for r := range o.Routes {
			if o.takesLeft(r) {
				s.Inputs = append(s.Inputs, o.before.left(r))
			}
		}
		for _, b := range o.before.besides() {
			s.Inputs = append(s.Inputs, b.Value)
		}
	}
	if o.splits() {
		slot := graph.Slot{Label: "sums", Uses: make([]graph.Use, len(o.kernels))}
		list := o.added([]graph.Binding{graph.Bind("sums", o.sums)}, o.residual)
		for _, r := range splitRoutes {
			if o.Routes.Has(r) {
				slot.Uses[r] = graph.Use{Kernel: o.sum, Bind: append(list, graph.Bind("y", o.y))}
			}
		}
		s.Slots, s.Scratch = append(s.Slots, slot), []graph.ValueID{o.sums}
	}
	if o.gated != nil {
		slot := graph.Slot{Label: o.gated.Kind, Uses: make([]graph.Use, len(o.kernels))}
		for r := range slot.Uses {
			if !o.joins(r) {
				slot.Uses[r] = graph.Use{
					Kernel: o.join, Bind: []graph.Binding{graph.Bind("x", o.Product), graph.Bind("y", o.y)},
				}
			}
		}
		s.Slots, s.Scratch = append(s.Slots, slot), []graph.ValueID{o.Product}
	}
	return s
}

// bindings returns the bindings of the kernel of a route, for one part of the weights.
func (o *linear) bindings(route int, p *weight.Part) []graph.Binding {
	x, y := o.x, o.y
	var after []graph.Binding
	if o.takesLeft(route) {
		x, after = o.before.left(route), o.before.besides()
	}
	residual := o.residual
	if residual == graph.None {
		residual = x
	}
	switch {
	case o.gated != nil && !o.joins(route):
		y = o.Product
	case o.leaves(route):
		y = o.spread.value
	}
	list := append([]graph.Binding{graph.Bind("x", x)}, o.w.Bindings(p)...)
	if splitRoute(route) {
		return append(list, graph.Bind("sums", o.sums))
	}
	if !o.takesResidual(route) {
		residual = graph.None
	}
	list = o.added(list, residual)
	list = append(append(list, after...), graph.Bind("y", y))
	if o.makesSum(route) {
		made := o.makes.y
		if o.made != nil {
			made = o.made.value
		}
		list = append(list, graph.Bind("made", made))
	}
	if o.doesNext(route) {
		list = append(list, o.next.given()...)
	}
	return list
}

// added(list, residual) appends the bindings of the tensors that are added to the product: bias and
// residual.
func (o *linear) added(list []graph.Binding, residual graph.ValueID) []graph.Binding {
	if o.bias != graph.None {
		list = append(list, graph.Bind("bias", o.bias))
	}
	if residual != graph.None {
		list = append(list, graph.Bind("residual", residual))
	}
	return list
}

// Corners includes the shapes at which each route has its largest grid. For most routes, it is the shape with
// the most rows for which the route is preferred. On split128, more rows mean fewer splits, so there is a
// corner for each number of tiles of rows. If x has a single row in a corner, and the operator that computes
// x can defer it, then x is deferred in this corner. If attention can write partial results (splits), there
// is also a corner in which they replace x.
func (o *linear) Corners(r *graph.Ranges) []graph.Corner {
	args := []graph.ValueID{o.x}
	if o.residual != graph.None {
		args = append(args, o.residual)
	}
	at := func(dims func(graph.ValueID) []int) (c graph.Corner) {
		for _, v := range args {
			c = append(c, graph.At{Value: v, Dims: dims(v)})
		}
		return c
	}
	lowest, highest := r.Min(o.x), r.Max(o.x)
	with := func(x []int) graph.Corner { // the residual gets as many rows as x
		return at(func(v graph.ValueID) []int {
			return append(slices.Clone(x[:len(x)-1]), shape.Last(r.Max(v)))
		})
	}
	corners := []graph.Corner{at(r.Max), at(r.Min)}
	all := shape.Product(highest) / o.w.Cols
	most := o.Routes.Most(all)
	for m := largeTile; m < min(all, o.Routes[linearSplit128].UpTo); m += largeTile {
		most = append(most, m)
	}
	for _, m := range most {
		if dims := rowsAtMost(lowest, highest, m); dims != nil {
			corners = append(corners, with(dims))
		}
	}
	single := rowsAtMost(lowest, highest, 1)
	if o.before == nil || single == nil {
		return corners
	}
	several := func(a graph.At) bool { return rowsIn(a.Dims) > 1 }
	for _, c := range corners {
		c[0].Deferred = !slices.ContainsFunc(c, several)
	}
	if !o.before.leavesAll() {
		corners = append(corners, with(single))
	}
	if o.Routes.Has(linearSplits) {
		left := append(with(single), graph.At{Value: o.before.left(linearGEMV), Deferred: true})
		left[0].Deferred = true
		corners = append(corners, left)
	}
	return corners
}

// rowsAtMost returns the dims between `lowest` and `highest` that have the most rows, but not more than m. It
// returns nil if even `lowest` has more than m rows.
func rowsAtMost(lowest, highest []int, m int) []int {
	if len(lowest) == 0 || m < 1 || shape.Product(lowest[:len(lowest)-1]) > m {
		return nil
	}
	var best []int
	most := 0
	at := append([]int{}, lowest...)
	var search func(axis, rows int)
	search = func(axis, rows int) {
		if axis == len(at)-1 {
			if rows > most {
				best, most = append(best[:0], at...), rows
			}
			return
		}
		rest := shape.Product(lowest[axis+1 : len(at)-1])
		top := min(highest[axis], m/(rows*rest))
		if axis == len(at)-2 || shape.Product(highest[axis+1:len(at)-1]) == rest {
			at[axis] = top // a smaller size would only reduce the rows, because later dims cannot grow enough
			search(axis+1, rows*top)
			return
		}
		for n := lowest[axis]; n <= top; n++ {
			at[axis] = n
			search(axis+1, rows*n)
		}
	}
	search(0, 1)
	return best
}

func (o *linear) Plan(p *graph.Planner) error {
	dims, k, n := p.Dims(o.x), o.w.Cols, o.w.Rows
	if len(dims) == 0 || shape.Last(dims) != k {
		return p.Errorf("x has dims %v, want %d columns because the weights are %d x %d", dims, k, n, k)
	}
	sum, residualRows := dims, 0
	if o.residual != graph.None {
		also, ok := p.Dims(o.residual), false
		if sum, ok = sumDims(dims, also); !ok || shape.Last(also) != n {
			return p.Errorf("x has dims %v and the residual has dims %v. The residual needs as many columns as the output. Both need the same number of rows, or one of them needs a single row",
				dims, also)
		}
		residualRows = rowsIn(also)
	}
	var out [kind.MaxRank]int
	rank := copy(out[:], sum)
	out[rank-1] = o.cols()
	rows, m := rowsIn(dims), rowsIn(sum)
	r, able := o.Routes.Preferred(m), o.readable(p, o.Routes.Allowed(m))
	switch {
	case able == 0:
		return p.Errorf("no allowed kernel can read x with dims %v (x computed inside the kernel: %t)", dims,
			p.Deferred(o.x))
	case able>>r&1 == 0:
		r = bits.TrailingZeros64(able)
	}
	route := o.Routes.Settle(p, r, able, "M", m)
	row := 0 // the row of x and of the residual that belongs to row 0 of y
	if o.Last {
		row, m = toLast(out[:rank]), 1
	}
	o.spread.give(p, o.y, o.leaves(route), out[:rank]...)
	o.made.settle(p, o.makesSum(route))
	s := &o.shapes[route]
	if o.next != nil {
		o.next.give(p, o.doesNext(route))
	}
	for i := range o.parts {
		part := &o.parts[i]
		cols, stride := part.Rows, n
		if o.joins(route) {
			cols, stride = o.cols(), o.cols()
		}
		workgroups, splits := s.grid(p, m, cols, k), 1
		if splitRoute(route) {
			splits = o.splitsOf(route, m)
			workgroups = s.grid(p, m, cols, k, grid.Each("splits", splits))
		}
		l := p.Dispatch(i, workgroups)
		switch {
		case s.batch != 1:
			l.Params.U32("m", m).U32("n", cols).U32("stride", stride).U32("first", part.First)
		case o.knownRows(route) == 0:
			l.Params.U32("n", cols).U32("first", part.First)
		}
		if s.tile > 0 {
			l.Params.U32("k", k)
		}
		if route == linearLast {
			l.Params.U32("x_from", min(row, rows-1)*k/4)
		}
		l.Bytes = part.Bytes + 4*(int64(min(rows, m))*int64(k)+int64(splits*m)*int64(cols))
		l.FLOPs = 2 * int64(m) * int64(k) * int64(part.Rows)
		if splitRoute(route) {
			l.Params.U32("x_rows", rows).U32("splits", splits)
			o.planSums(p, m, splits, residualRows)
			continue
		}
		if o.bias != graph.None {
			l.Bytes += 4 * int64(part.Rows)
		}
		if o.takesResidual(route) {
			if s.batch != 1 {
				l.Params.U32("x_rows", rows)
			}
			if route == linearLast {
				l.Params.U32("residual_from", max(0, min(row, residualRows-1))*n)
			}
			if s.batch != 1 || o.shared(route) {
				l.Params.U32("residual_rows", residualRows)
			}
		}
		if o.residual != graph.None {
			l.Bytes += 4 * int64(min(residualRows, m)) * int64(part.Rows)
			l.FLOPs += int64(m) * int64(part.Rows)
		}
		if o.takesLeft(route) {
			o.before.planLeft(route, p, l)
		}
		if o.makesSum(route) {
			l.Bytes += 4 * int64(k)
		}
		if o.doesNext(route) {
			o.next.addCost(l)
		}
		if o.joins(route) {
			l.FLOPs += int64(o.gated.FLOPs()) * int64(m) * int64(cols)
		}
	}
	if o.gated != nil && !o.joins(route) {
		p.SetDims(o.Product, m, n)
		count := m * o.cols()
		l := p.Dispatch(len(o.parts), p.Vectors(count, 4, kind.ThreadLanes))
		l.Params.U32("n", count/4)
		l.Bytes, l.FLOPs = 12*int64(count), int64(o.gated.FLOPs())*int64(count)
	}
	return nil
}

// planSums plans the dispatch that adds up partial sums. The tensor of partial sums has one dim of size
// splits * rows, instead of two separate dims. With more rows there are fewer splits, so two separate dims
// would never both be at their maximum, and the tensor would be larger than necessary.
func (o *linear) planSums(p *graph.Planner, m, splits, residualRows int) {
	n, vec := o.w.Rows, o.sumVec()
	p.SetDims(o.sums, splits*m, n)
	l := p.Dispatch(len(o.parts), p.Vectors(m*n, vec, kind.ThreadLanes))
	l.Params.U32("n", m*n/vec).U32("width", n/vec).U32("splits", splits)
	terms, read := splits-1, splits*m
	if o.residual != graph.None {
		l.Params.U32("residual_rows", residualRows)
		terms, read = terms+1, read+min(residualRows, m)
	}
	if o.bias != graph.None {
		terms, read = terms+1, read+1
	}
	l.Bytes, l.FLOPs = 4*int64(read+m)*int64(n), int64(terms)*int64(m)*int64(n)
}

// knownRows returns the number of rows of w if it is a constant in a route's kernel, or 0 if it is a param.
// A constant is faster, because a GEMV waits until its params are loaded, and loading fewer params takes
// less time. The number is a param if x has several rows. It is also a param if the weights have several
// parts, because the parts can differ in their number of rows. For gate and up, knownRows returns the number
// of rows of gate, which equals that of up.
func (o *linear) knownRows(route int) int {
	if o.shapes[route].batch != 1 || len(o.parts) > 1 {
		return 0
	}
	return o.cols()
}

// takesResidual(route) reports whether the kernel of this route has a binding for a residual.
func (o *linear) takesResidual(route int) bool {
	return o.residual != graph.None && !splitRoute(route) || o.shared(route)
}

// shared(route) reports whether linears with a residual and linears without one use the same kernel on this
// route. Such a kernel reads a single row of x in plain order. A linear without a residual binds x in place
// of the residual. docs/internals/hacking.md explains the reason under "Kernels that a step uses once".
func (o *linear) shared(route int) bool {
	return o.shapes[route].batch == 1 && o.gated == nil && o.before == nil
}

// takesLeft(route) reports whether the kernel of this route can compute x itself if x is deferred.
func (o *linear) takesLeft(route int) bool {
	return o.before != nil && o.before.left(route) != graph.None
}

// readable returns a bit set of the routes whose kernels can read the inputs of the step: x, or the values
// that replace a deferred x.
func (o *linear) readable(p *graph.Planner, routes uint64) uint64 {
	if o.before == nil {
		return routes
	}
	for r := range o.Routes {
		takes := o.takesLeft(r)
		if takes != p.Deferred(o.x) || takes && p.Deferred(o.before.left(r)) {
			routes &^= 1 << r
		}
	}
	return routes
}

// leaves(route) reports whether the kernel of this route writes an interleaved row instead of y.
func (o *linear) leaves(route int) bool { return o.spread != nil && route == linearGEMV }

// makesSum(route) reports whether the kernel of this route computes and stores a sum (see the field `makes`).
func (o *linear) makesSum(route int) bool { return o.makes != nil && o.takesLeft(route) }

// doesNext(route) reports whether the kernel of this route computes the element-wise part of the norm of y.
func (o *linear) doesNext(route int) bool { return o.next != nil && o.shapes[route].batch == 1 }

func (o *linear) prepares() *rmsNorm { return o.next }
