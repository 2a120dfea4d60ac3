package ops

import (
	"gpuscope/engine"
	"gpuscope/shaders"
)

// Embedding adds embedding: rows of a table.
//
//	table    [vocabulary, D], any 32-bit type
//	indices  any dims, i32
//	y        dims of indices, then D
//
// An index outside of the table is brought into it, as EmbeddingQ4GSW does.
func Embedding(b *engine.Builder, name string, table, indices engine.ValueID) engine.ValueID {
	if !ready(b, table, indices) {
		return engine.None
	}
	if dims := b.MaxDims(table); len(dims) != 2 {
		b.Errorf("%s: table %s is %v, want [vocabulary, width]", name, b.Name(table), dims)
		return engine.None
	}
	if b.DType(indices) != engine.I32 {
		b.Errorf("%s: indices %s are %s, want i32", name, b.Name(indices), b.DType(indices))
		return engine.None
	}
	o := &embedding{table: table, indices: indices, y: b.Tensor(name, b.DType(table)), vec: vec(b, table, -1)}
	o.kernel = kernel(b, "embedding", shaders.Constants{"Lanes": threadLanes, "Vec": o.vec})
	b.Add(name, o)
	return o.y
}

type embedding struct {
	table, indices, y engine.ValueID
	kernel            *engine.Kernel
	vec               int
}

func (o *embedding) Spec() engine.Spec {
	return engine.Spec{
		Kind: "embedding", Inputs: []engine.ValueID{o.table, o.indices}, Outputs: []engine.ValueID{o.y},
		Slots: []engine.Slot{{Uses: one(o.kernel, bind("table", o.table), bind("indices", o.indices),
			bind("y", o.y))}},
	}
}

func (o *embedding) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.table, o.indices) }

func (o *embedding) Plan(p *engine.Planner) error {
	indices, width := p.Numel(o.indices), p.Dim(o.table, 1)
	n := indices * width / o.vec
	l := p.Dispatch(0, p.Threads(n, threadLanes))
	l.Params.U32("n", n).U32("width", width/o.vec).U32("vocabulary", p.Dim(o.table, 0))
	l.Bytes = int64(indices) * int64(4+8*width)
	return setRows(p, o.y, o.indices, width)
}

func (o *embedding) Reference(r *Ref) {
	table, indices := r.Tensor(o.table), r.Tensor(o.indices)
	width := last(table.Dims)
	y := zeros(append(append([]int{}, indices.Dims...), width)...)
	for i, id := range indices.Data {
		copy(y.row(i), table.row(min(max(int(id), 0), table.Dims[0]-1)))
	}
	r.Set(o.y, y)
}
