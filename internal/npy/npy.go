// Package npy reads and writes NumPy's .npy files, which hold one array each.
//
//	a, err := npy.Read("in0.npy")
//	a.Type, a.Dims // "f4", [2 3]
//
// The Go libraries for the format decode into typed slices by reflection, and depend on a library of linear
// algebra. gpuscope needs only the dims and the raw little-endian bytes, so this package reads the header
// itself. It does not trust the file: it checks the size of an array before it uses the size.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
)

// ErrFormat is wrapped by the errors for bytes that are not a supported .npy file.
var ErrFormat = errors.New("not a supported .npy array")

// Type is the type of the elements, in NumPy's notation but without the byte order: "f4" is a float of 4
// bytes.
type Type string

// The supported types.
const (
	Bool    Type = "b1"
	Int8    Type = "i1"
	Uint8   Type = "u1"
	Int32   Type = "i4"
	Uint32  Type = "u4"
	Int64   Type = "i8"
	Float16 Type = "f2"
	Float32 Type = "f4"
	Float64 Type = "f8"
)

var types = []Type{Bool, Int8, Uint8, Int32, Uint32, Int64, Float16, Float32, Float64}

// Size returns the size of an element in bytes.
func (t Type) Size() int { return int(t[1] - '0') }

// NumPy returns the name of the type in NumPy, such as "float32".
func (t Type) NumPy() string {
	if t == Bool {
		return "bool"
	}
	kind := map[byte]string{'i': "int", 'u': "uint", 'f': "float"}[t[0]]
	return fmt.Sprintf("%s%d", kind, 8*t.Size())
}

// Array is an array of numbers.
type Array struct {
	Type Type
	Dims []int  // no dims for a single number
	Data []byte // the elements in row-major order, little-endian
}

const (
	magic     = "\x93NUMPY"
	maxDims   = 32      // NumPy's limit
	maxHeader = 1 << 16 // the headers of all supported arrays are far shorter
	maxBytes  = 1 << 40 // far above the memory of any device
)

// Read reads a file.
func Read(path string) (*Array, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Parse decodes the bytes of a file. The field Data of the result shares memory with `data`.
func Parse(data []byte) (*Array, error) {
	head, rest, err := split(data)
	if err != nil {
		return nil, err
	}
	fields, err := parseDict(head)
	if err != nil {
		return nil, err
	}
	a := &Array{}
	if a.Type, err = parseType(fields["descr"]); err != nil {
		return nil, err
	}
	if a.Dims, err = parseDims(fields["shape"]); err != nil {
		return nil, err
	}
	size := int64(a.Type.Size())
	for _, d := range a.Dims {
		if size > 0 && int64(d) > maxBytes/size {
			return nil, wrong("shape %v needs more than %d bytes", a.Dims, int64(maxBytes))
		}
		size *= int64(d)
	}
	switch order := fields["fortran_order"]; {
	case order == "True" && len(a.Dims) > 1:
		return nil, wrong("the elements are in column-major order. Save numpy.ascontiguousarray of the array")
	case order != "True" && order != "False":
		return nil, wrong("fortran_order is %s, want True or False", printable.Short(order, 40))
	case int64(len(rest)) != size:
		return nil, wrong("%d bytes follow the header, but shape %v of %s needs %d", len(rest), a.Dims,
			a.Type,
			size)
	}
	a.Data = rest
	return a, nil
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// split separates the text of the header from the elements.
func split(data []byte) (head string, rest []byte, err error) {
	if !bytes.HasPrefix(data, []byte(magic)) || len(data) < len(magic)+4 {
		return "", nil, wrong("the file does not start with NumPy's signature")
	}
	version, at := data[len(magic)], len(magic)+2
	n := uint64(binary.LittleEndian.Uint16(data[at:]))
	begin := at + 2
	switch {
	case version < 1 || version > 3:
		return "", nil, wrong("version %d, want 1 to 3", version)
	case version > 1 && len(data) < at+4:
		return "", nil, wrong("the file ends inside the header")
	case version > 1:
		n, begin = uint64(binary.LittleEndian.Uint32(data[at:])), at+4
	}
	if n > maxHeader || n > uint64(len(data)-begin) {
		return "", nil, wrong("the header has %d bytes, but the file has %d and the limit is %d", n,
			len(data)-begin, maxHeader)
	}
	return string(data[begin : begin+int(n)]), data[begin+int(n):], nil
}

// parseDict reads a Python dict of strings, names and tuples of integers. It returns the text of each value.
func parseDict(s string) (map[string]string, error) {
	s = strings.TrimSpace(s)
	inner, opened := strings.CutPrefix(s, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !opened || !closed {
		return nil, wrong("the header is not a dict: %s", printable.Short(s, 60))
	}
	fields := map[string]string{}
	for inner = strings.TrimSpace(inner); inner != ""; inner = strings.TrimSpace(inner) {
		key, rest, found := strings.Cut(inner, ":")
		if !found {
			return nil, wrong("the header has no value for %s", printable.Short(inner, 60))
		}
		rest = strings.TrimSpace(rest)
		end := strings.IndexByte(rest, ',')
		if strings.HasPrefix(rest, "(") {
			if end = strings.IndexByte(rest, ')') + 1; end == 0 {
				return nil, wrong("the header has a tuple without end: %s", printable.Short(rest, 60))
			}
		}
		if end < 0 {
			end = len(rest)
		}
		fields[strings.Trim(strings.TrimSpace(key), `'"`)] = strings.TrimSpace(rest[:end])
		inner = strings.TrimPrefix(strings.TrimSpace(rest[end:]), ",")
	}
	return fields, nil
}

func parseType(descr string) (Type, error) {
	text := strings.Trim(descr, `'"`)
	if len(text) == 3 && strings.ContainsRune("<|=", rune(text[0])) {
		for _, t := range types {
			if Type(text[1:]) == t && (text[0] != '|' || t.Size() == 1) {
				return t, nil
			}
		}
	}
	return "", wrong("element type %s, want one of %v, little-endian", printable.Short(descr, 60), types)
}

func parseDims(shape string) ([]int, error) {
	inner, ok := strings.CutPrefix(shape, "(")
	inner, ends := strings.CutSuffix(inner, ")")
	if !ok || !ends {
		return nil, wrong("shape is %s, want a tuple", printable.Short(shape, 60))
	}
	dims := []int{}
	for part := range strings.SplitSeq(inner, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		n, err := strconv.ParseUint(part, 10, 40)
		if err != nil || len(dims) == maxDims {
			return nil, wrong("shape is %s, want at most %d sizes", printable.Short(shape, 60), maxDims)
		}
		dims = append(dims, int(n))
	}
	return dims, nil
}

// Bytes encodes the array as a file of version 1.
func (a *Array) Bytes() []byte { return append(Header(a.Type, a.Dims), a.Data...) }

// Header returns the beginning of a file of version 1: everything before the elements.
func Header(t Type, dims []int) []byte {
	order := "<"
	if t.Size() == 1 {
		order = "|"
	}
	shape := "("
	for _, d := range dims {
		shape += strconv.Itoa(d) + ", "
	}
	if len(dims) != 1 {
		shape = strings.TrimSuffix(shape, ", ")
	} else {
		shape = strings.TrimSuffix(shape, " ")
	}
	head := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': %s), }", order, t, shape)
	const fixed = len(magic) + 4
	pad := 63 - (fixed+len(head))%64 // the elements start at a multiple of 64
	head += strings.Repeat(" ", pad) + "\n"
	out := append([]byte(magic), 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(head)))
	return append(out, head...)
}
