package ops

import (
	"slices"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/shaders"
)

// Linear adds linear: y = x * weight' + bias.
//
//	x      [..., K]
//	weight [N, K], constant
//	bias   [N], constant, or engine.None
//	y      dims of x with N for K
//
// One row of x takes a GEMV (where 8 divides K), more rows tiles of 64 or 128 rows and columns: linear_q4gsw
// says more of both.
func Linear(b *engine.Builder, name string, x, weight, bias engine.ValueID) engine.ValueID {
	if !ready(b, x, weight) {
		return engine.None
	}
	dims := b.MaxDims(weight)
	if len(dims) != 2 {
		b.Errorf("%s: weight %s is %v, want [N, K]", name, b.Name(weight), dims)
		return engine.None
	}
	o := &linear{kind: "linear", x: x, bias: bias, k: dims[1], n: dims[0]}
	o.parts = []linearPart{{rows: o.n, weights: []engine.ValueID{weight}, bytes: 4 * int64(o.n) * int64(o.k)}}
	return o.add(b, name)
}

// linear is a matrix product of rows with constant weights, whatever form these have.
type linear struct {
	kind    string
	x, y    engine.ValueID
	bias    engine.ValueID // or None
	k, n    int
	parts   []linearPart
	q4      *q4Format // of the weights; nil where they are f32
	shapes  [linearRoutes]linearShape
	kernels [linearRoutes]*engine.Kernel
	// tiles128 is the number of rows from which on the large tile is the better one.
	tiles128 int
}

// linearPart is a range of the rows of the weights that is bound, and dispatched, by itself. There is more
// than one only where the device's limit on a binding asks for it.
type linearPart struct {
	first, rows int
	weights     []engine.ValueID // bindings between x and bias
	bytes       int64            // of the weights
}

// The routes of a matrix product, from the fewest rows of x to the most.
const (
	linearGEMV = iota
	linearBatch4
	linearBatch8
	linearTile64
	linearTile128
	linearRoutes
)

var linearRouteNames = []string{
	linearGEMV: "gemv", linearBatch4: "batch4", linearBatch8: "batch8",
	linearTile64: "tile64", linearTile128: "tile128",
}

// add makes the kernels and puts the operator into the graph.
func (o *linear) add(b *engine.Builder, name string) engine.ValueID {
	if o.bias != engine.None {
		if d := b.MaxDims(o.bias); len(d) != 1 || d[0] != o.n {
			b.Errorf("%s: bias %s is %v, want [%d]", name, b.Name(o.bias), d, o.n)
			return engine.None
		}
	}
	for _, v := range []engine.ValueID{o.x, o.bias} {
		if v != engine.None && b.DType(v) != engine.F32 {
			b.Errorf("%s: %s is %s, want f32", name, b.Name(v), b.DType(v))
			return engine.None
		}
	}
	if o.k < 1 || o.n < 1 {
		b.Errorf("%s: weights of %d x %d, both must be positive", name, o.n, o.k)
		return engine.None
	}
	o.y = b.Tensor(name, engine.F32)
	o.tiles128 = rowsForTile128(o.n)
	for r := range o.shapes {
		if o.shapes[r] = o.shape(r, b.Limits()); o.shapes[r].lanes > 0 {
			o.kernels[r] = o.kernel(b, r)
		}
	}
	b.Add(name, o)
	return o.y
}

// has says whether the weights and the device allow a route.
func (o *linear) has(route int) bool { return o.shapes[route].lanes > 0 }

// route is the way to multiply m rows, and why.
func (o *linear) route(m int) (int, reason) {
	switch {
	case m == 1 && o.has(linearGEMV):
		return linearGEMV, oneRow
	case m <= 4 && o.has(linearBatch4):
		return linearBatch4, atMost4Rows
	case m <= 16 && o.has(linearBatch8):
		return linearBatch8, atMost16Rows
	case m >= o.tiles128 && o.has(linearTile128):
		return linearTile128, fillsWithTiles128
	default:
		return linearTile64, fewTiles128
	}
}

// lastRows is, for each route, the largest m that takes it by itself.
func (o *linear) lastRows(most int) (last [linearRoutes]int) {
	for _, m := range []int{1, 4, 16, o.tiles128 - 1, most} {
		if m = min(m, most); m > 0 {
			r, _ := o.route(m)
			last[r] = max(last[r], m)
		}
	}
	return last
}

func (o *linear) Spec() engine.Spec {
	s := engine.Spec{
		Kind: o.kind, Inputs: []engine.ValueID{o.x}, Outputs: []engine.ValueID{o.y}, Routes: linearRouteNames,
		Attrs: map[string]any{"in": o.k, "out": o.n},
	}
	if o.q4 != nil {
		s.Attrs["group_size"] = o.q4.group
	}
	for _, p := range o.parts {
		s.Inputs = append(s.Inputs, p.weights...)
	}
	if o.bias != engine.None {
		s.Inputs = append(s.Inputs, o.bias)
	}
	for i := range o.parts {
		slot := engine.Slot{Label: partLabel(i, len(o.parts)), Uses: make([]engine.Use, linearRoutes)}
		for r, k := range o.kernels {
			if k == nil {
				continue
			}
			bindings := []engine.Binding{bind("x", o.x)}
			for j, w := range o.parts[i].weights {
				bindings = append(bindings, bind([]string{"weights", "scales"}[j], w))
			}
			if o.bias != engine.None {
				bindings = append(bindings, bind("bias", o.bias))
			}
			slot.Uses[r] = engine.Use{Kernel: k, Bind: append(bindings, bind("y", o.y))}
		}
		s.Slots = append(s.Slots, slot)
	}
	return s
}

// Corners: each route has its largest grid at the most rows that take it.
func (o *linear) Corners(r *engine.Ranges) []engine.Corner {
	corners := r.Ends(o.x)
	for _, m := range o.lastRows(product(r.Max(o.x)) / o.k) {
		if dims := rowsAtMost(r.Min(o.x), r.Max(o.x), m); dims != nil {
			corners = append(corners, engine.Corner{{Value: o.x, Dims: dims}})
		}
	}
	return corners
}

// rowsAtMost are dims between lowest and highest with as many rows as there can be and at most m; nil where
// there are none.
func rowsAtMost(lowest, highest []int, m int) []int {
	if len(lowest) == 0 || m < 1 || product(lowest[:len(lowest)-1]) > m {
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
		rest := product(lowest[axis+1 : len(at)-1])
		top := min(highest[axis], m/(rows*rest))
		if axis == len(at)-2 || product(highest[axis+1:len(at)-1]) == rest {
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

func (o *linear) Plan(p *engine.Planner) error {
	dims := p.Dims(o.x)
	if len(dims) == 0 || last(dims) != o.k {
		return p.Errorf("x is %v, want %d columns for weights of %d x %d", dims, o.k, o.n, o.k)
	}
	var out [maxRank]int
	rank := copy(out[:], dims)
	out[rank-1] = o.n
	p.SetDims(o.y, out[:rank]...)
	m := p.Numel(o.x) / o.k
	preferred, why := o.route(m)
	var allowed uint64
	for r := range o.kernels {
		if o.has(r) {
			allowed |= 1 << r
		}
	}
	r := p.Choose(preferred, why, allowed)
	for i := range o.parts {
		part := &o.parts[i]
		l := p.Dispatch(i, o.grid(p, &o.shapes[r], m, part.rows))
		l.Params.U32("m", m).U32("n", part.rows).U32("stride", o.n).U32("first", part.first)
		if o.shapes[r].tile > 0 {
			l.Params.U32("k", o.k)
		}
		l.Bytes = part.bytes + 4*(int64(m)*int64(o.k)+int64(m)*int64(part.rows))
		if o.bias != engine.None {
			l.Bytes += 4 * int64(part.rows)
		}
		l.FLOPs = 2 * int64(m) * int64(o.k) * int64(part.rows)
	}
	return nil
}

func (o *linear) grid(p *engine.Planner, s *linearShape, m, n int) engine.Grid {
	if s.tile > 0 {
		return p.Tiles(n, s.tile, m, s.tile, 1, s.lanes)
	}
	return p.Rows(divUp(n, s.rows)*divUp(m, s.batch), s.lanes, o.k/s.chunk())
}

func (o *linear) kernel(b *engine.Builder, route int) *engine.Kernel {
	s, name := &o.shapes[route], o.kind+"_"+linearRouteNames[route]
	c := shaders.Constants{"Weights": "f32", "Bias": o.bias != engine.None}
	if o.q4 != nil {
		c["Weights"], c["HalfScales"], c["Unpack"] = "q4", o.q4.halfScales, tuned.unpack
	}
	if s.tile > 0 {
		c["Tile"], c["Quads"], c["Vec"] = s.tile, s.quads, o.k%4 == 0
		if o.q4 != nil {
			c["GroupWords"] = o.q4.group / 8
		}
		return kernelAs(b, name, "linear_tiled", c)
	}
	ragged := func(p linearPart) bool { return p.rows%s.rows != 0 }
	c["Lanes"], c["Rows"], c["Batch"], c["Chunks"], c["Ragged"] = s.lanes, s.rows, s.batch, o.k/s.chunk(),
		slices.ContainsFunc(o.parts, ragged)
	if o.q4 != nil {
		c["Words"], c["GroupChunks"] = s.words, o.q4.group/s.chunk()
	}
	return kernelAs(b, name, "linear_gemv", c)
}

func (o *linear) Reference(r *Ref) {
	x := r.Tensor(o.x)
	m, k := x.rows()
	dims := append([]int{}, x.Dims...)
	dims[len(dims)-1] = o.n
	y := zeros(dims...)
	row := make([]float64, k)
	for _, p := range o.parts {
		weightRow := o.rowReader(r, &p)
		for j := range p.rows {
			weightRow(j, row)
			for i := range m {
				var sum float64
				for c, v := range x.row(i) {
					sum += v * row[c]
				}
				y.row(i)[p.first+j] = sum
			}
		}
	}
	if o.bias != engine.None {
		bias := r.Tensor(o.bias).Data
		for i := range m {
			for j := range y.row(i) {
				y.row(i)[j] += bias[j]
			}
		}
	}
	r.Set(o.y, y)
}

// rowReader gives the rows of a part as the kernels' layout has them.
func (o *linear) rowReader(r *Ref, p *linearPart) func(j int, row []float64) {
	if o.q4 != nil {
		return o.q4.rowReader(r.Bytes(p.weights[0]), r.Tensor(p.weights[1]), o.k)
	}
	w := r.Tensor(p.weights[0])
	return func(j int, row []float64) { copy(row, w.row(j)) }
}

// linearShape is how a kernel divides the work: the tuned numbers, chosen in one place from the sizes of the
// weights and the device's limits. The zero shape says that there is no such kernel.
type linearShape struct {
	lanes int // of a workgroup
	// Of a tiled kernel: rows and columns of a tile of results, and vectors of 4 columns of x that are in
	// workgroup memory at a time.
	tile, quads int
	// Of a GEMV: rows of the weights and of x that a workgroup takes, and words of 8 columns that a lane
	// takes at a time.
	rows, batch, words int
}

// chunk is how many columns a lane of a GEMV takes at a time.
func (s *linearShape) chunk() int { return 8 * max(1, s.words) }

// linearTuning are the numbers that measurements settle; the rest follows from sizes and limits.
// BenchmarkLinearTuning tries others.
type linearTuning struct {
	// unpack is how a GEMV turns 4-bit weights into floats (shaders/include/q4.wgsl): "integer" has no error;
	// "mantissa" is faster, and was within 1e-5 of a result of order 1; "half" is faster still, within 5e-5.
	unpack string
	// rows of the weights that a workgroup of a GEMV takes where there are enough of them to fill the device,
	// and the lanes of it at most.
	rows, lanes int
	// fill is how many workgroups a large GPU takes to be full.
	fill int
}

var tuned = linearTuning{unpack: "mantissa", rows: 16, lanes: 256, fill: 128}

// rowsForTile128 is the number of rows of x from which on tiles of 128 x 128 results, n columns in all, fill
// a GPU: fewer, smaller tiles do better.
func rowsForTile128(n int) int {
	rows := divUp(tuned.fill, divUp(n, 128)) // of tiles
	return max(65, (rows-1)*128+1)
}

func (o *linear) shape(route int, limits *gpu.Limits) linearShape {
	memory, lanes := int(limits.MaxWorkgroupStorage), int(min(limits.MaxInvocations, limits.MaxWorkgroupX))
	switch route {
	case linearTile64:
		return linearShape{tile: 64, quads: 8, lanes: 256}
	case linearTile128:
		return linearShape{tile: 128, quads: 4, lanes: 256}
	}
	if o.k%8 != 0 {
		return linearShape{} // its GEMV would load columns one by one
	}
	switch route {
	case linearBatch4:
		return linearShape{rows: 16, batch: 4, words: 1, lanes: 64}
	case linearBatch8:
		return linearShape{rows: 8, batch: 8, words: 1, lanes: 64}
	}
	s := linearShape{rows: tuned.rows, batch: 1, words: 1}
	for s.rows > 4 && o.n/s.rows < tuned.fill {
		s.rows /= 2
	}
	if o.q4 != nil && o.k%32 == 0 && o.q4.group%32 == 0 && o.k/32 >= s.rows {
		s.words = 4
	}
	// As few steps over the columns as workgroup memory allows, and no more lanes than these take.
	chunks, most := o.k/s.chunk(), min(lanes, memory/(4*s.rows), tuned.lanes)
	steps := divUp(chunks, most)
	s.lanes = divUp(divUp(chunks, steps), s.rows) * s.rows
	if s.lanes > most {
		s.lanes -= s.rows
	}
	return s
}
