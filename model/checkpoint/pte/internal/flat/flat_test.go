package flat_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/model/checkpoint/pte/internal/flat"
	"gpuscope/model/checkpoint/pte/ptetest"
)

var (
	rootKind  = &flat.Kind{Name: "Root", Fields: "number text list child children union union_value"}
	childKind = &flat.Kind{Name: "Child", Fields: "number"}
)

func example() []byte {
	return ptetest.Flat("TEST", ptetest.Table{
		0: int64(-5), 1: "text", 2: []int32{1, -2, 3}, 3: ptetest.Table{0: uint8(7)},
		4: []ptetest.Table{{0: uint8(1)}, {}, {0: uint8(3)}}, 5: ptetest.One(1, ptetest.Table{0: uint8(9)}),
	})
}

func TestFieldsAreReadBySlot(t *testing.T) {
	t.Parallel()
	data := example()
	b := flat.New(data)
	root := b.Root(rootKind)
	if id := flat.Identifier(data); id != "TEST" {
		t.Errorf("identifier %q", id)
	}
	if n := flat.Number[int64](root, 0, 1); n != -5 {
		t.Errorf("number %d", n)
	}
	if s := root.Text(1); s != "text" {
		t.Errorf("text %q", s)
	}
	if list := flat.Numbers[int32](root, 2); !cmp.Equal(list, []int32{1, -2, 3}) {
		t.Errorf("list %v", list)
	}
	if n := flat.Number[uint8](root.Table(3, childKind), 0, 0); n != 7 {
		t.Errorf("child %d", n)
	}
	var children []uint8
	for i, c := range root.Tables(4, childKind) {
		children = append(children, uint8(i), flat.Number[uint8](c, 0, 2))
	}
	if !cmp.Equal(children, []uint8{0, 1, 1, 2, 2, 3}) || root.Len(4) != 3 {
		t.Errorf("children %v of %d", children, root.Len(4))
	}
	if n, v := root.Union(5, childKind); n != 1 || flat.Number[uint8](v, 0, 0) != 9 {
		t.Errorf("union %d, %v", n, v)
	}
	if at, n := root.Bytes(1); string(data[at:at+n]) != "text" {
		t.Errorf("bytes at %d", at)
	}
	if err := b.Err(); err != nil {
		t.Error(err)
	}
}

func TestAbsentFieldsAreDefaults(t *testing.T) {
	t.Parallel()
	b := flat.New(ptetest.Flat("TEST", ptetest.Table{}))
	root := b.Root(rootKind)
	child := root.Table(3, childKind)
	number, value := root.Union(5, childKind)
	if child != nil || flat.Number(child, 0, 2.5) != 2.5 || root.Text(1) != "" || root.Has(0) ||
		child.Bool(0) ||
		flat.Numbers[int64](root, 2) != nil || root.Len(4) != 0 || number != 0 || value != nil {
		t.Error("an empty table has fields")
	}
	if err := b.Err(); err != nil {
		t.Error(err)
	}
}

func TestFirstErrorStays(t *testing.T) {
	t.Parallel()
	b := flat.New(example())
	root := b.Root(rootKind)
	for _, c := range root.Tables(4, childKind) {
		c.Failf(0, "wrong")
	}
	root.Failf(1, "too")
	var e *flat.Error
	if !errors.As(b.Err(), &e) || e.Table != "Child" || e.Path != "children[0]" || e.Field != "number" {
		t.Errorf("%+v", e)
	}
	if !root.Failed() || root.Text(1) != "" || flat.Number[int64](root, 0, 1) != 1 {
		t.Error("fields are read after an error")
	}
}

// Any four bytes of a buffer may be a wrong offset. Reading must then succeed completely or return an error,
// and must not panic.
func TestAnyOffsetIsChecked(t *testing.T) {
	t.Parallel()
	original := example()
	offsets := []uint32{0, 1, 3, 4, 8, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff}
	for at := range original[:len(original)-3] {
		for _, n := range offsets {
			data := append([]byte{}, original...)
			binary.LittleEndian.PutUint32(data[at:], n)
			b := flat.New(data)
			root := b.Root(rootKind)
			root.Text(1)
			flat.Numbers[int32](root, 2)
			flat.Number[int64](root.Table(3, childKind), 0, 0)
			for _, c := range root.Tables(4, childKind) {
				c.Bool(0)
			}
			root.Union(5, childKind)
			if e := (*flat.Error)(nil); b.Err() != nil && !errors.As(b.Err(), &e) {
				t.Fatal(b.Err())
			}
		}
	}
}

func TestCutBuffersAreErrors(t *testing.T) {
	t.Parallel()
	data := example()
	for n := range data {
		b := flat.New(data[:n])
		root := b.Root(rootKind)
		for range root.Tables(4, childKind) {
		}
		root.Text(1)
		root.Union(5, childKind)
		if b.Err() == nil && n < len(data)-8 {
			t.Errorf("the first %d of %d bytes cause no error", n, len(data))
		}
	}
}
