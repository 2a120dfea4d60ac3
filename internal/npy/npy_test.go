package npy_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/npy"
	"gpuscope/internal/wordingtest"
)

func TestArraysAreReadAsWritten(t *testing.T) {
	for _, a := range []npy.Array{
		{Type: npy.Float32, Dims: []int{2, 3}, Data: make([]byte, 24)},
		{Type: npy.Int64, Dims: []int{2}, Data: []byte("0123456789abcdef")},
		{Type: npy.Uint32, Dims: []int{1, 1}, Data: []byte("0123")},
		{Type: npy.Bool, Dims: []int{}, Data: []byte{1}},
		{Type: npy.Int8, Dims: []int{0, 4}, Data: nil},
	} {
		data := a.Bytes()
		got, err := npy.Parse(data)
		if err != nil {
			t.Errorf("%v: %v", a, err)
			continue
		}
		if got.Type != a.Type || !slices.Equal(got.Dims, a.Dims) || !bytes.Equal(got.Data, a.Data) {
			t.Errorf("got %v, want %v", got, a)
		}
		if (len(data)-len(a.Data))%64 != 0 {
			t.Errorf("the elements start at byte %d, want a multiple of 64", len(data)-len(a.Data))
		}
	}
}

// file returns a file of version 1 with this header and n bytes of elements.
func file(head string, n int) []byte {
	return slices.Concat([]byte("\x93NUMPY\x01\x00"), []byte{byte(len(head)), byte(len(head) >> 8)},
		[]byte(head), make([]byte, n))
}

func TestWrongFilesAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	const good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
	if _, err := npy.Parse(file(good, 8)); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty":          nil,
		"other file":     []byte("PK\x03\x04 and more bytes"),
		"version":        []byte("\x93NUMPY\x09\x00\x00\x00"),
		"long header":    []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"),
		"no dict":        file("(2,)", 8),
		"no value":       file("{'descr'}", 8),
		"no end":         file("{'shape': (2, }", 8),
		"big-endian":     file(strings.Replace(good, "<", ">", 1), 8),
		"complex":        file(strings.Replace(good, "f4", "c8", 1), 8),
		"columns first":  file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16),
		"no order":       file("{'descr': '<f4', 'shape': (2, 2), }", 16),
		"negative":       file(strings.Replace(good, "(2,)", "(-2,)", 1), 8),
		"no tuple":       file(strings.Replace(good, "(2,)", "2", 1), 8),
		"huge":           file(strings.Replace(good, "(2,)", "(1099511627775, 1099511627775)", 1), 8),
		"too few bytes":  file(good, 7),
		"too many bytes": file(good, 9),
	} {
		_, err := npy.Parse(data)
		if !errors.Is(err, npy.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", name, err)
		}
		golden.Error(name, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := npy.Parse(data)
		if err != nil {
			return
		}
		if again, err := npy.Parse(a.Bytes()); err != nil || !bytes.Equal(again.Data, a.Data) {
			t.Errorf("%v is read as %v, %v", a, again, err)
		}
	})
}
