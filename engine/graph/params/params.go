// Package params writes the params blocks of kernels. A params block is a uniform struct in WGSL whose
// fields are 4-byte numbers.
package params

import (
	"encoding/binary"
	"fmt"
	"math"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Max is the largest number of fields in a params block.
const Max = 64

// Block is the params block of one launch of a kernel. A plan must write all fields that the kernel declares,
// in order, and give the name of each. Otherwise Check returns an error.
type Block struct {
	fields   []trace.Param // fields that the kernel declares
	n        int           // number of fields that were written
	mismatch mismatch
	data     [4 * Max]byte
}

// mismatch is the first written field that does not match the field that the kernel declares. It is the zero
// value as long as all fields match.
type mismatch struct {
	at        int
	name, typ string
	large     bool // the value needs more than 32 bits
}

// Begin makes the block empty. `fields` are the fields that the kernel declares.
func (b *Block) Begin(fields []trace.Param) { b.fields, b.n, b.mismatch = fields, 0, mismatch{} }

// U32 writes the next field as an unsigned integer. The value must fit into 32 bits.
func (b *Block) U32(name string, value int) *Block {
	return b.put(name, "u32", uint32(value), uint64(value) > math.MaxUint32)
}

// F32 writes the next field as a float.
func (b *Block) F32(name string, value float32) *Block {
	return b.put(name, "f32", math.Float32bits(value), false)
}

func (b *Block) put(name, typ string, word uint32, large bool) *Block {
	if b.n < len(b.fields) {
		f := &b.fields[b.n]
		if (f.Name != name || f.Type != typ || large) && b.mismatch.name == "" {
			b.mismatch = mismatch{b.n, name, typ, large}
		}
		binary.LittleEndian.PutUint32(b.data[4*b.n:], word)
	}
	b.n++
	return b
}

// Check returns an error if the written fields do not match the fields of a kernel.
func (b *Block) Check(kernel string, fields []trace.Param) error {
	m := &b.mismatch
	switch {
	case m.name == "" && b.n == len(fields):
		return nil
	case m.name == "":
		return fmt.Errorf("kernel %s has %d params, but the plan writes %d", kernel, len(fields), b.n)
	case fields[m.at].Name != m.name:
		return fmt.Errorf("param %d of kernel %s is named %s, but the plan writes a param named %s",
			m.at, kernel, fields[m.at].Name, m.name)
	case fields[m.at].Type != m.typ:
		return fmt.Errorf("param %s of kernel %s has type %s, but the plan writes type %s", m.name, kernel,
			fields[m.at].Type, m.typ)
	default:
		return fmt.Errorf("the value of param %s of kernel %s does not fit into 32 bits: %w", m.name, kernel,
			gpu.ErrUnsupported)
	}
}

// Bytes returns the fields that were written so far, as little-endian bytes.
func (b *Block) Bytes() []byte { return b.data[:4*min(b.n, Max)] }

// Equal reports whether two blocks have the same fields.
func (b *Block) Equal(c *Block) bool { return b.n == c.n && string(b.Bytes()) == string(c.Bytes()) }
