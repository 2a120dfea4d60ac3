package ops

import (
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/shaders"
)

// binaries are the family of operators on two tensors with broadcasting, a row each: kernels, reference,
// cost and tests follow from it.
var binaries = []binaryRow{
	{
		near: oneRounding,
		kind: "add", of: "Add", doc: "y = a + alpha * b", wgsl: "u + params.alpha * v", scaled: true,
		f: func(a, b, alpha float64) float64 { return a + alpha*b },
	},
	{
		near: Tolerance{Rel: ulps(2.5), Why: "WGSL allows a quotient 2.5 ulp"},
		kind: "div", of: "Div", doc: "y = a / b", wgsl: "u / v",
		f: func(a, b, _ float64) float64 { return a / b },
	},
	{
		near: asItIs,
		kind: "maximum", doc: "y = the larger of a and b, NaN where one of them is",
		wgsl: largerWGSL, needs: isNaNWGSL,
		f: func(a, b, _ float64) float64 { return ofNumbers(math.Max, a, b) }, also: besideNaN,
	},
	{
		near: asItIs,
		kind: "minimum", doc: "y = the smaller of a and b, NaN where one of them is",
		wgsl: smallerWGSL, needs: isNaNWGSL,
		f: func(a, b, _ float64) float64 { return ofNumbers(math.Min, a, b) }, also: besideNaN,
	},
	{
		near: oneRounding,
		kind: "mul", of: "Mul", doc: "y = a * b", wgsl: "u * v",
		f: func(a, b, _ float64) float64 { return a * b },
	},
	{
		near: Tolerance{Rel: 1e-4, Why: "WGSL has pow of exp2 and log2, which is off the more the larger the power"},
		kind: "pow", doc: "y = a^b, of an a below 0 for whole b, NaN else", wgsl: "power(u, v)",
		needs: powerWGSL,
		f:     func(a, b, _ float64) float64 { return math.Pow(a, b) }, flops: 8, from: 0.05, to: 4,
		also: [][2]float64{
			{-2, 3},
			{-2, 2},
			{-2, -3},
			{-2, 0.5},
			{-1.5, 0},
			{0, 0},
			{0, 2},
			{1, 30},
			{-1, 7},
			{3, 0},
			{2, -2},
		},
	},
	{
		near: oneRounding,
		kind: "sub", of: "Sub", doc: "y = a - alpha * b", wgsl: "u - params.alpha * v", scaled: true,
		f: func(a, b, alpha float64) float64 { return a - alpha*b },
	},
}

// ofTwo are the rows of all families of operators on two tensors.
var ofTwo = slices.Concat(binaries, compares)

type binaryRow struct {
	kind string
	of   string // the Go constructor, where there is one
	doc  string
	// wgsl is y of u and v, and needs are functions that it calls, as a unaryRow has them.
	wgsl, needs string
	f           func(a, b, alpha float64) float64
	scaled      bool // it has an alpha
	flops       int  // that one takes as a GPU is counted; 0 is 1
	near        Tolerance
	// The tests draw an a between from and to, where these are set, and add the pairs of also.
	from, to float64
	also     [][2]float64
}

// The larger and the smaller of u and v, NaN where one of them is: their sum is one then.
const (
	largerWGSL  = "select(max(u, v), u + v, is_nan(u) | is_nan(v))"
	smallerWGSL = "select(min(u, v), u + v, is_nan(u) | is_nan(v))"
)

var besideNaN = [][2]float64{
	{math.NaN(), 1}, {1, math.NaN()}, {math.NaN(), math.NaN()}, {math.Inf(1), 1}, {1, math.Inf(-1)}, {-1, 1},
}

// ofNumbers is f of two numbers, and NaN where one is none. (For math.Max infinity is larger than NaN.)
func ofNumbers(f func(a, b float64) float64, a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	return f(a, b)
}

// powerWGSL makes powers of what is below 0, which pow of WGSL does not take.
const powerWGSL = `
fn power(u: $T, v: $T) -> $T {
  let upright = pow(abs(u), abs(v)); // of 0 it is 0 everywhere, to a negative power it is not
  let size = select(upright, 1.0 / upright, v < $T(0.0));
  let half = abs(v) * 0.5;
  let whole = v == trunc(v);
  let odd = whole & (half != trunc(half));
  let result = select(size, -size, odd & (u < $T(0.0)));
  let nan = bitcast<f32>(0x7fc00000u | min(params.n, 1u)); // not a constant, which may not be NaN
  let real = select($T(nan), result, whole | (u >= $T(0.0)));
  return select(real, $T(1.0), (v == $T(0.0)) | (u == $T(1.0)));
}
`

// Add adds add: z = x + alpha * y, element by element, with broadcasting: dims are aligned at the last one,
// and an operand whose dim is 1, or not there, is repeated along it.
//
//	x, y  dims that are equal or 1, from the last one back
//	z     the larger of each
//
// Operands of one live shape take the route same, which does no index arithmetic; others take broadcast.
func Add(b *graph.Builder, name string, x, y graph.ValueID, alpha float32) graph.ValueID {
	return KindOf("add").one(b, name, Args{"a": x, "b": y, "alpha": alpha})
}

// Sub adds sub: z = x - alpha * y, with broadcasting and routes as Add has them.
func Sub(b *graph.Builder, name string, x, y graph.ValueID, alpha float32) graph.ValueID {
	return KindOf("sub").one(b, name, Args{"a": x, "b": y, "alpha": alpha})
}

// Mul adds mul: z = x * y, with broadcasting and routes as Add has them.
func Mul(b *graph.Builder, name string, x, y graph.ValueID) graph.ValueID {
	return KindOf("mul").one(b, name, Args{"a": x, "b": y})
}

// Div adds div: z = x / y, with broadcasting and routes as Add has them.
func Div(b *graph.Builder, name string, x, y graph.ValueID) graph.ValueID {
	return KindOf("div").one(b, name, Args{"a": x, "b": y})
}

// The routes of binary operators.
const (
	binarySame = iota
	binaryBroadcast
)

var binaryRoutes = []string{binarySame: "same", binaryBroadcast: "broadcast"}

var kindsOfBinaries = eachKind(ofTwo, func(r *binaryRow) Kind {
	k := Kind{
		Name: r.kind, Doc: r.doc + ", element by element, with broadcasting.",
		Args:         []Arg{{"a", f32Tensor, nil}, {"b", f32Tensor, nil}},
		Constructors: constructors(r.of), Routes: binaryRoutes, add: r.add,
	}
	if r.scaled {
		k.Args = append(k.Args, Arg{"alpha", floatType, 1.0})
	}
	return k
})

func (r *binaryRow) add(c *call) []graph.ValueID {
	a, b := c.tensor("a"), c.tensor("b")
	o := &binaryOp{binaryRow: r, a: a, b: b, y: c.out("", graph.F32), alpha: 1, vec: 1}
	if r.scaled {
		o.alpha = float32(c.float("alpha"))
	}
	o.rank = max(len(c.MaxDims(a)), len(c.MaxDims(b)), 1)
	if last(c.MaxDims(a)) == last(c.MaxDims(b)) {
		o.vec = min(vec(c.Builder, a, -1), vec(c.Builder, b, -1))
	}
	constants := shaders.Constants{
		"Op": r.kind, "Alpha": r.scaled, "Expr": ofElements(r.wgsl, o.vec),
		"Needs": ofElements(r.needs, o.vec), "Lanes": threadLanes, "Vec": o.vec, "Rank": 0,
	}
	o.same = kernelAs(c.Builder, r.kind, "binary", constants)
	constants["Rank"] = o.rank
	o.broadcast = kernelAs(c.Builder, r.kind+"_broadcast", "binary", constants)
	return c.adds(o, o.y)
}

type binaryOp struct {
	*binaryRow
	a, b, y         graph.ValueID
	alpha           float32
	same, broadcast *graph.Kernel
	rank            int // of y, at least 1
	vec             int
}

func (o *binaryOp) Spec() graph.Spec {
	bindings := []graph.Binding{bind("a", o.a), bind("b", o.b), bind("y", o.y)}
	s := graph.Spec{
		Kind: o.kind, Inputs: []graph.ValueID{o.a, o.b}, Outputs: []graph.ValueID{o.y},
		Routes: binaryRoutes,
		Slots: []graph.Slot{{Uses: []graph.Use{
			binarySame:      {Kernel: o.same, Bind: bindings},
			binaryBroadcast: {Kernel: o.broadcast, Bind: bindings},
		}}},
	}
	if o.scaled {
		s.Attrs = map[string]any{"alpha": o.alpha}
	}
	return s
}

// Corners: dim by dim, either both operands have the dim, as large or as small as both can, or one of them
// has 1 and is repeated.
func (o *binaryOp) Corners(r *graph.Ranges) []graph.Corner {
	type choice struct{ a, b [maxRank]int }
	var most, least, repeatA, repeatB choice
	aMin, aMax, bMin, bMax := r.Min(o.a), r.Max(o.a), r.Min(o.b), r.Max(o.b)
	ra, rb := len(aMin), len(bMin)
	for k := range max(ra, rb) { // from the last dim
		alo, ahi, blo, bhi := dimFromEnd(aMin, k), dimFromEnd(aMax, k), dimFromEnd(bMin, k),
			dimFromEnd(bMax, k)
		most.a[k], most.b[k] = widest(alo, ahi, blo, bhi)
		least.a[k], least.b[k] = narrowest(alo, ahi, blo, bhi)
		repeatA.a[k], repeatA.b[k] = most.a[k], most.b[k]
		if alo == 1 {
			repeatA.a[k], repeatA.b[k] = 1, bhi
		}
		repeatB.a[k], repeatB.b[k] = most.a[k], most.b[k]
		if blo == 1 {
			repeatB.a[k], repeatB.b[k] = ahi, 1
		}
	}
	var list []graph.Corner
	for _, c := range []choice{most, least, repeatA, repeatB} {
		corner := graph.Corner{{Value: o.a, Dims: fromEnd(c.a[:ra])}, {Value: o.b, Dims: fromEnd(c.b[:rb])}}
		if o.a == o.b {
			corner = corner[:1]
		}
		list = append(list, corner)
	}
	return list
}

// widest is the pair of dims that broadcasts to the largest one.
func widest(alo, ahi, blo, bhi int) (a, b int) {
	best := 0
	for _, c := range [][2]int{{min(ahi, bhi), min(ahi, bhi)}, {ahi, 1}, {1, bhi}} {
		legal := c[0] >= alo && c[0] <= ahi && c[1] >= blo && c[1] <= bhi
		if n := max(c[0], c[1]); legal && n > best {
			best, a, b = n, c[0], c[1]
		}
	}
	if best == 0 { // no live shape is legal; the plan says so
		return ahi, bhi
	}
	return a, b
}

// narrowest is the pair of dims that broadcasts to the smallest one.
func narrowest(alo, ahi, blo, bhi int) (a, b int) {
	if alo == 1 || blo == 1 || alo == blo {
		return alo, blo
	}
	n := max(alo, blo)
	if n > min(ahi, bhi) {
		return alo, blo
	}
	return n, n
}

// dimFromEnd is dim k counted from the last one; 1 where there is none.
func dimFromEnd(dims []int, k int) int {
	if k >= len(dims) {
		return 1
	}
	return dims[len(dims)-1-k]
}

func fromEnd(dims []int) []int {
	dims = slices.Clone(dims)
	slices.Reverse(dims)
	return dims
}

func (o *binaryOp) Plan(p *graph.Planner) error {
	a, b := p.Dims(o.a), p.Dims(o.b)
	var dims, aStride, bStride [maxRank]int
	n, na, nb := 1, 1, 1
	for k := range o.rank { // from the last dim
		da, db := dimFromEnd(a, k), dimFromEnd(b, k)
		if da != db && da != 1 && db != 1 {
			return p.Errorf("operands %v and %v are not broadcast-compatible: %d and %d", a, b, da, db)
		}
		if k == 0 {
			da, db = divUp(da, o.vec), divUp(db, o.vec)
		}
		at := o.rank - 1 - k
		dims[at] = max(da, db)
		if da != 1 {
			aStride[at] = na
		}
		if db != 1 {
			bStride[at] = nb
		}
		n, na, nb = n*dims[at], na*da, nb*db
	}
	route := binaryBroadcast
	if na == n && nb == n {
		route = binarySame
		route = p.Choose(route, sameShapes, 1<<binarySame|1<<binaryBroadcast)
	} else {
		route = p.Choose(route, broadcastShapes, 1<<binaryBroadcast)
	}
	l := p.Dispatch(0, p.Vectors(n*o.vec, o.vec, threadLanes))
	l.Params.U32("n", n)
	if o.scaled {
		l.Params.F32("alpha", o.alpha)
	}
	if route == binaryBroadcast {
		putDims(&l.Params, &sizeNames, dims[:o.rank])
		putDims(&l.Params, &aStrideNames, aStride[:o.rank])
		putDims(&l.Params, &bStrideNames, bStride[:o.rank])
	}
	l.Bytes, l.FLOPs = 4*int64(o.vec)*int64(n+na+nb), int64(o.vec)*int64(n)*int64(max(1, o.flops))
	if o.scaled && o.alpha != 1 {
		l.FLOPs *= 2
	}
	dims[o.rank-1] *= o.vec
	p.SetDims(o.y, dims[o.rank-max(len(a), len(b)):o.rank]...)
	return nil
}

func (o *binaryOp) Reference(r *Ref) {
	a, b := r.Tensor(o.a), r.Tensor(o.b)
	rank := max(len(a.Dims), len(b.Dims))
	dims := make([]int, rank)
	for k := range dims {
		dims[rank-1-k] = max(dimFromEnd(a.Dims, k), dimFromEnd(b.Dims, k))
	}
	y := r.result(o.y, dims...)
	rows, width := y.rows()
	for row := range r.rows(o.y, rows) {
		for i := row * width; i < (row+1)*width; i++ {
			u, v := a.Data[repeated(a.Dims, dims, i)], b.Data[repeated(b.Dims, dims, i)]
			y.Data[i] = o.f(u, v, float64(o.alpha))
		}
	}
	r.Set(o.y, y)
}

func (o *binaryOp) Tolerance(r *Ref, _ graph.ValueID) Tolerance {
	t := o.near
	if o.alpha != 1 {
		t.Abs += 2 * rounding * math.Abs(float64(o.alpha)) * r.largest(o.b)
		t.Why += " and of the scaled operand"
	}
	return t
}

// repeated is the index in an operand of dims from of element i of a result of dims to.
func repeated(from, to []int, i int) int {
	at, stride := 0, 1
	for k := range to {
		d := dimFromEnd(from, k)
		if d != 1 {
			at += i % dimFromEnd(to, k) * stride
		}
		stride *= d
		i /= dimFromEnd(to, k)
	}
	return at
}

// The strides of the operands in the broadcasting kernel, one for each dim.
var aStrideNames, bStrideNames = perDim("a_stride"), perDim("b_stride")
