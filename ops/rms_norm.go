package ops

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// RMSNorm adds rms_norm: y = x / sqrt(mean(x^2) + eps) * weight over the last dim.
//
//	x      [..., D]
//	weight [D], constant
//	y      dims of x
//
// One workgroup computes each row. Each lane adds up the squares of some of the elements; if D is a multiple
// of 4, it loads 4 elements at a time. The lanes then combine their sums in workgroup memory. Source: Zhang
// and Sennrich, Root Mean Square Layer Normalization (2019), equation 4.
func RMSNorm(b *graph.Builder, name string, x, weight graph.ValueID, eps float32) graph.ValueID {
	return kindRMSNorm.BuildOne(b, name, kind.Args{"x": x, "weight": weight, "eps": eps})
}

var kindRMSNorm = kind.Kind{
	Name: "rms_norm", Doc: "y = x / sqrt(mean(x^2) + eps) * weight over the last dim.",
	Args:         []kind.Arg{kind.Required("x", kind.F32Tensor), kind.Required("weight", kind.F32Tensor), kind.Required("eps", kind.FloatType)},
	Constructors: []string{"RMSNorm"}, Routes: rmsNormRouteNames, Add: addRMSNorm,
}

// rmsNormRouteNames are the names of the routes of a norm. On the route `folded` the norm has no dispatch,
// because its readers compute it (fuseNorm, fuseNormAttention). On the route `row`, the norm's dispatch also
// computes the element-wise part of the next norm (fuseNorm).
var rmsNormRouteNames = []string{normFolded: "folded", normRow: "row", normRows: "rows"}

const (
	normFolded = iota
	normRow
	normRows
)

func addRMSNorm(c *kind.Call) []graph.ValueID {
	x := c.ArgTensor("x")
	o := &rmsNorm{
		x: x, weight: c.ArgTensor("weight"), y: c.Out("", graph.F32),
		eps: float32(c.ArgFloat("eps")),
	}
	o.weighted, o.squares, o.residual = graph.None, graph.None, graph.None
	o.Vec = kind.Vec(c.Builder, x, -1)
	o.lanes = kind.LanesFor(c.Builder, shape.Last(c.MaxDims(x))/o.Vec)
	o.makeKernel(c.Builder)
	return c.AddOp(o, o.y)
}

type rmsNorm struct {
	x, weight, y   graph.ValueID
	eps            float32
	NewKernel, row *graph.Kernel
	lanes, Vec     int
	next           *rmsNorm // norm whose element-wise part the kernel for one row computes, or nil
	// folds is the largest number of rows for which the norm has no dispatch, because its readers compute it.
	// If the readers are linears (fusion rule `norm`), folds is 1. If the reader is attention, which computes
	// the norm for one token (rule norm_attention), folds is the number of heads. If the norm always has a
	// dispatch, folds is 0.
	folds int
	// If the operator that computes x also computes the element-wise part of the norm for a single row,
	// `weighted` and `squares` hold this part (fusion rule `norm`). Otherwise they are None. The tensor
	// `weighted` is the row multiplied by the norm's weights, in interleaved order. The tensor `squares` has
	// sums of squares of the row, one for every `each` elements.
	weighted, squares graph.ValueID
	width, each       int // number of elements of a row, and of each sum in `squares`
	// The fusion rule norm_sum sets `sum` if, for a single row, the readers of this norm compute both the
	// norm and its input x. `sum` is then the operator that computes x: a norm with a residual.
	sum          *rmsNorm
	spreadWeight graph.ValueID // interleaved copy of weight, which the kernels that compute `sum` read
	// residual is a tensor that is added to the norm (fusion rule norm_add), or None. x and residual have the
	// same number of rows. Or one of them has a single row, which is combined with every row of the other.
	residual graph.ValueID
	stream   *spreadRow // interleaved row that replaces residual (fusion rule spread_sum), or nil
	Last     bool       // y has only the last row of a norm with a residual (fusion rule `last`)
	// other is a second norm with the same width, which the same dispatch computes (fusion rule qk_norm), or
	// nil.
	other *rmsNorm
}

func (o *rmsNorm) makeKernel(b *graph.Builder) {
	c := shaders.Constants{
		"Lanes": o.lanes, "Vec": o.Vec, "Both": o.other != nil, "Residual": o.residual != graph.None,
		"Each": 0,
	}
	o.NewKernel = kind.NewKernel(b, "rms_norm", c)
	if o.next != nil {
		c["Each"] = o.next.each
		o.row = kind.NewKernelAs(b, "rms_norm_row", "rms_norm", c)
	}
}

func (o *rmsNorm) prepares() *rmsNorm { return o.next }

// norms() returns the one norm or the two norms that the operator computes, in the order of their rows.
func (o *rmsNorm) norms() []*rmsNorm {
	if o.other == nil {
		return []*rmsNorm{o}
	}
	return []*rmsNorm{o, o.other}
}

func (o *rmsNorm) Spec() graph.Spec {
	s := graph.Spec{Kind: "rms_norm", Routes: rmsNormRouteNames, Attrs: map[string]any{"eps": o.eps}}
	use := graph.Use{Kernel: o.NewKernel}
	names := [][3]string{{"x", "weight", "y"}, {"other", "other_weight", "other_y"}}
	for i, n := range o.norms() {
		s.Inputs, s.Outputs = append(s.Inputs, n.x, n.weight), append(s.Outputs, n.y)
		x, weight, y := graph.Bind(names[i][0], n.x), graph.Bind(names[i][1],
			n.weight), graph.Bind(names[i][2], n.y)
		use.Bind = append(use.Bind, x, weight, y)
	}
	if o.residual != graph.None {
		s.Inputs, use.Bind = append(s.Inputs, o.residual), append(use.Bind, graph.Bind("residual",
			o.residual))
	}
	if o.stream != nil {
		s.Inputs = append(s.Inputs, o.stream.value)
	}
	uses := []graph.Use{normRows: use}
	if o.next != nil {
		o.next.declare(&s)
		uses[normRow] = graph.Use{Kernel: o.row, Bind: append(slices.Clip(use.Bind), o.next.given()...)}
	}
	s.Slots = []graph.Slot{{Uses: uses}}
	return s
}

func (o *rmsNorm) Corners(r *graph.Ranges) []graph.Corner {
	var list []graph.ValueID
	for _, n := range o.norms() {
		list = append(list, n.x)
	}
	if o.residual != graph.None {
		list = append(list, o.residual)
	}
	return r.Ends(list...)
}

func (o *rmsNorm) Plan(p *graph.Planner) error {
	norms, width, n := o.norms(), p.Dim(o.x, -1), 0
	for _, norm := range norms {
		x := p.Dims(norm.x)
		if w := p.Dims(norm.weight); len(w) != 1 || w[0] != shape.Last(x) || w[0] != width {
			return p.Errorf("weight has dims %v, want [%d] because x has dims %v", w, shape.Last(x), x)
		}
		n += p.Numel(norm.x)
	}
	if o.residual != graph.None {
		return o.planSum(p, n/width, width)
	}
	if o.choose(p, n/width) == normFolded {
		for _, norm := range norms {
			p.Defer(norm.y, p.Dims(norm.x)...)
		}
		return nil
	}
	for _, norm := range norms {
		p.SetDims(norm.y, p.Dims(norm.x)...)
	}
	l := p.Dispatch(0, p.Rows(o.lanes, width/o.Vec, grid.RowsOf(n, width)))
	l.Params.U32("rows", n/width).U32("width", width).F32("eps", o.eps)
	if o.other != nil {
		l.Params.U32("first", p.Numel(o.x))
	}
	l.Bytes = 4 * int64(2*n+len(norms)*width)
	l.FLOPs = 4 * int64(n)
	return nil
}

// choose(p, rows) sets the route of the plan for a number of rows, and returns the route.
func (o *rmsNorm) choose(p *graph.Planner, rows int) int {
	table := [...]kind.Route{
		normFolded: {Name: "folded", UpTo: o.folds, Why: kind.OneRow, Only: true},
		normRow:    {Name: "row", Why: kind.OneRow, Only: true},
		normRows:   {Name: "rows", Why: kind.ManyRows, UpTo: kind.Always},
	}
	if o.next != nil {
		table[normRow].UpTo = 1
	}
	return kind.Routes(table[:]).Choose(p, "M", rows)
}

// planSum plans a norm with a residual.
func (o *rmsNorm) planSum(p *graph.Planner, rows, width int) error {
	also := p.Dims(o.residual)
	dims, ok := sumDims(p.Dims(o.x), also)
	if !ok || shape.Last(also) != width {
		return p.Errorf("x has dims %v and the residual has dims %v, want the same dims in both, or a single row in one", p.Dims(o.x),
			also)
	}
	residualRows, m := rowsIn(also), rowsIn(dims)
	var out [kind.MaxRank]int
	rank, skip := copy(out[:], dims), 0
	if o.Last {
		skip, m = toLast(out[:rank]), 1
	}
	route := o.choose(p, m)
	if route == normFolded {
		p.Defer(o.y, out[:rank]...)
		return nil
	}
	p.SetDims(o.y, out[:rank]...)
	gives := route == normRow
	l := p.Dispatch(0, p.Rows(o.lanes, width/o.Vec, grid.RowsOf(m*width, width)))
	l.Params.U32("rows", m).U32("width", width).F32("eps", o.eps).U32("skip", skip).U32("x_rows", rows).
		U32("residual_rows", residualRows)
	l.Bytes = 4 * int64(width) * int64(m+min(rows, m)+min(residualRows, m)+1)
	l.FLOPs = 5 * int64(m) * int64(width)
	if o.next != nil {
		o.next.give(p, gives)
		if gives {
			o.next.addCost(l)
		}
	}
	return nil
}

// prepared() reports whether the operator that computes x also computes the element-wise part of the norm.
func (o *rmsNorm) prepared() bool { return o.squares != graph.None }

func (o *rmsNorm) left(route int) graph.ValueID {
	switch {
	case route != linearGEMV:
		return graph.None
	case o.sum != nil:
		return o.sum.weighted
	case o.prepared():
		return o.weighted
	}
	return o.x
}

func (o *rmsNorm) leavesAll() bool { return true }

func (o *rmsNorm) besides() []graph.Binding {
	if s := o.sum; s != nil {
		return []graph.Binding{
			graph.Bind("squares", s.squares), graph.Bind("stream", s.addedTo()), graph.Bind("norm",
				o.spreadWeight),
		}
	}
	if o.prepared() {
		return []graph.Binding{graph.Bind("squares", o.squares)}
	}
	return []graph.Binding{graph.Bind("norm", o.weight)}
}

// addedTo() returns the value from which linears read the residual when they compute the sum: the
// interleaved row if there is one, otherwise the residual itself.
func (o *rmsNorm) addedTo() graph.ValueID {
	if o.stream != nil {
		return o.stream.value
	}
	return o.residual
}

func (o *rmsNorm) specialize(_ int, c shaders.Constants, _ int) {
	c["Norm"], c["Eps"] = true, o.eps
	switch {
	case o.sum != nil:
		c["Sum"], c["Given"], c["Spread"] = min(sumLanes, c["Lanes"].(int)), o.sum.sums(), true
		c["SpreadStream"], c["LastOfStream"] = o.sum.stream != nil, o.sum.Last
	case o.prepared():
		c["Given"], c["Spread"] = o.sums(), true
	}
}

func (o *rmsNorm) planLeft(_ int, p *graph.Planner, l *graph.Launch) {
	switch s := o.sum; {
	case s != nil:
		if s.Last {
			l.Params.U32("stream_from", (p.Numel(s.residual)-s.width)/4)
		}
		l.Bytes += 4 * int64(2*s.width+s.sums())
		l.FLOPs += 6 * int64(s.width)
	case o.prepared():
		l.Bytes += 4 * int64(o.sums())
	default:
		width := int64(p.Dim(o.x, -1))
		l.Bytes += 4 * width
		l.FLOPs += 4 * width
	}
}

func (o *rmsNorm) leftRow(_ *reference.Ref, x reference.Tensor) reference.Tensor { return x }

// rowOfGiven computes the reference value of a single row of o, which is a norm with a residual. It computes
// the row from the values that linears read instead of it: weighted, squares and the residual.
func (o *rmsNorm) rowOfGiven(r *reference.Ref) []float64 {
	squares := 0.0
	for _, v := range r.Tensor(o.squares).Data {
		squares += v
	}
	row, residual := inOrder(r.Tensor(o.weighted).Data), o.lastAdded(r)
	scale := 1 / math.Sqrt(squares/float64(len(row))+float64(o.eps))
	for i := range row {
		row[i] = row[i]*scale + residual[i]
	}
	return row
}

// lastAdded returns the last row of the residual in plain order, from the value that addedTo returns.
func (o *rmsNorm) lastAdded(r *reference.Ref) []float64 {
	t := r.Tensor(o.addedTo())
	rows, _ := t.Rows()
	if o.stream != nil {
		return inOrder(t.Row(rows - 1))
	}
	return t.Row(rows - 1)
}

func (o *rmsNorm) leftTolerance(k int) (row float64, why string) {
	return reference.SumRoundings(k) * reference.Rounding, "; each input is multiplied by the scale of a norm"
}

func (o *rmsNorm) Reference(r *reference.Ref) {
	if o.residual != graph.None {
		o.sumReference(r)
		return
	}
	for _, norm := range o.norms() {
		x, weight := r.Tensor(norm.x), r.Tensor(norm.weight)
		y := r.Result(norm.y, x.Dims...)
		rows, _ := x.Rows()
		for i := range r.Rows(norm.y, rows) {
			norm.normalize(y.Row(i), x.Row(i), weight.Data)
		}
		r.Set(norm.y, y)
	}
}

// normalize(y, x, weight) computes the norm of the row x, and stores it in y.
func (o *rmsNorm) normalize(y, x, weight []float64) {
	scale := 1 / math.Sqrt(reference.Dot(x, x)/float64(len(x))+float64(o.eps))
	for j, v := range x {
		y[j] = v * scale * weight[j]
	}
}

// sumReference is the reference of a norm with a residual.
func (o *rmsNorm) sumReference(r *reference.Ref) {
	x, weight, residual := r.Tensor(o.x), r.Tensor(o.weight), r.Tensor(o.residual)
	dims, _ := sumDims(x.Dims, residual.Dims)
	if o.stream != nil && rowsIn(dims) == 1 && r.Has(o.stream.value) {
		residual.Data = o.lastAdded(r)
	}
	from := 0
	if o.Last {
		dims = slices.Clone(dims)
		from = toLast(dims)
	}
	y := r.Result(o.y, dims...)
	m, _ := y.Rows()
	for i := range r.Rows(o.y, m) {
		o.normalize(y.Row(i), x.RowFor(from+i), weight.Data)
		for j, v := range residual.RowFor(from + i) {
			y.Row(i)[j] += v
		}
	}
	if o.next != nil && m == 1 {
		o.next.giveReference(r, y)
	}
	r.Set(o.y, y)
}

// Tolerance is relative to the element itself, because a sum of squares cannot cancel out. WGSL allows an
// error of 2 ulp in inverseSqrt.
func (o *rmsNorm) Tolerance(r *reference.Ref, v graph.ValueID) reference.Tolerance {
	t := normTolerance(shape.Last(r.Tensor(o.x).Dims))
	if o.residual != graph.None {
		t = sumTolerance(t, r, o.y, o.residual)
	}
	if o.next != nil && v != o.y {
		return o.next.givenTolerance(r, v, t)
	}
	return t
}

func normTolerance(n int) reference.Tolerance {
	return reference.Tolerance{Rel: reference.SumRoundings(n) * reference.Rounding, Why: fmt.Sprintf("a mean of %d squares is computed in f32", n)}
}

// sumTolerance returns the tolerance of a norm with a residual. This tolerance has an absolute term, because
// the norm and the residual can cancel each other out.
func sumTolerance(t reference.Tolerance, r *reference.Ref, sum, residual graph.ValueID) reference.Tolerance {
	t.Abs = t.Rel * (r.Largest(sum) + r.Largest(residual))
	t.Why += "; adding the residual can cancel part of the result"
	return t
}
