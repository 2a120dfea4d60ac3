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
// On the device the table is D/8 words a row, column k of a word's eight at bits 4k, and the scales are f32 [vocabulary, D/group]. A table whose
// even columns are in the high nibbles (upstream's is_linear_weight = 0) is turned around as it is loaded. An index outside of the table is
// brought into it: the kernel must not read elsewhere, and the host, which has the indices, is the one to report it. An invocation
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
	o := &embeddingQ4GSW{rows: table.Rows, cols: table.Cols, group: table.Group, indices: indices}
	o.nibbles = b.Constant(table.Name, engine.Q4, []int{table.Rows, table.Cols}, func() ([]byte, error) { return lowFirst(&table) })
	o.scales = b.Constant(table.Name+".scales", engine.F32, []int{table.Rows, table.Cols / table.Group}, func() ([]byte, error) {
		list, err := table.scales()
		return float32Bytes(list), err
	})
	o.y = b.Tensor(name, engine.F32)
	o.kernel = kernel(b, "embedding_q4gsw", shaders.Constants{"Lanes": threadLanes})
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
	rows, cols, group           int
	nibbles, scales, indices, y engine.ValueID
	kernel                      *engine.Kernel
}

func (o *embeddingQ4GSW) Spec() engine.Spec {
	return engine.Spec{
		Kind: "embedding_q4gsw", Inputs: []engine.ValueID{o.nibbles, o.scales, o.indices}, Outputs: []engine.ValueID{o.y},
		Slots: []engine.Slot{{Uses: one(o.kernel, o.nibbles, o.scales, o.indices, o.y)}},
		Attrs: map[string]any{"group_size": o.group},
	}
}

func (o *embeddingQ4GSW) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.indices) }

func (o *embeddingQ4GSW) Plan(p *engine.Planner) error {
	indices, words := p.Numel(o.indices), o.cols/8
	n := indices * words
	l := p.Dispatch(0, p.Threads(n, threadLanes))
	l.Params.U32(n, words, o.group/8, o.rows)
	l.Bytes = int64(indices) * int64(4+o.cols/2+4*(o.cols/o.group)+4*o.cols)
	l.FLOPs = 2 * int64(indices) * int64(o.cols)
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
	indices, nibbles, scales := r.Tensor(o.indices), r.Bytes(o.nibbles), r.Tensor(o.scales)
	y := zeros(append(append([]int{}, indices.Dims...), o.cols)...)
	for i, id := range indices.Data {
		row := min(max(int(id), 0), o.rows-1)
		for k := range o.cols {
			q := nibbles[(row*o.cols+k)/2] >> (k % 2 * 4) & 15
			y.Data[i*o.cols+k] = (float64(q) - 8) * scales.Data[(row*o.cols+k)/o.group]
		}
	}
	r.Set(o.y, y)
}
