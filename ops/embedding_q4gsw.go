package ops

import (
	"gpuscope/engine"
	"gpuscope/shaders"
)

// EmbeddingQ4GSW adds embedding_q4gsw: rows of a 4-bit table, y = (q - 8) * scale of the group.
//
//	table    [vocabulary, D], D and the group multiples of 8
//	indices  any dims, i32
//	y        dims of indices, then D
//
// On the device the table is as linear_q4gsw has its weights, so that an output head that is tied to it
// shares its memory: give both the matrix of one name. A table whose even columns are in the high nibbles
// (upstream's is_linear_weight = 0) is turned around as it is loaded, and one over the device's limit on a
// binding is split by rows, a dispatch for each part. An index outside of the table is brought into it: the
// kernel must not read elsewhere, and the host, which has the indices, is the one to report it. An invocation
// takes a word. Source of the format: ExecuTorch's et_vk.embedding_q4gsw.
func EmbeddingQ4GSW(b *engine.Builder, name string, table Q4Matrix, indices engine.ValueID) engine.ValueID {
	if !ready(b, indices) {
		return engine.None
	}
	if err := table.check(); err != nil {
		b.Errorf("%s: %w", name, err)
		return engine.None
	}
	if b.DType(indices) != engine.I32 {
		b.Errorf("%s: indices %s are %s, want i32", name, b.Name(indices), b.DType(indices))
		return engine.None
	}
	o := &embeddingQ4GSW{
		rows: table.Rows, cols: table.Cols, indices: indices,
		q4: q4Format{group: table.Group, halfScales: table.HalfScales},
	}
	limits := b.Limits()
	o.parts = o.q4.constants(b, &table, int64(min(limits.MaxStorageBinding, limits.MaxBufferSize)))
	o.y = b.Tensor(name, engine.F32)
	o.kernel = kernel(b, "embedding_q4gsw",
		shaders.Constants{"Lanes": threadLanes, "HalfScales": o.q4.halfScales, "ScaleRows": o.q4.scaleRows()})
	b.Add(name, o)
	return o.y
}

// lowFirst are the nibbles of a matrix with even columns in the low half of each byte.
func lowFirst(m *Q4Matrix) ([]byte, error) {
	data, err := m.nibbles()
	if err != nil || !m.HighNibbles {
		return data, err
	}
	turned := make([]byte, len(data))
	for i, v := range data {
		turned[i] = v<<4 | v>>4
	}
	return turned, nil
}

type embeddingQ4GSW struct {
	rows, cols int
	q4         q4Format
	parts      []linearPart
	indices, y engine.ValueID
	kernel     *engine.Kernel
}

func (o *embeddingQ4GSW) Spec() engine.Spec {
	s := engine.Spec{
		Kind: "embedding_q4gsw", Inputs: []engine.ValueID{o.indices}, Outputs: []engine.ValueID{o.y},
		Attrs: map[string]any{"group_size": o.q4.group},
	}
	for i := range o.parts {
		weights := o.parts[i].weights
		s.Inputs = append(s.Inputs, weights...)
		s.Slots = append(s.Slots,
			engine.Slot{
				Label: partLabel(i, len(o.parts)),
				Uses: one(o.kernel, bind("nibbles", weights[0]), bind("scales", weights[1]),
					bind("indices", o.indices), bind("y", o.y)),
			})
	}
	return s
}

func (o *embeddingQ4GSW) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.indices) }

func (o *embeddingQ4GSW) Plan(p *engine.Planner) error {
	indices, words := p.Numel(o.indices), o.cols/8
	n := indices * words
	for i := range o.parts {
		part := &o.parts[i]
		l := p.Dispatch(i, p.Threads(n, threadLanes))
		l.Params.U32("n", n).U32("words", words).U32("group_words", o.q4.group/8).
			U32("vocabulary", o.rows).U32("first", part.first).U32("rows", part.rows)
		// The ids are not known here: each part stands for its share of the table.
		share := int64(indices) * int64(part.rows) / int64(o.rows)
		l.Bytes = 4*int64(indices) + share*(part.bytes/int64(part.rows)+4*int64(o.cols))
		l.FLOPs = 2 * share * int64(o.cols)
	}
	return setRows(p, o.y, o.indices, o.cols)
}

// setRows gives an output the dims of the indices and the width of the rows they name.
func setRows(p *engine.Planner, y, indices engine.ValueID, width int) error {
	var dims [maxRank]int
	rank := copy(dims[:], p.Dims(indices))
	if rank == maxRank {
		return p.Errorf("indices of rank %d, at most %d", rank, maxRank-1)
	}
	dims[rank] = width
	p.SetDims(y, dims[:rank+1]...)
	return nil
}

func (o *embeddingQ4GSW) Reference(r *Ref) {
	indices := r.Tensor(o.indices)
	y := zeros(append(append([]int{}, indices.Dims...), o.cols)...)
	for _, p := range o.parts {
		read := o.q4.rowReader(r.Bytes(p.weights[0]), r.Tensor(p.weights[1]), o.cols)
		for i, id := range indices.Data {
			if row := min(max(int(id), 0), o.rows-1) - p.first; row >= 0 && row < p.rows {
				read(row, y.row(i))
			}
		}
	}
	r.Set(o.y, y)
}
