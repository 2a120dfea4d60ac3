package experts

import (
	"math"
	"math/bits"

	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
	"gpuscope/trace"
)

// LinearExperts adds linear_experts: for each token and each of its chosen experts, y = x * w[expert]' +
// bias[expert].
//
//	x        [1, S, K], the same row for all experts of a token, or [1, S, k, K], a row for each
//	w        [E*N, K], a stack of E matrices [N, K], in any of weight.Formats. N is a multiple of 4, and K
//	         is a multiple of 8. The kind of the operator is linear_experts for f32, and
//	         linear_experts_NAME for the format NAME
//	bias     [E, N], constant, or graph.None
//	experts  [1, S, k], i32: an output of a router, which also writes `sorted`
//	y        [1, S, k, N]
//
// Weights above the device's limit on the size of a binding are split into parts of whole experts, and each
// part has its own dispatch.
//
// On the routes `gemv` (one token) and `pairs` (a few tokens), each pair of a token and an expert is a
// product of one row. The dispatch reads only the matrices of the chosen experts. On the routes tile32,
// tile64 and tile128 each expert processes its pairs in tiles of 32, 64 or 128 rows. The grid is large
// enough for any distribution of the pairs to the experts: `sorted` tells a workgroup which tile it
// processes, and workgroups without a tile return at once.
func LinearExperts(b *graph.Builder, name string, x graph.ValueID, w weight.Matrix, bias graph.ValueID,
	r Routing,
) graph.ValueID {
	for i := range kindsOfLinear {
		if k := &kindsOfLinear[i]; k.Name == w.Format.KindName("linear_experts") {
			return k.BuildOne(b, name, kind.Args{
				"x": x, "weight": w, "bias": bias, "experts": r.Experts, "sorted": r.Sorted,
			})
		}
	}
	b.Errorf("%s: matrix %s has the unknown format %s", b.Scoped(name), w.Name, w.Format.Name)
	return graph.None
}

var kindsOfLinear = kind.EachFormat(kind.Kind{
	Name: "linear_experts",
	Doc:  "y = x * weight[expert]' + bias[expert] for each token and each of its chosen experts; ' means transposed.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("weight", kind.MatrixType),
		kind.Optional("bias", kind.F32Tensor, graph.None), kind.Required("experts", kind.I32Tensor),
		kind.Required("sorted", kind.I32Tensor),
	},
	Constructors: []string{"LinearExperts"}, Routes: routeNames, Add: addLinear,
})

// LinearKinds lists the kinds of matrix products, by name.
var LinearKinds = kind.Names(kindsOfLinear)

func addLinear(c *kind.Call) []graph.ValueID {
	o := &linear{
		x: c.ArgTensor("x"), w: c.ArgMatrix("weight"), bias: c.ArgTensor("bias"),
		experts: c.ArgTensor("experts"), sorted: c.ArgTensor("sorted"),
	}
	x, chosen, sorted := c.MaxDims(o.x), c.MaxDims(o.experts), c.MaxDims(o.sorted)
	switch {
	case len(chosen) != 3 || chosen[0] != 1 || chosen[2] != c.MinDims(o.experts)[2]:
		return c.Fail("experts has dims %v, want [1, S, k] with a fixed k", chosen)
	case len(x) < 3 || len(x) > 4 || x[0] != 1 || x[1] != chosen[1] || len(x) == 4 && x[2] != chosen[2]:
		return c.Fail("x has dims %v and experts has dims %v, want x [1, S, K] or [1, S, k, K], and experts [1, S, k]",
			x, chosen)
	case len(sorted) != 1 || sorted[0] <= chosen[1]*chosen[2]+1:
		return c.Fail("sorted has dims %v, which do not match experts (dims %v); both must be outputs of the same router",
			sorted, chosen)
	}
	o.k, o.eachSlot = chosen[2], len(x) == 4
	o.n = sorted[0] - 1 - chosen[1]*chosen[2]
	if err := o.w.CheckSize(); err != nil {
		return c.Fail("%w", err)
	}
	switch rows := o.w.Rows; {
	case rows%o.n != 0 || rows/o.n%4 != 0 || !o.w.InGroupsOf8():
		return c.Fail("matrix %s has size %d x %d, want the matrices of %d experts, one below the "+
			"other; the number of rows of each must be a multiple of 4, "+
			"and the number of columns a multiple of 8",
			o.w.Name, rows, o.w.Cols, o.n)
	case o.w.Cols != shape.Last(x):
		return c.Fail("x has dims %v, want %d columns as in matrix %s", x, o.w.Cols, o.w.Name)
	case o.bias != graph.None && shape.Product(c.MaxDims(o.bias)) != rows:
		return c.Fail("bias has dims %v, want [%d, %d]", c.MaxDims(o.bias), o.n, rows/o.n)
	}
	o.parts = o.w.DeclareIn(c.Builder, o.w.Rows/o.n)
	o.y = c.Out("", graph.F32)
	o.makeKernels(c.Builder)
	return c.AddOp(o, o.y)
}

// linear multiplies the rows of x by the matrices of the chosen experts.
type linear struct {
	x, y            graph.ValueID
	w               weight.Matrix
	bias            graph.ValueID // a tensor or None
	experts, sorted graph.ValueID
	n, k            int  // number of experts, and of chosen experts for each token
	eachSlot        bool // x has a row for each slot (chosen expert) of a token
	// gated is set by the fusion rule experts_gate_up. The matrix of an expert then has the rows of gate,
	// then those of up, and y = act(gate) * up.
	gated *basic.GatedRow
	// combine is set by the fusion rule experts_combine. If it is set, y is the sum over the experts of a
	// token. The kernels of the routes `gemv` and `pairs` compute this sum. On the other routes, a second
	// dispatch adds up the products, which are in the scratch tensor `products`.
	combine  *combine
	products graph.ValueID
	norm     *Norm // the norm x, if the kernel for one token computes it (fusion rule `norm`), or nil
	// router is set by the fusion rule experts_route. The kernel for one token then chooses the experts
	// itself, and need not wait for this router.
	router *router

	parts   []weight.Part
	routes  kind.Routes
	shapes  []tiling        // by route
	kernels []*graph.Kernel // by route
}

// rows returns the number of rows of the matrix of an expert.
func (o *linear) rows() int { return o.w.Rows / o.n }

// cols returns the number of columns of the result of an expert.
func (o *linear) cols() int {
	if o.gated != nil {
		return o.rows() / 2
	}
	return o.rows()
}

// combines reports whether the kernel of a route adds up the results of the experts.
func (o *linear) combines(route int) bool { return o.combine != nil && o.shapes[route].tile == 0 }

// chooses reports whether the kernel of a route chooses the experts itself.
func (o *linear) chooses(route int) bool { return o.router != nil && route == routeGEMV }

// RowsOf returns a tensor that has as many tokens as y.
func (o *linear) RowsOf() graph.ValueID { return o.x }

// expertsIn returns the first expert of a part of the stack, and the number of experts in the part.
func (o *linear) expertsIn(p *weight.Part) (first, n int) {
	return p.First / o.rows(), p.Rows / o.rows()
}

func (o *linear) Spec() graph.Spec {
	s := graph.Spec{
		Kind: o.w.Format.KindName("linear_experts"), Inputs: []graph.ValueID{o.x, o.experts, o.sorted},
		Outputs: []graph.ValueID{o.y}, Routes: routeNames,
		Attrs: map[string]any{"in": o.w.Cols, "out": o.rows(), "experts": o.n, "k": o.k},
	}
	if g := o.w.Format.Group; g > 0 {
		s.Attrs["group_size"] = g
	}
	if o.bias != graph.None {
		s.Inputs = append(s.Inputs, o.bias)
	}
	for i := range o.parts {
		p := &o.parts[i]
		s.Inputs = append(s.Inputs, p.Arrays...)
		slot := graph.Slot{Label: weight.PartLabel(i, len(o.parts)), Uses: make([]graph.Use, len(o.kernels))}
		for r, k := range o.kernels {
			if k != nil {
				slot.Uses[r] = graph.Use{Kernel: k, Bind: o.bindings(r, p)}
			}
		}
		s.Slots = append(s.Slots, slot)
	}
	if o.norm != nil {
		s.Inputs = append(s.Inputs, o.norm.row(), o.norm.beside().Value)
	}
	if o.router != nil {
		s.Inputs = append(s.Inputs, o.router.logits)
	}
	if c := o.combine; c != nil {
		s.Inputs, s.Scratch = append(s.Inputs, c.weights), []graph.ValueID{o.products}
		if c.residual != graph.None {
			s.Inputs = append(s.Inputs, c.residual)
		}
		if len(o.parts) == 1 {
			s.Slots[0].Label = "product"
		}
		slot := graph.Slot{Label: "combine", Uses: make([]graph.Use, len(o.kernels))}
		for r := range o.kernels {
			if !o.combines(r) {
				slot.Uses[r] = graph.Use{Kernel: c.kernel, Bind: c.bindings(o.products, o.y)}
			}
		}
		s.Slots = append(s.Slots, slot)
	}
	return s
}

// bindings returns the bindings of the kernel of a route, for one part of the weights.
func (o *linear) bindings(route int, p *weight.Part) []graph.Binding {
	x := o.x
	if o.takesNorm(route) {
		x = o.norm.row()
	}
	list := append([]graph.Binding{graph.Bind("x", x)}, o.w.Bindings(p)...)
	if o.bias != graph.None {
		list = append(list, graph.Bind("bias", o.bias))
	}
	switch {
	case o.shapes[route].tile > 0:
		list = append(list, graph.Bind("sorted", o.sorted))
	case o.chooses(route):
		list = append(list, graph.Bind("logits", o.router.logits))
	default:
		list = append(list, graph.Bind("experts", o.experts))
	}
	if o.takesNorm(route) {
		list = append(list, o.norm.beside())
	}
	switch {
	case o.combine == nil:
		return append(list, graph.Bind("y", o.y))
	case !o.combines(route):
		return append(list, graph.Bind("y", o.products))
	}
	list = append(list, graph.Bind("shares", o.combine.weights))
	if o.combine.residual != graph.None {
		list = append(list, graph.Bind("residual", o.combine.residual))
	}
	return append(list, graph.Bind("y", o.y))
}

// Corners includes the largest number of tokens for each route.
func (o *linear) Corners(r *graph.Ranges) []graph.Corner {
	lowest, highest := r.Min(o.experts)[1], r.Max(o.experts)[1]
	corners := []graph.Corner{o.at(r, highest), o.at(r, lowest)}
	for _, tokens := range o.routes.Most(highest) {
		if tokens >= lowest {
			corners = append(corners, o.at(r, tokens))
		}
	}
	return corners
}

// at returns a corner with a number of tokens.
func (o *linear) at(r *graph.Ranges, tokens int) graph.Corner {
	x := append([]int{}, r.Max(o.x)...)
	x[1] = tokens
	corner := graph.Corner{
		{Value: o.x, Dims: x, Deferred: o.norm != nil && tokens == 1},
		{Value: o.experts, Dims: []int{1, tokens, o.k}},
		{Value: o.sorted, Dims: []int{o.n + 1 + tokens*o.k}},
	}
	if o.router != nil {
		corner = append(corner, graph.At{Value: o.router.logits, Dims: []int{1, tokens, o.n}})
	}
	if c := o.combine; c != nil {
		corner = append(corner, graph.At{Value: c.weights, Dims: []int{1, tokens, o.k}})
		if c.residual != graph.None {
			corner = append(corner, graph.At{Value: c.residual, Dims: []int{1, tokens, c.width}})
		}
	}
	return corner
}

func (o *linear) Plan(p *graph.Planner) error {
	x, chosen, sorted := p.Dims(o.x), p.Dims(o.experts), p.Dims(o.sorted)
	if len(x) < 3 || len(chosen) != 3 || x[1] != chosen[1] || chosen[2] != o.k || shape.Last(x) != o.w.Cols ||
		len(sorted) != 1 || sorted[0] != o.n+1+chosen[1]*o.k {
		return p.Errorf("x has dims %v, experts has dims %v and sorted has dims %v, which do not match the matrices of %d experts (%d x %d each)",
			x, chosen, sorted, o.n, o.rows(), o.w.Cols)
	}
	tokens := x[1]
	r, able := o.routes.Preferred(tokens), o.readable(p, o.routes.Allowed(tokens))
	switch {
	case able == 0:
		return p.Errorf("no allowed kernel can read x with dims %v (x computed inside the kernel: %t)", x,
			p.Deferred(o.x))
	case able>>r&1 == 0:
		r = bits.TrailingZeros64(able)
	}
	route := o.routes.Settle(p, r, able, "S", tokens)
	switch c := o.combine; {
	case c == nil:
		p.SetDims(o.y, 1, tokens, o.k, o.cols())
	case c.residual != graph.None && p.Numel(c.residual) != tokens*c.width:
		return p.Errorf("the residual has dims %v, want [1, %d, %d]", p.Dims(c.residual), tokens, c.width)
	default:
		p.SetDims(o.y, 1, tokens, o.cols())
	}
	for i := range o.parts {
		o.dispatch(p, i, route, tokens)
	}
	if o.combine != nil && !o.combines(route) {
		p.SetDims(o.products, tokens*o.k, o.cols())
		o.combine.dispatch(p, len(o.parts), tokens)
	}
	return nil
}

// dispatch plans the dispatch for a part of the weights.
func (o *linear) dispatch(p *graph.Planner, i, route, tokens int) {
	s, part, pairs := &o.shapes[route], &o.parts[i], tokens*o.k
	first, n := o.expertsIn(part)
	var l *graph.Launch
	if s.tile > 0 {
		l = p.Dispatch(i, p.Tiles(s.lanes, grid.Split("cols", o.cols(), s.rows),
			grid.Split("padded pairs", pairs+o.n*(s.tile-1), s.tile)))
		l.Params.U32("n", o.cols())
		if len(o.parts) > 1 {
			l.Params.U32("first", first).U32("experts", n)
		}
		l.Params.U32("k", o.w.Cols)
	} else {
		cols := grid.Split("cols", o.cols(), s.rows)
		if o.combines(route) {
			l = p.Dispatch(i, p.Tiles(s.lanes, cols, grid.Each("tokens", tokens)))
		} else {
			l = p.Dispatch(i, p.Tiles(s.lanes, cols, grid.Each("slots", o.k), grid.Each("tokens", tokens)))
		}
		if route != routeGEMV {
			l.Params.U32("tokens", tokens)
		}
		if len(o.parts) > 1 {
			l.Params.U32("first", first).U32("experts", n)
		}
	}
	// The modelled bytes assume that tokens choose their experts at random.
	used := 1 - math.Pow(1-float64(o.k)/float64(o.n), float64(tokens))
	share := func(n int64) int64 { return n * int64(part.Rows) / int64(o.w.Rows) }
	l.Experts = trace.ExpertTiles{
		Rows: max(1, s.tile), Groups: int64(shape.DivUp(o.cols(), s.rows)), Bytes: part.Bytes / int64(n),
		Active: int64(math.Round(used * float64(n))),
	}
	xRows := tokens
	if o.eachSlot {
		xRows = pairs
	}
	l.Bytes = int64(used*float64(part.Bytes)) + 4*share(int64(xRows)*int64(o.w.Cols))
	l.FLOPs = 2 * share(int64(pairs)*int64(o.w.Cols)*int64(o.rows()))
	if o.bias != graph.None {
		l.Bytes += 4 * share(int64(pairs)*int64(o.rows()))
	}
	if o.combines(route) {
		o.combine.cost(l, tokens)
	} else {
		l.Bytes += 4 * share(int64(pairs)*int64(o.cols()))
	}
	if o.chooses(route) {
		l.Bytes += 4 * int64(o.n)
	}
	if o.takesNorm(route) {
		l.Bytes += 4 * int64(max(o.norm.Sums, o.w.Cols))
		l.FLOPs += 4 * int64(o.w.Cols)
	}
	if o.gated != nil {
		l.FLOPs += int64(o.gated.FLOPs()) * share(int64(pairs)*int64(o.cols()))
	}
}
