package pte

import (
	"math/bits"
	"strconv"
)

// Type is the element type of a tensor, as ExecuTorch's type number.
type Type int8

// The type numbers of plain integers, floats and bools.
const (
	Uint8    Type = 0
	Int8     Type = 1
	Int16    Type = 2
	Int32    Type = 3
	Int64    Type = 4
	Float16  Type = 5
	Float32  Type = 6
	Float64  Type = 7
	Bool     Type = 11
	BFloat16 Type = 15
	Uint16   Type = 27
	Uint32   Type = 28
	Uint64   Type = 29
)

// types lists all element types of ExecuTorch, indexed by type number.
var types = [...]struct {
	name string
	bits int // size of an element in bits
}{
	{"uint8", 8},
	{"int8", 8},
	{"int16", 16},
	{"int32", 32},
	{"int64", 64},
	{"f16", 16},
	{"f32", 32},
	{"f64", 64},
	{"complex32", 32},
	{"complex64", 64},
	{"complex128", 128},
	{"bool", 8},
	{"qint8", 8},
	{"quint8", 8},
	{"qint32", 32},
	{"bf16", 16},
	{"quint4x2", 4},
	{"quint2x4", 2},
	{"bits1x8", 1},
	{"bits2x4", 2},
	{"bits4x2", 4},
	{"bits8", 8},
	{"bits16", 16},
	{"float8_e5m2", 8},
	{"float8_e4m3fn", 8},
	{"float8_e5m2fnuz", 8},
	{"float8_e4m3fnuz", 8},
	{"uint16", 16},
	{"uint32", 32},
	{"uint64", 64},
}

func (t Type) known() bool { return t >= 0 && int(t) < len(types) }

// String returns the name of the type, such as "int64" or "f32".
func (t Type) String() string {
	if !t.known() {
		return "type " + strconv.Itoa(int(t))
	}
	return types[t].name
}

// Bytes returns the size in bytes of a contiguous tensor of the type with the given shape. `ok` is false if
// the type is unknown, if a size is negative or if the result is larger than any file.
func (t Type) Bytes(sizes []int) (n int64, ok bool) {
	if !t.known() {
		return 0, false
	}
	total := uint64(1)
	for _, size := range sizes {
		if size < 0 {
			return 0, false
		}
		hi, lo := bits.Mul64(total, uint64(size))
		if total = lo; hi != 0 || total > 1<<55 {
			return 0, false
		}
	}
	return int64((total*uint64(types[t].bits) + 7) / 8), true
}
