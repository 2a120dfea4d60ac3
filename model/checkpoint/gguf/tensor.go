package gguf

import (
	"fmt"

	"gpuscope/internal/printable"
)

// Tensor is a tensor of a GGUF file.
type Tensor struct {
	Name string
	Type Type
	// Dims is the row-major shape of the tensor, outermost dim first: [rows, cols] for a matrix with
	// contiguous rows. GGUF stores dims in the opposite order, so a shape that other tools print as
	// [384, 4096] is [4096, 384] here. A tensor has at most four dims. A scalar has no dims.
	Dims   []int
	Offset int64 // offset of the first byte from the start of the file that contains the tensor

	file *File // the file that contains the tensor; in a split model, one of its parts
	size int   // size in bytes; place has checked that the file contains these bytes
}

// Elements returns the number of elements.
func (t *Tensor) Elements() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Size returns the size of the tensor in bytes. If the type is unknown, the size is the number of bytes up to
// the next tensor or to the end of the file.
func (t *Tensor) Size() int { return t.size }

// Bytes returns the bytes of the tensor in the storage layout of its type. The slice may point into the
// memory-mapped file, so it must not be modified, and not be used after File.Close. After File.Close, Bytes
// returns an error.
func (t *Tensor) Bytes() ([]byte, error) {
	data, err := t.file.from.Bytes(t.Offset, t.size)
	if err != nil {
		return nil, t.file.errorf("tensor %q: %w", short(t.Name), err)
	}
	return data, nil
}

// String returns the name, type and dims of the tensor, such as "blk.0.attn_q.weight Q4_0 [384, 384]".
func (t *Tensor) String() string {
	return fmt.Sprintf("%s %s %s", t.Name, t.Type, printable.Dims(t.Dims))
}
