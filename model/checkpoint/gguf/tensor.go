package gguf

import (
	"fmt"

	"gpuscope/internal/printable"
)

// Tensor is one tensor of a file.
type Tensor struct {
	Name string
	Type Type
	// Dims are row-major, outermost first: a matrix is [rows, cols] and its rows are contiguous. GGUF stores
	// them the other way round, so what tools print as [384, 4096] is [4096, 384] here. At most four; none
	// for a scalar.
	Dims   []int
	Offset int64 // of the first byte, from the start of the file, or part, that it is in

	file *File
	size int // bytes, which the file has been found to hold
}

// Elements is the number of elements.
func (t *Tensor) Elements() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Size is the number of bytes; of a type that is not known, up to where the next tensor starts.
func (t *Tensor) Size() int { return t.size }

// Bytes are the tensor's bytes in the file's own layout. They may lie in the file's mapping: they must not be
// changed, nor used after File.Close. To ask for them after it is an error.
func (t *Tensor) Bytes() ([]byte, error) {
	data, err := t.file.from.Bytes(t.Offset, t.size)
	if err != nil {
		return nil, t.file.errorf("tensor %q: %w", short(t.Name), err)
	}
	return data, nil
}

// String is one line for people: "blk.0.attn_q.weight Q4_0 [384, 384]".
func (t *Tensor) String() string {
	return fmt.Sprintf("%s %s %s", t.Name, t.Type, printable.Dims(t.Dims))
}
