// Package flat reads FlatBuffers from files that are not trusted: ExecuTorch's programs, their data files and
// the graphs inside them.
//
// FlatBuffers has a runtime for Go, and flatc generates readers for it. Those follow every offset of a file
// unchecked and panic where one leads out of it; the runtime has no verifier for Go. A reader that checks is
// smaller than the checks around one that does not, and it needs no generated code: callers name the slots
// that they read.
//
//	b := flat.New(data)
//	program := b.Root(programKind)
//	for _, plan := range program.Tables(programPlans, planKind) {
//		name := plan.Text(planName)
//	}
//	if err := b.Err(); err != nil { // *Error: names the table and the field
//
// The first error stays, and after it every read gives the value of an absent field: a caller checks Err once
// at the end, and where it uses a number as an index. Tables may be nil, and are then empty.
//
// Tables of a hostile file can share bytes, so that a small file describes very many of them. A Buffer
// therefore stops after twice the bytes that it has, and after a million tables.
package flat

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
)

// Error is what is wrong with a file.
type Error struct {
	File    string // its path, or what it was called
	Table   string // the type of the table in the schema: "Tensor"; or a header
	Path    string // from the root to the table: "execution_plan[0].values[3]"
	Field   string
	Problem string // the value and the limit
	Err     error  // what callers branch on, or nil
}

func (e *Error) Error() string {
	var b strings.Builder
	for _, part := range []string{e.File, e.Table} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	if e.Path != "" { // "Tensor at execution_plan[0].values[3]: "
		text := strings.TrimSuffix(b.String(), ": ")
		b.Reset()
		b.WriteString(text + " at " + e.Path + ": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Kind is a type of tables.
type Kind struct {
	Name   string
	Fields string // the names in the order of the slots, with spaces between; a union has two
}

// field is the name of a slot.
func (k *Kind) field(slot int) string {
	names := strings.Fields(k.Fields)
	if slot < 0 || slot >= len(names) {
		return "slot " + strconv.Itoa(slot)
	}
	return names[slot]
}

// Buffer is the bytes of a FlatBuffer and the first error found in them. It is for one goroutine.
type Buffer struct {
	data []byte
	err  *Error
	// What may still be read.
	bytes, tables int
}

const maxTables = 1 << 20

// New is a buffer over data, which must not change.
func New(data []byte) *Buffer {
	return &Buffer{data: data, bytes: 2 * len(data), tables: maxTables}
}

// Identifier is the file identifier of a FlatBuffer; empty where there is no room for one.
func Identifier(data []byte) string {
	if len(data) < 8 {
		return ""
	}
	return string(data[4:8])
}

// Err is the first error, a *Error, or nil.
func (b *Buffer) Err() error {
	if b.err == nil {
		return nil
	}
	return b.err
}

// Root is the table that the buffer starts from.
func (b *Buffer) Root(kind *Kind) *Table {
	root := &Table{b: b, kind: kind}
	if len(b.data) < 8 || len(b.data) > math.MaxInt32 {
		root.failf("", "%d bytes, want 8 or more and at most %d", len(b.data), math.MaxInt32)
		return nil
	}
	if !root.open(0) {
		return nil
	}
	return root
}

// Table is one table. A nil Table has no fields.
type Table struct {
	b      *Buffer
	kind   *Kind
	at     int // of its first byte
	size   int // bytes, those of its vtable's offset included
	vtable int // of the first slot
	slots  int

	up    *Table // that it is in, by the field; and its place in a list there, or -1
	field string
	index int
}

// open follows the offset at a place to the table, and checks the table's own bounds.
func (t *Table) open(from int) bool {
	b := t.b
	if b.err != nil {
		return false
	}
	if b.tables--; b.tables < 0 {
		t.failf("", "the file has more than %d tables", maxTables)
		return false
	}
	at := uint64(from) + uint64(binary.LittleEndian.Uint32(b.data[from:]))
	end := uint64(len(b.data))
	if at+4 > end {
		t.failf("", "its offset leads to byte %d of %d", at, end)
		return false
	}
	t.at = int(at)
	vtable := int64(at) - int64(int32(binary.LittleEndian.Uint32(b.data[at:])))
	if vtable < 0 || vtable+4 > int64(end) {
		t.failf("", "its vtable would be at byte %d of %d", vtable, end)
		return false
	}
	n := int64(binary.LittleEndian.Uint16(b.data[vtable:]))
	t.size = int(binary.LittleEndian.Uint16(b.data[vtable+2:]))
	switch {
	case n < 4 || n%2 != 0 || vtable+n > int64(end):
		t.failf("", "its vtable at byte %d of %d has %d bytes", vtable, end, n)
		return false
	case t.size < 4 || at+uint64(t.size) > end:
		t.failf("", "it has %d bytes at byte %d of %d", t.size, at, end)
		return false
	}
	t.vtable, t.slots = int(vtable)+4, int(n-4)/2
	return b.spend(t, "", t.size)
}

// spend takes n bytes from what may be read.
func (b *Buffer) spend(t *Table, field string, n int) bool {
	if b.bytes -= n; b.bytes < 0 {
		t.failf(field, "tables share so many bytes that they are longer than the file, %d bytes", len(b.data))
	}
	return b.err == nil
}

func (t *Table) failf(field, format string, args ...any) {
	t.b.fail(t, field, nil, fmt.Sprintf(format, args...))
}

func (b *Buffer) fail(t *Table, field string, err error, problem string) {
	if b.err == nil {
		b.err = &Error{Table: t.kind.Name, Path: t.path(), Field: field, Problem: problem, Err: err}
	}
}

// path is how the table is reached from the root.
func (t *Table) path() string {
	var parts []string
	for ; t.up != nil; t = t.up {
		part := t.field
		if t.index >= 0 {
			part += "[" + strconv.Itoa(t.index) + "]"
		}
		parts = append(parts, part)
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, ".")
}

// Failf reports that a field has a value that it must not have. Nothing is reported of a nil Table.
func (t *Table) Failf(slot int, format string, args ...any) {
	if t != nil {
		t.failf(t.kind.field(slot), format, args...)
	}
}

// Fail is Failf with an error that callers can find in it.
func (t *Table) Fail(slot int, err error, problem string) {
	if t != nil {
		t.b.fail(t, t.kind.field(slot), err, problem)
	}
}

// Failed says whether the buffer has an error: what was read since may be wrong.
func (t *Table) Failed() bool { return t != nil && t.b.err != nil }

// value is where n bytes of a field are, or 0 where the field is absent.
func (t *Table) value(slot, n int) int {
	if t == nil || t.b.err != nil || slot >= t.slots {
		return 0
	}
	offset := int(binary.LittleEndian.Uint16(t.b.data[t.vtable+2*slot:]))
	if offset == 0 {
		return 0
	}
	if offset < 4 || offset+n > t.size {
		t.Failf(slot, "%d bytes at %d are not in a table of %d bytes", n, offset, t.size)
		return 0
	}
	return t.at + offset
}

// Has says whether a field is present.
func (t *Table) Has(slot int) bool { return t.value(slot, 1) != 0 }

// number is a type that a field can have.
type number interface {
	int8 | uint8 | int32 | uint32 | int64 | uint64 | float64
}

// decode reads a number whose bytes there are.
func decode[T number](data []byte) T {
	var v T
	switch p := any(&v).(type) {
	case *int8:
		*p = int8(data[0])
	case *uint8:
		*p = data[0]
	case *int32:
		*p = int32(binary.LittleEndian.Uint32(data))
	case *uint32:
		*p = binary.LittleEndian.Uint32(data)
	case *int64:
		*p = int64(binary.LittleEndian.Uint64(data))
	case *uint64:
		*p = binary.LittleEndian.Uint64(data)
	case *float64:
		*p = math.Float64frombits(binary.LittleEndian.Uint64(data))
	}
	return v
}

func width[T number]() int {
	var v T
	switch any(v).(type) {
	case int8, uint8:
		return 1
	case int32, uint32:
		return 4
	}
	return 8
}

// Number is a field, or otherwise where it is absent.
func Number[T number](t *Table, slot int, otherwise T) T {
	at := t.value(slot, width[T]())
	if at == 0 {
		return otherwise
	}
	return decode[T](t.b.data[at:])
}

// Bool is a field that is false where it is absent.
func (t *Table) Bool(slot int) bool { return Number[uint8](t, slot, 0) != 0 }

// vector is the place of a list's first element and how many there are, each of a number of bytes.
func (t *Table) vector(slot, width int) (at, n int) {
	from := t.value(slot, 4)
	if from == 0 {
		return 0, 0
	}
	data, end := t.b.data, uint64(len(t.b.data))
	start := uint64(from) + uint64(binary.LittleEndian.Uint32(data[from:]))
	if start+4 > end {
		t.Failf(slot, "its offset leads to byte %d of %d", start, end)
		return 0, 0
	}
	count := uint64(binary.LittleEndian.Uint32(data[start:]))
	if start+4+count*uint64(width) > end {
		t.Failf(slot, "%d elements of %d bytes at byte %d end after the last of %d", count, width, start, end)
		return 0, 0
	}
	if !t.b.spend(t, t.kind.field(slot), 4+int(count)*width) {
		return 0, 0
	}
	return int(start) + 4, int(count)
}

// Numbers is a list of numbers; nil where there are none.
func Numbers[T number](t *Table, slot int) []T {
	w := width[T]()
	at, n := t.vector(slot, w)
	if n == 0 {
		return nil
	}
	list := make([]T, n)
	for i := range list {
		list[i] = decode[T](t.b.data[at+i*w:])
	}
	return list
}

// Bytes is where a list of bytes is: those of a blob, which are not copied.
func (t *Table) Bytes(slot int) (at, n int) { return t.vector(slot, 1) }

// Text is a string, which must be UTF-8 and is empty where it is absent.
func (t *Table) Text(slot int) string {
	at, n := t.vector(slot, 1)
	if n == 0 {
		return ""
	}
	text := string(t.b.data[at : at+n])
	if strings.ToValidUTF8(text, "") != text {
		t.Failf(slot, "%q is not UTF-8", printable.Short(text, 40))
		return ""
	}
	return text
}

// Table is a table in a field, or nil where it is absent.
func (t *Table) Table(slot int, kind *Kind) *Table {
	from := t.value(slot, 4)
	if from == 0 {
		return nil
	}
	return t.child(from, slot, -1, kind)
}

func (t *Table) child(from, slot, index int, kind *Kind) *Table {
	c := &Table{b: t.b, kind: kind, up: t, field: t.kind.field(slot), index: index}
	if !c.open(from) {
		return nil
	}
	return c
}

// Len is how many elements a list of tables has.
func (t *Table) Len(slot int) int {
	at := t.value(slot, 4)
	if at == 0 {
		return 0
	}
	left := t.b.bytes // it is counted when the list is read
	_, n := t.vector(slot, 4)
	t.b.bytes = left
	return n
}

// Tables are the tables of a list with their places in it.
func (t *Table) Tables(slot int, kind *Kind) iter.Seq2[int, *Table] {
	return func(yield func(int, *Table) bool) {
		at, n := t.vector(slot, 4)
		for i := range n {
			c := t.child(at+4*i, slot, i, kind)
			if c == nil || !yield(i, c) {
				return
			}
		}
	}
}

// Union is a field that has a type of its own: the number of the type, from 1 on, and the table, which has
// the type's kind. The number is in the slot, the table in the next. It is 0 and nil where there is none.
func (t *Table) Union(slot int, kinds ...*Kind) (number int, value *Table) {
	number = int(Number[uint8](t, slot, 0))
	switch {
	case number == 0:
		return 0, nil
	case number > len(kinds):
		t.Failf(slot, "type %d, known are 1 to %d", number, len(kinds))
		return 0, nil
	}
	value = t.Table(slot+1, kinds[number-1])
	if value == nil {
		t.Failf(slot+1, "type %d without a value", number)
		return 0, nil
	}
	return number, value
}
