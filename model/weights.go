package model

import (
	"encoding/binary"
	"slices"

	"gpuscope/engine"
	"gpuscope/model/gguf"
	"gpuscope/ops"
)

// weights hands the tensors of a GGUF file to a graph, each held to the shape it must have. What is wrong is
// recorded in the builder.
type weights struct {
	b    *engine.Builder
	file *gguf.File
	used map[string]bool
}

// tensor is a tensor of one type and shape, nil after an error.
func (w *weights) tensor(name string, want gguf.Type, dims ...int) *gguf.Tensor {
	t, err := w.file.Tensor(name)
	switch {
	case w.b.Err() != nil:
	case err != nil:
		w.b.Errorf("%w", err)
	case !slices.Equal(t.Dims, dims):
		w.b.Errorf("%s: tensor %s is %v, the metadata makes it %v", w.file.Name(), name, t.Dims, dims)
	case t.Type != want:
		w.b.Errorf("%s: not yet: tensor %s is %s; this version runs Q4_0 matrices and F32 vectors",
			w.file.Name(), name, t.Type)
	}
	if w.b.Err() != nil {
		return nil
	}
	w.used[name] = true
	return t
}

// has says whether the file has a tensor.
func (w *weights) has(name string) bool { return w.file.HasTensor(name) }

// refuseUnknown refuses a file with a tensor that nobody asked for: the model would run without it, and be
// wrong.
func (w *weights) refuseUnknown() {
	for _, t := range w.file.Tensors() {
		if !w.used[t.Name] {
			w.b.Errorf("%s: not yet: tensor %s: this version's model has no place for it", w.file.Name(),
				t.Name)
		}
	}
}

// vector is an f32 constant [n].
func (w *weights) vector(name string, n int) engine.ValueID {
	t := w.tensor(name, gguf.F32, n)
	return w.b.Constant(name, engine.F32, []int{n}, t.Bytes)
}

// matrix is a matrix of rows outputs by cols inputs. A block of Q4_0 is 32 weights of one row with one scale,
// which is q4gsw with groups of 32: nothing is lost.
func (w *weights) matrix(name string, rows, cols int) ops.Q4Matrix {
	t := w.tensor(name, gguf.Q4_0, rows, cols)
	return ops.Q4Matrix{
		Name: name, Rows: rows, Cols: cols, Group: gguf.Q4_0BlockLen, HalfScales: true,
		Nibbles: func() ([]byte, error) {
			blocks, err := t.Bytes()
			return q4Nibbles(blocks), err
		},
		Scales: func() ([]float32, error) {
			blocks, err := t.Bytes()
			return q4Scales(blocks), err
		},
	}
}

// q4Nibbles are the weights of Q4_0 blocks in the order of the row, the even ones in the low nibbles. A block
// has weight j beside weight j + 16.
func q4Nibbles(blocks []byte) []byte {
	out := make([]byte, 0, len(blocks)/gguf.Q4_0BlockBytes*gguf.Q4_0BlockLen/2)
	for block := range slices.Chunk(blocks, gguf.Q4_0BlockBytes) {
		q := block[2:]
		for j := 0; j < len(q); j += 2 {
			out = append(out, q[j]&0xf|q[j+1]<<4)
		}
		for j := 0; j < len(q); j += 2 {
			out = append(out, q[j]>>4|q[j+1]&0xf0)
		}
	}
	return out
}

// q4Scales are the scales of Q4_0 blocks.
func q4Scales(blocks []byte) []float32 {
	out := make([]float32, 0, len(blocks)/gguf.Q4_0BlockBytes)
	for block := range slices.Chunk(blocks, gguf.Q4_0BlockBytes) {
		out = append(out, gguf.Float16(binary.LittleEndian.Uint16(block)))
	}
	return out
}
