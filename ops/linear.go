package ops

import (
	"fmt"
	"math"
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
//	w     [N, K], in any format that Formats has: the kind is linear_NAME, and linear for f32
//	bias  [N], constant, or graph.None
//	y     dims of x with N for K
//
// Weights over the device's limit on a binding are split by rows, a dispatch for each part.
//
// One row of x, and no more, takes a GEMV: a lane holds its columns of x while it goes through up to 16 rows
// of w. So does the last of several where nothing reads the others (fusion rule last), and a row that
// attention leaves in splits (gemv_splits): a lane adds up its columns of these, by what each counts. Where
// linears alone read a row they have it spread, as their lanes load it (fusion rules norm, attention and
// spread). Up to 4, and up to 16, rows take kernels of the same kind that load the weights once for 4 and 8
// rows of x. More rows take tiles: of 64 x 64 results, or of 128 x 64 where those are enough to fill a GPU.
// Where tiles are few the columns of x are shared: in tile64 by four teams of lanes, or two where workgroup
// memory is small or N is large; in split64 and split128 by several workgroups, whose sums another dispatch
// adds up, from 17 rows on where K is 1,024 at least and N, of all products side by side, 4,096 at most.
// Where 8 does not divide K all take tiles.
func Linear(b *graph.Builder, name string, x graph.ValueID, w weight.Matrix,
	bias graph.ValueID,
) graph.ValueID {
	return kind.First(New(b, w.Format.KindName("linear"), name, kind.Args{"x": x, "weight": w, "bias": bias}))
}

var kindsOfLinear = eachFormat(kind.Kind{
	Name: "linear", Doc: "y = x * weight' + bias.",
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

// linear is a matrix product of rows with constant weights, whatever form these have.
type linear struct {
	x, y graph.ValueID
	w    weight.Matrix
	bias graph.ValueID // or None
	// residual is added to the product, with the rows of x or one row that serves all; or None. Where x has
	// one row that row serves all of the residual's.
	residual graph.ValueID
	// gated makes y = act(gate) * up of the product, where w has the rows of gate, then those of up: in the
	// kernel of the product, or of the scratch product (joins). Or nil.
	gated   *gatedRow
	Product graph.ValueID
	join    *graph.Kernel // of product
	// beside are the rows of weights of all products that read x, where others do, too, and tiled of those
	// that take several rows of it; or 0.
	beside, tiled int
	sums          graph.ValueID // scratch of splits of the columns
	sum           *graph.Kernel // that adds them up
	// before gives x, and leaves a single row of it to the kernel for one row; or nil.
	before leaver
	// spread is what is given in place of a single row of y that linears alone read (fusion rule spread),
	// where the kernel for one row joins gate and up; or nil.
	spread *spreadRow
	// makes is the sum of which before is a norm, where the kernel for one row stores it for all that read it
	// besides (fusion rule norm_sum); or nil. made is what it gives in place of that (spread_sum); or nil.
	makes *rmsNorm
	made  *spreadRow
	// next is a norm of y, for which the kernel for one row does what each element takes; or nil.
	next *rmsNorm
	Last bool // y is of the last row alone

	parts   []weight.Part
	Routes  kind.Routes
	shapes  []linearShape   // by route
	kernels []*graph.Kernel // by route
}

// leaver is an operator that leaves a single row to the products that read it: their kernels for one row make
// it of what they read instead.
type leaver interface {
	// left is what the kernel of a route reads in place of x; None where it reads x.
	left(route int) graph.ValueID
	// leavesAll says that a single row is never given as it is, unless routes are asked for.
	leavesAll() bool
	// besides are what such a kernel binds more.
	besides() []graph.Binding
	// specialise sets what the kernel has to know, of which a lane takes so many columns at a time.
	specialise(route int, c shaders.Constants, chunk int)
	// planLeft adds the params to a dispatch of a route, and what it takes.
	planLeft(route int, p *graph.Planner, l *graph.Launch)
	// leftRow is the row x, made of what they read, and leftTolerance how far a product of it may be off for
	// that, as a part of its row's largest, and why.
	leftRow(r *reference.Ref, x reference.Tensor) reference.Tensor
	leftTolerance(k int) (row float64, why string)
}

// linearRoute is a row of linearRoutes.
type linearRoute struct {
	name string
	why  kind.Reason
	// upTo is the number of rows of x up to which it is preferred.
	upTo func(o *linear) int
	// shape is how its kernel divides the work; the zero shape rules it out.
	shape func(o *linear, limits *gpu.Limits) linearShape
}

// linearRoutes are the routes of a matrix product, from the fewest rows of x to the most.
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

// Routes of one row: by itself, which attention leaves in splits, and which is found after others; and those
// on which workgroups share the columns of x.
const (
	linearGEMV     = 0
	linearSplits   = 1
	linearLast     = 2
	linearSplit64  = 5
	linearSplit128 = 7
)

// splitRoutes are the routes on which workgroups share the columns of x.
var splitRoutes = [...]int{linearSplit64, linearSplit128}

// splitRoute says whether a route is one of those.
func splitRoute(route int) bool { return slices.Contains(splitRoutes[:], route) }

func upTo(rows int) func(*linear) int { return func(*linear) int { return rows } }

var linearRouteNames = func() (list []string) {
	for _, r := range linearRoutes {
		list = append(list, r.name)
	}
	return list
}()

// add makes the kernels and puts the operator into the graph.
func (o *linear) add(b *graph.Builder, name string) graph.ValueID {
	if err := o.w.CheckSize(); err != nil {
		b.Errorf("%s: %w", name, err)
		return graph.None
	}
	if o.bias != graph.None {
		if d := b.MaxDims(o.bias); len(d) != 1 || d[0] != o.w.Rows {
			b.Errorf("%s: bias %s is %v, want [%d]", name, b.Name(o.bias), d, o.w.Rows)
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

// makeKernels makes those of the routes that are not ruled out.
func (o *linear) makeKernels(b *graph.Builder) {
	o.kernels = make([]*graph.Kernel, len(o.Routes))
	for r := range o.Routes {
		if o.Routes[r].UpTo > 0 {
			o.kernels[r] = o.NewKernel(b, r)
		}
	}
	if o.gated != nil {
		o.join = o.gated.NewKernel(b, 4, o.cols()/4)
	}
	if o.splits() {
		o.sum = kind.NewKernel(b, "linear_sums", shaders.Constants{
			"Lanes": kind.ThreadLanes, "Vec": o.sumVec(), "Bias": o.bias != graph.None,
			"Residual": o.residual != graph.None,
		})
	}
}

// sumVec is how many columns an invocation adds up of splits.
func (o *linear) sumVec() int {
	if o.w.Rows%4 != 0 {
		return 1
	}
	return 4
}

// cols are those of y.
func (o *linear) cols() int {
	if o.gated != nil {
		return o.w.Rows / 2
	}
	return o.w.Rows
}

// joins says whether the kernel of a route makes y of gate and up, with nothing left to do.
func (o *linear) joins(route int) bool { return o.gated != nil && o.shapes[route].batch <= 1 }

// plan works out the routes for a device.
func (o *linear) plan(limits *gpu.Limits) {
	o.Routes, o.shapes = make(kind.Routes, len(linearRoutes)), make([]linearShape, len(linearRoutes))
	for i, r := range linearRoutes {
		o.shapes[i] = r.shape(o, limits)
		o.Routes[i] = kind.Route{Name: r.name, Why: r.why, Aside: i == linearSplits}
		// More rows than it is for would have split64 take more scratch than any other route.
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
		slot := graph.Slot{Label: o.gated.kind, Uses: make([]graph.Use, len(o.kernels))}
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

// bindings are those of the kernel of a route, for a part of the weights.
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

// added appends the bindings of what is added to a product.
func (o *linear) added(list []graph.Binding, residual graph.ValueID) []graph.Binding {
	if o.bias != graph.None {
		list = append(list, graph.Bind("bias", o.bias))
	}
	if residual != graph.None {
		list = append(list, graph.Bind("residual", residual))
	}
	return list
}

// Corners: each route has its largest grid at the most rows that take it, or that take as many splits. A
// single row of x is left where it can be, and in splits, too, where attention leaves some.
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
	with := func(x []int) graph.Corner { // with as many rows of the residual
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

// rowsAtMost are dims between lowest and highest with as many rows as there can be and at most m; nil where
// there are none.
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
			at[axis] = top // nothing after it can make up for less here
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
		return p.Errorf("x is %v, want %d columns for weights of %d x %d", dims, k, n, k)
	}
	sum, residualRows := dims, 0
	if o.residual != graph.None {
		also, ok := p.Dims(o.residual), false
		if sum, ok = sumDims(dims, also); !ok || shape.Last(also) != n {
			return p.Errorf("x is %v, which does not go with a residual of %v", dims, also)
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
		return p.Errorf("x is %v and left, which no kernel reads so", dims)
	case able>>r&1 == 0:
		r = bits.TrailingZeros64(able)
	}
	route := o.Routes.Settle(p, r, able, "M", m)
	row := 0 // of x and the residual that row 0 of y is of
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
			l.FLOPs += int64(o.gated.act.FLOPs+1) * int64(m) * int64(cols)
		}
	}
	if o.gated != nil && !o.joins(route) {
		p.SetDims(o.Product, m, n)
		count := m * o.cols()
		l := p.Dispatch(len(o.parts), p.Vectors(count, 4, kind.ThreadLanes))
		l.Params.U32("n", count/4)
		l.Bytes, l.FLOPs = 12*int64(count), int64(o.gated.act.FLOPs+1)*int64(count)
	}
	return nil
}

// planSums plans what adds splits up. Their rows are one dim: of more rows there are fewer splits, so that of
// two dims the largest would never meet.
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

// knownRows is how many rows of w, or of gate and of up, the kernel of a route has as a constant: the fewer
// params, the less a GEMV waits for. 0: they are a param, as parts have theirs.
func (o *linear) knownRows(route int) int {
	if o.shapes[route].batch != 1 || len(o.parts) > 1 {
		return 0
	}
	return o.cols()
}

// takesResidual says whether the kernel of a route binds a residual.
func (o *linear) takesResidual(route int) bool {
	return o.residual != graph.None && !splitRoute(route) || o.shared(route)
}

// shared says whether the kernel of a route, for one row of x as it is, serves projections with a residual
// and without, for which x stands in: so they share its code. docs/internals/hacking.md, "Kernels that a step
// uses once".
func (o *linear) shared(route int) bool {
	return o.shapes[route].batch == 1 && o.gated == nil && o.before == nil
}

// takesLeft says whether the kernel of a route does what is left to it of x.
func (o *linear) takesLeft(route int) bool {
	return o.before != nil && o.before.left(route) != graph.None
}

// readable are those of some routes, by bit, of which the kernels read what is given: x, or what is left.
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

// leaves says whether the kernel of a route gives y spread.
func (o *linear) leaves(route int) bool { return o.spread != nil && route == linearGEMV }

// makesSum says whether the kernel of a route stores the sum of which x is a norm.
func (o *linear) makesSum(route int) bool { return o.makes != nil && o.takesLeft(route) }

// doesNext says whether the kernel of a route does what the norm of y takes of each element.
func (o *linear) doesNext(route int) bool { return o.next != nil && o.shapes[route].batch == 1 }

func (o *linear) prepares() *rmsNorm { return o.next }

// gatedBy is by what the kernel of a route joins gate and up, vec elements at a time: its name, none where it
// does not, and its formula.
func (o *linear) gatedBy(route, vec int) (string, shaders.Text) {
	if !o.joins(route) {
		return "", ""
	}
	return o.gated.act.Kind, basic.OfElements(o.gated.act.WGSL, vec)
}

func (o *linear) NewKernel(b *graph.Builder, route int) *graph.Kernel {
	s, name := &o.shapes[route], o.w.Format.KindName("linear")+"_"+o.Routes[route].Name
	c := o.w.Format.AddConstants(b, shaders.Constants{
		"Bias": o.bias != graph.None && !splitRoute(route), "Residual": o.takesResidual(route),
	})
	if s.tile > 0 {
		c["Tile"], c["Teams"], c["Quads"] = s.tile, s.teams, s.quads
		c["Even"], c["Partial"] = o.w.Cols%(4*s.quads*s.teams) == 0, !o.w.InGroupsOf8()
		c["Gated"], c["Expr"] = o.gatedBy(route, 4)
		c["Split"] = splitRoute(route)
		return kind.NewKernelAs(b, name, "linear_tiled", c)
	}
	c["Last"], c["Shared"], c["N"] = route == linearLast, o.shared(route), o.knownRows(route)
	ragged := func(p weight.Part) bool { return p.Rows%s.rows != 0 }
	c["Lanes"], c["Rows"], c["Batch"], c["Eights"] = s.lanes, s.rows, s.batch, s.eights
	c["Spread"], c["Norm"], c["Eps"], c["Given"] = false, false, float32(0), 0
	c["Sum"], c["SpreadStream"], c["LastOfStream"] = 0, false, false
	c["Made"], c["SpreadMade"] = 0, false // by so many workgroups
	if o.makesSum(route) {
		c["Made"], c["SpreadMade"] = min(shape.DivUp(o.cols(), s.rows), o.w.Cols/spreadColumns), o.made != nil
	}
	c["HeadQuads"], c["Run"] = 0, 0
	if o.takesLeft(route) {
		o.before.specialise(route, c, s.chunk())
	}
	c["Next"], c["Leaves"] = 0, 0 // chunks of y
	if o.doesNext(route) {
		c["Next"] = o.cols() / spreadColumns
	}
	if o.leaves(route) {
		c["Leaves"] = o.cols() / spreadColumns
	}
	c["Groups"] = 1
	if g := o.w.Format.Group; g > 0 {
		c["Groups"] = max(1, s.chunk()/g)
	}
	c["Gated"], c["Expr"] = o.gatedBy(route, 1)
	c["Chunks"], c["Ragged"] = o.w.Cols/s.chunk(), slices.ContainsFunc(o.parts, ragged)
	return kind.NewKernelAs(b, name, "linear_gemv", c)
}

func (o *linear) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	xRows, k := x.Rows()
	dims := x.Dims
	var bias, residual reference.Tensor
	if o.bias != graph.None {
		bias = r.Tensor(o.bias)
	}
	if o.residual != graph.None {
		residual = r.Tensor(o.residual)
		dims, _ = sumDims(dims, residual.Dims)
	}
	dims = slices.Clone(dims)
	dims[len(dims)-1] = o.cols()
	from := 0 // the row of x and the residual that row 0 of y is of
	if o.Last {
		from = toLast(dims)
	}
	y := r.Result(o.y, dims...)
	m, _ := y.Rows()
	if o.before != nil && m == 1 && xRows == 1 {
		x = o.before.leftRow(r, x)
		if o.made != nil {
			r.Set(o.made.value, spreadOf(o.makes.rowOfGiven(r)))
		}
	}
	cols := slices.Collect(r.Cols(o.y, o.cols()))
	if o.gated != nil {
		if o.spread != nil && m == 1 {
			cols = spreadCols(r, o.spread.value, o.cols())
			defer func() { r.Set(o.spread.value, spreadOf(y.Data)) }()
		}
		o.joined(r, x, y, cols)
		return
	}
	if o.next != nil && m == 1 {
		cols = o.colsOfNext(r, cols)
		defer o.next.giveReference(r, y)
	}
	for _, p := range o.parts {
		read := o.w.Reader(r, &p)
		reference.InParallel(cols, func(cols []int) {
			w := make([]float64, k)
			for _, col := range cols {
				if col < p.First || col >= p.First+p.Rows {
					continue
				}
				read(col-p.First, w)
				for i := range r.Rows(o.y, m) {
					sum := reference.Dot(x.RowFor(from+i), w)
					if bias.Data != nil {
						sum += bias.Data[col]
					}
					if residual.Data != nil {
						sum += residual.RowFor(from + i)[col]
					}
					y.Row(i)[col] = sum
				}
			}
		})
	}
	r.Set(o.y, y)
}

// colsOfNext are the columns of y that anything of what its kernel for one row gives is made of, where only
// these of y are wanted.
func (o *linear) colsOfNext(r *reference.Ref, cols []int) []int {
	cols = append(cols, spreadCols(r, o.next.weighted, o.w.Rows)...)
	for i := range r.Cols(o.next.squares, o.next.sums()) {
		for col := i * o.next.each; col < min((i+1)*o.next.each, o.w.Rows); col++ {
			cols = append(cols, col)
		}
	}
	slices.Sort(cols)
	return slices.Compact(cols)
}

// joined fills in the columns of y that are wanted.
func (o *linear) joined(r *reference.Ref, x, y reference.Tensor, cols []int) {
	m, n := y.Rows()
	read := o.w.Reader(r, &o.parts[0])
	reference.InParallel(cols, func(cols []int) {
		gate, up := make([]float64, o.w.Cols), make([]float64, o.w.Cols)
		for _, col := range cols {
			read(col, gate)
			read(n+col, up)
			for i := range r.Rows(o.y, m) {
				y.Row(i)[col] = o.gated.act.F(reference.Dot(x.Row(i), gate)) * reference.Dot(x.Row(i), up)
			}
		}
	})
	r.Set(o.y, y)
}

// Tolerance: products of both signs cancel out, so that what a result has lost is not seen in its own size;
// in that of its row it is, unless the row is short and all of it has cancelled out.
func (o *linear) Tolerance(r *reference.Ref, v graph.ValueID) reference.Tolerance {
	if o.made != nil && v == o.made.value {
		return sumTolerance(normTolerance(o.w.Cols), r, v, o.makes.addedTo())
	}
	t := o.productTolerance(r)
	if o.next == nil || v == o.y {
		return t
	}
	return o.next.givenTolerance(r, v, t)
}

// productTolerance is that of y.
func (o *linear) productTolerance(r *reference.Ref) reference.Tolerance {
	t := reference.Tolerance{
		Row: reference.SumRoundings(o.w.Cols) * reference.Rounding, Why: fmt.Sprintf("%d products summed in f32", o.w.Cols),
	}
	if o.w.Format.AsHalves {
		t.Row += 8 * 2 * reference.Rounding
		t.Why += ", of weights that count twice until the zero is taken off"
	}
	if o.before != nil {
		row, why := o.before.leftTolerance(o.w.Cols)
		t.Row += row
		t.Why += why
	}
	if o.gated != nil { // its error is that of one product times the other
		large := o.usual(r)
		t.Abs = (2*t.Row*large + o.gated.act.Error.Abs + o.gated.act.ErrorOfX*large) * large
		t.Rel, t.Row = o.gated.act.Error.Rel+reference.ULPs(1), 0
		t.Why += ", one through " + o.gated.act.Kind + " and times the other"
		return t
	}
	if o.w.Rows < shortRow {
		t.Abs = t.Row * o.usual(r)
	}
	return t
}

// shortRow is how many results are sure to have one among them that has not cancelled out.
const shortRow = 32

// usual is how large a sum of products of random signs gets: |x| |w| / sqrt(k), and few four times of that.
func (o *linear) usual(r *reference.Ref) float64 {
	weights, w := 0.0, make([]float64, o.w.Cols)
	for _, p := range o.parts {
		read := o.w.Reader(r, &p)
		for row := range p.Rows {
			read(row, w)
			weights = max(weights, reference.Length(w))
		}
	}
	return 4 * r.Tensor(o.x).LongestRow() * weights / math.Sqrt(float64(o.w.Cols))
}
