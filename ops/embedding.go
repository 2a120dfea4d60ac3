package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
	"gpuscope/shaders"
)

// Embedding adds embedding: it looks up rows of a table and converts them to floats.
//
//	table    [vocabulary, D], in any of weight.Formats. The kind of the operator is embedding for f32, and
//	         embedding_NAME for the format NAME
//	indices  any dims, i32
//	y        dims of indices, then D
//
// On the device the table has the same layout as the weights of linear. If an output head uses a matrix of
// the same name, the head and the table share memory. A table above the device's limit on the size of a
// binding is split by rows, and each part has its own dispatch. The kernel clamps each index to the table, so
// that it never reads other memory. The caller on the host must check the indices: the kernel does not report
// an index outside the table. Each invocation computes 8 columns.
func Embedding(b *graph.Builder, name string, table weight.Matrix, indices graph.ValueID) graph.ValueID {
	return kind.First(New(b, table.Format.KindName("embedding"), name, kind.Args{
		"table":   table,
		"indices": indices,
	}))
}

var kindsOfEmbedding = kind.EachFormat(kind.Kind{
	Name: "embedding", Doc: "Looks up rows of a table and converts them to floats.",
	Args: []kind.Arg{kind.Required("table", kind.MatrixType), kind.Required("indices",
		kind.I32Tensor)},
	Constructors: []string{"Embedding"}, Routes: embeddingRouteNames, Add: addEmbedding,
})

// embeddingRouteNames are the names of the routes of an embedding. The kernel of the route `row` looks up a
// single row, and also computes the element-wise part of the next norm (see fuseNorm).
var embeddingRouteNames = []string{embeddingRow: "row", embeddingRows: "rows"}

const (
	embeddingRow = iota
	embeddingRows
)

var embeddingKinds = kind.Names(kindsOfEmbedding)

func addEmbedding(c *kind.Call) []graph.ValueID {
	table := c.ArgMatrix("table")
	if err := table.CheckSize(); err != nil {
		return c.Fail("%w", err)
	}
	o := &embedding{
		table: table, indices: c.ArgTensor("indices"), parts: table.Declare(c.Builder), factor: graph.None,
	}
	o.y = c.Out("", graph.F32)
	o.makeKernels(c.Builder)
	return c.AddOp(o, o.y)
}

type embedding struct {
	table      weight.Matrix
	parts      []weight.Part
	indices, y graph.ValueID
	factor     graph.ValueID // scalar that multiplies all elements (fusion rule `scaled`), or None
	next       *rmsNorm      // norm whose element-wise part the kernel for one row computes, or nil
	row, rows  *graph.Kernel
}

func (o *embedding) prepares() *rmsNorm { return o.next }

func (o *embedding) makeKernels(b *graph.Builder) {
	kernel := func(name string, each int) *graph.Kernel {
		return kind.NewKernelAs(b, o.table.Format.KindName("embedding")+name, "embedding",
			o.table.Format.AddConstants(b,
				shaders.Constants{
					"Lanes": kind.ThreadLanes, "Partial": !o.table.InGroupsOf8(), "Each": each,
					"Scaled": o.factor != graph.None,
				}))
	}
	o.rows = kernel("", 0)
	if o.next != nil {
		o.row = kernel("_row", o.next.each)
	}
}

func (o *embedding) Spec() graph.Spec {
	s := graph.Spec{
		Kind: o.table.Format.KindName("embedding"), Inputs: []graph.ValueID{o.indices},
		Outputs: []graph.ValueID{o.y}, Routes: embeddingRouteNames,
	}
	if o.factor != graph.None {
		s.Inputs = append(s.Inputs, o.factor)
	}
	if o.next != nil {
		o.next.declare(&s)
	}
	if g := o.table.Format.Group; g > 0 {
		s.Attrs = map[string]any{"group_size": g}
	}
	for i := range o.parts {
		p := &o.parts[i]
		s.Inputs = append(s.Inputs, p.Arrays...)
		slot := graph.Slot{Label: weight.PartLabel(i, len(o.parts)), Uses: make([]graph.Use, len(s.Routes))}
		if o.next != nil {
			slot.Uses[embeddingRow] = graph.Use{Kernel: o.row, Bind: o.bindings(embeddingRow, p)}
		}
		slot.Uses[embeddingRows] = graph.Use{Kernel: o.rows, Bind: o.bindings(embeddingRows, p)}
		s.Slots = append(s.Slots, slot)
	}
	return s
}

// bindings returns the bindings of a route's kernel for one part of the table.
func (o *embedding) bindings(route int, p *weight.Part) []graph.Binding {
	list := append(o.table.Bindings(p), graph.Bind("indices", o.indices))
	if o.factor != graph.None {
		list = append(list, graph.Bind("factor", o.factor))
	}
	list = append(list, graph.Bind("y", o.y))
	if route == embeddingRow {
		list = append(list, o.next.given()...)
	}
	return list
}

func (o *embedding) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.indices) }

func (o *embedding) Plan(p *graph.Planner) error {
	indices, vocabulary, width := p.Numel(o.indices), o.table.Rows, o.table.Cols
	n := indices * shape.DivUp(width, 8)
	table := [...]kind.Route{
		embeddingRow:  {Name: "row", Why: kind.OneRow, Only: true},
		embeddingRows: {Name: "rows", Why: kind.ManyRows, UpTo: kind.Always},
	}
	if o.next != nil {
		table[embeddingRow].UpTo = 1
	}
	gives := kind.Routes(table[:]).Choose(p, "M", indices) == embeddingRow
	if o.next != nil {
		o.next.give(p, gives)
	}
	for i := range o.parts {
		part := &o.parts[i]
		l := p.Dispatch(i, p.Vectors(8*n, 8, kind.ThreadLanes))
		l.Params.U32("n", n).U32("width", width).U32("vocabulary", vocabulary).U32("first", part.First).
			U32("rows", part.Rows)
		// The indices are unknown during planning. The cost therefore assumes that each part contains a share
		// of the looked-up rows in proportion to its size.
		share := int64(indices) * int64(part.Rows) / int64(vocabulary)
		l.Bytes = 4*int64(indices) + share*(part.Bytes/int64(part.Rows)+4*int64(width))
		if o.table.Format.Group > 0 {
			l.FLOPs = 2 * share * int64(width)
		}
		if o.factor != graph.None {
			l.FLOPs += share * int64(width)
		}
		if gives {
			o.next.addCost(l)
		}
	}
	return setRows(p, o.y, o.indices, width)
}

// setRows sets the dims of y to the dims of the indices, followed by the width of a row.
func setRows(p *graph.Planner, y, indices graph.ValueID, width int) error {
	var dims [kind.MaxRank]int
	rank := copy(dims[:], p.Dims(indices))
	if rank == kind.MaxRank {
		return p.Errorf("indices have rank %d; the maximum is %d", rank, kind.MaxRank-1)
	}
	dims[rank] = width
	p.SetDims(y, dims[:rank+1]...)
	return nil
}

func (o *embedding) Reference(r *reference.Ref) {
	indices := r.Tensor(o.indices)
	y := r.Result(o.y, append(append([]int{}, indices.Dims...), o.table.Cols)...)
	for _, p := range o.parts {
		read := o.table.Reader(r, &p)
		for i := range r.Rows(o.y, len(indices.Data)) {
			if row := min(max(int(indices.Data[i]), 0), o.table.Rows-1) - p.First; row >= 0 && row < p.Rows {
				read(row, y.Row(i))
			}
		}
	}
	if o.factor != graph.None {
		factor := r.Tensor(o.factor).Data[0]
		for i := range y.Data {
			y.Data[i] *= factor
		}
	}
	if o.next != nil && len(indices.Data) == 1 {
		o.next.giveReference(r, y)
	}
	r.Set(o.y, y)
}

func (o *embedding) Tolerance(r *reference.Ref, v graph.ValueID) reference.Tolerance {
	t := reference.Tolerance{
		Row: 8 * reference.Rounding,
		Why: "each weight is computed from its bits with an f32 product and an f32 sum",
	}
	if v == o.y {
		return t
	}
	return o.next.givenTolerance(r, v, t)
}
