// Package ptetest builds ExecuTorch programs and data files for tests. It states the slot numbers of table
// fields itself instead of using the constants of package pte, so that tests detect wrong constants.
package ptetest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Table is a table of a FlatBuffer. It maps the slot of each field to the field's value. A value is a
// number, a bool, a string, a list of numbers, a Table, a list of Tables or a Union. A union field has two
// slots, and the Union is the value of the first.
type Table map[int]any

// Union is the value of a union field: a type number and a table.
type Union struct {
	Type  uint8
	Value Table
}

// Flat returns the bytes of a FlatBuffer with the given file identifier and root table. It does not merge
// equal tables.
func Flat(identifier string, root Table) []byte {
	w := writer{data: append(make([]byte, 4), identifier...)}
	w.point(0, w.table(root))
	return w.data
}

// One returns a Union with the given type number and table.
func One(number uint8, value Table) Union { return Union{number, value} }

type writer struct{ data []byte }

// point writes the offset that is stored at byte `from` and points to byte `to`.
func (w *writer) point(from, to int) {
	binary.LittleEndian.PutUint32(w.data[from:], uint32(to-from))
}

// table writes a vtable, the table, and then the tables and lists that the table refers to.
func (w *writer) table(t Table) int {
	flat := Table{}
	for slot, v := range t {
		if u, ok := v.(Union); ok {
			flat[slot], flat[slot+1] = u.Type, u.Value
		} else {
			flat[slot] = v
		}
	}
	slots := slices.Sorted(maps.Keys(flat))
	count := 0
	if len(slots) > 0 {
		count = slots[len(slots)-1] + 1
	}
	size := 4
	offsets := make([]int, count)
	for _, slot := range slots {
		n := inline(flat[slot])
		size = (size + n - 1) / n * n
		offsets[slot] = size
		size += n
	}
	for (len(w.data)+4+2*count)%8 != 0 { // align the table, which follows its vtable, to 8 bytes
		w.data = append(w.data, 0)
	}
	vtable := len(w.data)
	w.data = binary.LittleEndian.AppendUint16(w.data, uint16(4+2*count))
	w.data = binary.LittleEndian.AppendUint16(w.data, uint16(size))
	for _, offset := range offsets {
		w.data = binary.LittleEndian.AppendUint16(w.data, uint16(offset))
	}
	at := len(w.data)
	w.data = append(w.data, make([]byte, size)...)
	binary.LittleEndian.PutUint32(w.data[at:], uint32(at-vtable))
	for _, slot := range slots {
		w.field(at+offsets[slot], flat[slot])
	}
	return at
}

// inline returns the number of bytes that a field takes in its table.
func inline(v any) int {
	switch v.(type) {
	case bool, int8, uint8:
		return 1
	case int64, uint64, float64:
		return 8
	}
	return 4
}

func (w *writer) field(at int, v any) {
	le := binary.LittleEndian
	switch v := v.(type) {
	case bool:
		if v {
			w.data[at] = 1
		}
	case int8:
		w.data[at] = byte(v)
	case uint8:
		w.data[at] = v
	case int32:
		le.PutUint32(w.data[at:], uint32(v))
	case uint32:
		le.PutUint32(w.data[at:], v)
	case int64:
		le.PutUint64(w.data[at:], uint64(v))
	case uint64:
		le.PutUint64(w.data[at:], v)
	case float64:
		le.PutUint64(w.data[at:], math.Float64bits(v))
	case Table:
		w.point(at, w.table(v))
	case []Table:
		start := w.list(at, len(v), 4, 4)
		w.data = append(w.data, make([]byte, 4*len(v))...)
		for i, t := range v {
			w.point(start+4*i, w.table(t))
		}
	case string:
		w.list(at, len(v), 1, 4)
		w.data = append(append(w.data, v...), 0)
	case []byte:
		w.list(at, len(v), 1, 16)
		w.data = append(w.data, v...)
	case []bool:
		w.list(at, len(v), 1, 4)
		for _, b := range v {
			w.data = append(w.data, 0)
			w.field(len(w.data)-1, b)
		}
	case []int32, []uint32, []int64, []uint64, []float64:
		n := binary.Size(v)
		width := 8
		switch v.(type) {
		case []int32, []uint32:
			width = 4
		}
		w.list(at, n/width, width, width)
		w.data, _ = binary.Append(w.data, le, v) // cannot fail, because the elements have a fixed size
	default:
		panic(fmt.Sprintf("ptetest: a field cannot have the Go type %T", v))
	}
}

// list writes padding and the number n of elements of a list, and makes the offset at byte `from` point to
// the list. It returns the offset at which the caller must write the elements.
func (w *writer) list(from, n, width, align int) int {
	for (len(w.data)+4)%max(align, width, 4) != 0 {
		w.data = append(w.data, 0)
	}
	w.point(from, len(w.data))
	w.data = binary.LittleEndian.AppendUint32(w.data, uint32(n))
	return len(w.data)
}
