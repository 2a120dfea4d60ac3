package basic

import (
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Binaries lists the arithmetic operators on two tensors with broadcasting. Kernels, references, costs and
// tests are all derived from the rows of this table.
var Binaries = []BinaryRow{
	{
		Error: reference.OneRounding,
		Kind:  "add", of: "Add", doc: "y = a + alpha * b", wgsl: "u + params.alpha * v", ints: "u + i32(params.alpha) * v", Scaled: true,
		f: func(a, b, alpha float64) float64 { return a + alpha*b },
	},
	{
		Error: reference.Tolerance{Rel: reference.ULPs(2.5), Why: "WGSL allows an error of 2.5 ulp in division"},
		Kind:  "div", of: "Div", doc: "y = a / b", wgsl: "u / v",
		f: func(a, b, _ float64) float64 { return a / b },
	},
	{
		Error: reference.Exact,
		Kind:  "maximum", doc: "y = the larger of a and b, or NaN if either is NaN",
		wgsl: largerWGSL, ints: "max(u, v)", needs: isNaNWGSL,
		f: func(a, b, _ float64) float64 { return ofNumbers(math.Max, a, b) }, Also: besideNaN,
	},
	{
		Error: reference.Exact,
		Kind:  "minimum", doc: "y = the smaller of a and b, or NaN if either is NaN",
		wgsl: smallerWGSL, ints: "min(u, v)", needs: isNaNWGSL,
		f: func(a, b, _ float64) float64 { return ofNumbers(math.Min, a, b) }, Also: besideNaN,
	},
	{
		Error: reference.OneRounding,
		Kind:  "mul", of: "Mul", doc: "y = a * b", wgsl: "u * v", ints: "u * v",
		f: func(a, b, _ float64) float64 { return a * b },
	},
	{
		Error: reference.Tolerance{Rel: 1e-4, Why: "WGSL allows the same error in pow as in exp2(b log2 a); this error grows with |b log2 a|"},
		Kind:  "pow", doc: "y = a^b, or NaN if a is negative and b is not an integer", wgsl: "power(u, v)",
		needs: powerWGSL,
		f:     func(a, b, _ float64) float64 { return math.Pow(a, b) }, flops: 8, From: 0.05, To: 4,
		Also: [][2]float64{
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
		Error: reference.OneRounding,
		Kind:  "sub", of: "Sub", doc: "y = a - alpha * b", wgsl: "u - params.alpha * v", ints: "u - i32(params.alpha) * v", Scaled: true,
		f: func(a, b, alpha float64) float64 { return a - alpha*b },
	},
}

// BinariesAndCompares lists all operators on two tensors: the arithmetic operators and the comparisons.
var BinariesAndCompares = slices.Concat(Binaries, compares)

// BinaryRow describes an operator on two tensors.
type BinaryRow struct {
	Kind string
	of   string // name of the Go constructor, or empty
	doc  string
	// wgsl is a WGSL expression that computes y from u and v. needs is the WGSL source of the functions that
	// the expression calls. Both use the placeholders that UnaryRow explains.
	wgsl, needs string
	// ints is the expression for operands of i32. It is empty if the operator takes only f32.
	ints string
	// truth is true for comparisons: their result y is 0 or 1, and is f32 even if the operands are i32.
	truth  bool
	f      func(a, b, alpha float64) float64
	Scaled bool // the operator has an argument alpha
	flops  int  // floating-point operations for each element; 0 means 1
	Error  reference.Tolerance
	// Tests draw random values for the operand a, between From and To. If both are 0, tests use a default
	// range. Tests also use the pairs of operands in Also.
	From, To float64
	Also     [][2]float64
}

// The WGSL expressions for the larger and the smaller of u and v. If u or v is NaN, the expressions select u
// + v, which is then NaN.
const (
	largerWGSL  = "select(max(u, v), u + v, is_nan(u) | is_nan(v))"
	smallerWGSL = "select(min(u, v), u + v, is_nan(u) | is_nan(v))"
)

var besideNaN = [][2]float64{
	{math.NaN(), 1}, {1, math.NaN()}, {math.NaN(), math.NaN()}, {math.Inf(1), 1}, {1, math.Inf(-1)}, {-1, 1},
}

// ofNumbers returns f(a, b), or NaN if a or b is NaN. The functions math.Max and math.Min are not enough: for
// NaN and an infinity they can return the infinity.
func ofNumbers(f func(a, b float64) float64, a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	return f(a, b)
}

// powerWGSL is the WGSL source of a power function that also accepts a negative base. WGSL's own pow does not
// accept one.
const powerWGSL = `
fn power(u: $T, v: $T) -> $T {
  // The exponent is abs(v), because devices disagree about 0 to a negative power.
  let positive_power = pow(abs(u), abs(v));
  let magnitude = select(positive_power, 1.0 / positive_power, v < $T(0.0));
  let half = abs(v) * 0.5;
  let whole = v == trunc(v);
  let odd = whole & (half != trunc(half));
  let result = select(magnitude, -magnitude, odd & (u < $T(0.0)));
  // The bits of NaN come from a param, because WGSL does not allow a constant that is NaN.
  let nan = bitcast<f32>(0x7fc00000u | min(params.n, 1u));
  let real = select($T(nan), result, whole | (u >= $T(0.0)));
  return select(real, $T(1.0), (v == $T(0.0)) | (u == $T(1.0)));
}
`

// Add adds add: z = x + alpha * y, element by element, with broadcasting. The dims of the operands are
// aligned at the last dim. An operand is repeated along a dim in which its size is 1, or which it does not
// have.
//
//	x, y  dims that are equal or 1, from the last one back
//	z     the larger of the two sizes in each dim
//
// The operands are both f32 or both i32, and z has their type. Integers wrap. If both operands have the same
// dims in a step, the route is `same`, which needs no index arithmetic. Otherwise the route is `broadcast`.
func Add(b *graph.Builder, name string, x, y graph.ValueID, alpha float32) graph.ValueID {
	return member("add").BuildOne(b, name, kind.Args{"a": x, "b": y, "alpha": alpha})
}

// Sub adds sub: z = x - alpha * y, with the same broadcasting and routes as Add.
func Sub(b *graph.Builder, name string, x, y graph.ValueID, alpha float32) graph.ValueID {
	return member("sub").BuildOne(b, name, kind.Args{"a": x, "b": y, "alpha": alpha})
}

// Mul adds mul: z = x * y, with the same broadcasting and routes as Add.
func Mul(b *graph.Builder, name string, x, y graph.ValueID) graph.ValueID {
	return member("mul").BuildOne(b, name, kind.Args{"a": x, "b": y})
}

// Div adds div: z = x / y, with the same broadcasting and routes as Add.
func Div(b *graph.Builder, name string, x, y graph.ValueID) graph.ValueID {
	return member("div").BuildOne(b, name, kind.Args{"a": x, "b": y})
}

// The routes of binary operators.
const (
	binarySame = iota
	binaryBroadcast
)

var binaryRoutes = []string{binarySame: "same", binaryBroadcast: "broadcast"}

var kindsOfBinaries = kind.Each(BinariesAndCompares, func(r *BinaryRow) kind.Kind {
	k := kind.Kind{
		Name: r.Kind, Doc: r.doc + ", element by element, with broadcasting.",
		Args:         []kind.Arg{kind.Required("a", kind.F32Tensor), kind.Required("b", kind.F32Tensor)},
		Constructors: Constructors(r.of), Routes: binaryRoutes, Add: r.add,
	}
	if r.ints != "" {
		k.Args[0].Type, k.Args[1].Type = kind.NumberTensor, kind.NumberTensor
		k.Doc += " The operands have the same type."
	}
	if r.Scaled {
		k.Args = append(k.Args, kind.Arg{Name: "alpha", Type: kind.FloatType, Default: 1.0})
	}
	return k
})

func (r *BinaryRow) add(c *kind.Call) []graph.ValueID {
	a, b := c.ArgTensor("a"), c.ArgTensor("b")
	if c.DType(a) != c.DType(b) {
		return c.Fail("a is %s and b is %s, want the same type", c.DType(a), c.DType(b))
	}
	o := &BinaryOp{BinaryRow: r, A: a, B: b, Alpha: 1, Vec: 1, ints: c.DType(a) == graph.I32}
	result := c.DType(a)
	if r.truth {
		result = graph.F32
	}
	o.Y = c.Out("", result)
	if r.Scaled {
		o.Alpha = float32(c.ArgFloat("alpha"))
		if o.ints && float64(int32(o.Alpha)) != c.ArgFloat("alpha") {
			return c.Fail("alpha is %v for operands of type i32, want an integer", c.ArgFloat("alpha"))
		}
	}
	o.rank = max(len(c.MaxDims(a)), len(c.MaxDims(b)), 1)
	if shape.Last(c.MaxDims(a)) == shape.Last(c.MaxDims(b)) {
		o.Vec = min(kind.Vec(c.Builder, a, -1), kind.Vec(c.Builder, b, -1))
	}
	constants := shaders.Constants{
		"Op": r.Kind, "Alpha": r.Scaled, "Expr": OfElements(r.wgsl, o.Vec),
		"Needs": OfElements(r.needs, o.Vec), "Lanes": kind.ThreadLanes, "Vec": o.Vec, "Rank": 0,
		"Ints": o.ints, "Truth": o.ints && r.truth,
	}
	name := r.Kind
	if o.ints {
		name += "_i32"
		constants["Expr"], constants["Needs"] = OfElements(r.ints, o.Vec), shaders.Text("")
	}
	o.same = kind.NewKernelAs(c.Builder, name, "binary", constants)
	constants["Rank"] = o.rank
	o.broadcast = kind.NewKernelAs(c.Builder, name+"_broadcast", "binary", constants)
	return c.AddOp(o, o.Y)
}

// BinaryOp is an operator on two tensors with broadcasting.
type BinaryOp struct {
	*BinaryRow
	A, B, Y         graph.ValueID
	Alpha           float32
	same, broadcast *graph.Kernel
	rank            int  // rank of y, at least 1
	ints            bool // the operands are i32
	Vec             int
}

func (o *BinaryOp) Spec() graph.Spec {
	bindings := []graph.Binding{graph.Bind("a", o.A), graph.Bind("b", o.B), graph.Bind("y", o.Y)}
	s := graph.Spec{
		Kind: o.Kind, Inputs: []graph.ValueID{o.A, o.B}, Outputs: []graph.ValueID{o.Y},
		Routes: binaryRoutes,
		Slots: []graph.Slot{{Uses: []graph.Use{
			binarySame:      {Kernel: o.same, Bind: bindings},
			binaryBroadcast: {Kernel: o.broadcast, Bind: bindings},
		}}},
	}
	if o.Scaled {
		s.Attrs = map[string]any{"alpha": o.Alpha}
	}
	return s
}

// Corners returns four corners. In the first corner every dim of the result has its largest size, and in the
// second corner every dim has its smallest size. In the third corner a is repeated, and in the fourth corner
// b is repeated: the repeated operand has size 1 in each dim whose range includes 1.
func (o *BinaryOp) Corners(r *graph.Ranges) []graph.Corner {
	type choice struct{ a, b [kind.MaxRank]int }
	var most, least, repeatA, repeatB choice
	aMin, aMax, bMin, bMax := r.Min(o.A), r.Max(o.A), r.Min(o.B), r.Max(o.B)
	ra, rb := len(aMin), len(bMin)
	for k := range max(ra, rb) { // k counts dims from the last dim
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
		corner := graph.Corner{{Value: o.A, Dims: fromEnd(c.a[:ra])}, {Value: o.B, Dims: fromEnd(c.b[:rb])}}
		if o.A == o.B {
			corner = corner[:1]
		}
		list = append(list, corner)
	}
	return list
}

// widest chooses the sizes of one dim of the two operands, a and b, such that broadcasting produces the
// largest possible dim. `a` is in the range from alo to ahi, and b is in the range from blo to bhi.
func widest(alo, ahi, blo, bhi int) (a, b int) {
	best := 0
	for _, c := range [][2]int{{min(ahi, bhi), min(ahi, bhi)}, {ahi, 1}, {1, bhi}} {
		legal := c[0] >= alo && c[0] <= ahi && c[1] >= blo && c[1] <= bhi
		if n := max(c[0], c[1]); legal && n > best {
			best, a, b = n, c[0], c[1]
		}
	}
	if best == 0 { // no shape is legal; planning will report the error
		return ahi, bhi
	}
	return a, b
}

// narrowest is like widest, but broadcasting then produces the smallest possible dim.
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

// dimFromEnd returns the size of dim k, counted from the last dim. It returns 1 if there is no such dim.
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

func (o *BinaryOp) Plan(p *graph.Planner) error {
	a, b := p.Dims(o.A), p.Dims(o.B)
	var dims, aStride, bStride [kind.MaxRank]int
	n, na, nb := 1, 1, 1
	for k := range o.rank { // k counts dims from the last dim
		da, db := dimFromEnd(a, k), dimFromEnd(b, k)
		if da != db && da != 1 && db != 1 {
			return p.Errorf("cannot broadcast operands %v and %v: sizes %d and %d differ", a, b, da, db)
		}
		if k == 0 {
			da, db = shape.DivUp(da, o.Vec), shape.DivUp(db, o.Vec)
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
		route = p.Choose(route, kind.SameShapes, 1<<binarySame|1<<binaryBroadcast)
	} else {
		route = p.Choose(route, kind.BroadcastShapes, 1<<binaryBroadcast)
	}
	l := p.Dispatch(0, p.Vectors(n*o.Vec, o.Vec, kind.ThreadLanes))
	l.Params.U32("n", n)
	if o.Scaled {
		if o.ints {
			l.Params.U32("alpha", int(uint32(int32(o.Alpha))))
		} else {
			l.Params.F32("alpha", o.Alpha)
		}
	}
	if route == binaryBroadcast {
		kind.PutDims(&l.Params, &sizeNames, dims[:o.rank])
		kind.PutDims(&l.Params, &aStrideNames, aStride[:o.rank])
		kind.PutDims(&l.Params, &bStrideNames, bStride[:o.rank])
	}
	l.Bytes, l.FLOPs = 4*int64(o.Vec)*int64(n+na+nb), int64(o.Vec)*int64(n)*int64(max(1, o.flops))
	if o.Scaled && o.Alpha != 1 {
		l.FLOPs *= 2
	}
	dims[o.rank-1] *= o.Vec
	p.SetDims(o.Y, dims[o.rank-max(len(a), len(b)):o.rank]...)
	return nil
}

func (o *BinaryOp) Reference(r *reference.Ref) {
	a, b := r.Tensor(o.A), r.Tensor(o.B)
	rank := max(len(a.Dims), len(b.Dims))
	dims := make([]int, rank)
	for k := range dims {
		dims[rank-1-k] = max(dimFromEnd(a.Dims, k), dimFromEnd(b.Dims, k))
	}
	y := r.Result(o.Y, dims...)
	rows, width := y.Rows()
	for row := range r.Rows(o.Y, rows) {
		for i := row * width; i < (row+1)*width; i++ {
			u, v := a.Data[repeated(a.Dims, dims, i)], b.Data[repeated(b.Dims, dims, i)]
			if y.Data[i] = o.f(u, v, float64(o.Alpha)); o.ints {
				y.Data[i] = float64(int32(int64(y.Data[i]))) // integers wrap
			}
		}
	}
	r.Set(o.Y, y)
}

func (o *BinaryOp) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	if o.ints {
		return reference.Exact
	}
	t := o.Error
	if o.Alpha != 1 {
		t.Abs += 2 * reference.Rounding * math.Abs(float64(o.Alpha)) * r.Largest(o.B)
		t.Why += ", and another rounding of alpha * b"
	}
	return t
}

// repeated is for broadcasting. It returns the index of the element of an operand from which element i of the
// result is computed. `from` holds the dims of the operand, and `to` holds the dims of the result.
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
var aStrideNames, bStrideNames = kind.PerDim("a_stride"), kind.PerDim("b_stride")
