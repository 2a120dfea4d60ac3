// Package ptetest makes ExecuTorch programs and data files to order, for tests. It numbers the slots of
// tables itself, so that a test does not repeat what the reader assumes.
package ptetest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Table is a table of a FlatBuffer by slots. A field is a number, a bool, a string, a list of numbers, a
// Table, a list of Tables or, in the first of its two slots, a Union.
type Table map[int]any

// Union is a field of one of several types.
type Union struct {
	Type  uint8
	Value Table
}

// Flat writes a FlatBuffer. Equal tables are written as often as they are there.
func Flat(identifier string, root Table) []byte {
	w := writer{data: append(make([]byte, 4), identifier...)}
	w.point(0, w.table(root))
	return w.data
}

// One is a field of one of several types.
func One(number uint8, value Table) Union { return Union{number, value} }

type writer struct{ data []byte }

// point makes the offset at a place lead to another.
func (w *writer) point(from, to int) {
	binary.LittleEndian.PutUint32(w.data[from:], uint32(to-from))
}

// table writes a vtable, the table after it, and then what the table refers to.
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
	for (len(w.data)+4+2*count)%8 != 0 { // the table comes aligned
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

// inline is how many bytes a field has in its table.
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
		w.data, _ = binary.Append(w.data, le, v) // of fixed size
	default:
		panic(fmt.Sprintf("ptetest: no field can be a %T", v))
	}
}

// list writes the number of a list's elements, then the elements, aligned.
func (w *writer) list(from, n, width, align int) int {
	for (len(w.data)+4)%max(align, width, 4) != 0 {
		w.data = append(w.data, 0)
	}
	w.point(from, len(w.data))
	w.data = binary.LittleEndian.AppendUint32(w.data, uint32(n))
	return len(w.data)
}
