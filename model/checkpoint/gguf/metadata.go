package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
)

// Kind is the type of a metadata value. Its number is the type number of GGUF.
type Kind uint32

// The kinds of metadata values.
const (
	KindUint8 Kind = iota
	KindInt8
	KindUint16
	KindInt16
	KindUint32
	KindInt32
	KindFloat32
	KindBool
	KindString
	KindArray
	KindUint64
	KindInt64
	KindFloat64
)

// kinds lists the name and the size in bytes of each kind. The size is 0 for strings and arrays, which have
// no fixed size.
var kinds = [...]struct {
	name string
	size int
}{
	KindUint8: {"uint8", 1}, KindInt8: {"int8", 1}, KindUint16: {"uint16", 2}, KindInt16: {"int16", 2},
	KindUint32: {"uint32", 4},
	KindInt32:  {"int32", 4}, KindFloat32: {"float32", 4}, KindBool: {"bool", 1}, KindString: {"string", 0},
	KindArray:  {"array", 0},
	KindUint64: {"uint64", 8}, KindInt64: {"int64", 8}, KindFloat64: {"float64", 8},
}

func (k Kind) known() bool { return int64(k) < int64(len(kinds)) }

// size returns the size in bytes of a value of the kind. It returns 0 if the kind has no fixed size or is
// unknown.
func (k Kind) size() int {
	if !k.known() {
		return 0
	}
	return kinds[k].size
}

// minSize returns the minimum size in bytes of a value of the kind in a file.
func (k Kind) minSize() int {
	switch k {
	case KindString:
		return 8
	case KindArray:
		return 12
	}
	return max(k.size(), 1)
}

// String returns the name of the kind in the GGUF specification.
func (k Kind) String() string {
	if !k.known() {
		return fmt.Sprintf("kind %d", uint32(k))
	}
	return kinds[k].name
}

// Value is a metadata value in the encoding of the file. Its methods decode it on demand, so opening a file
// does not decode the vocabulary. A Value must not be used after File.Close.
type Value struct {
	Kind Kind
	Elem Kind // kind of the elements of an array
	Len  int  // number of elements of an array

	// raw holds the encoded value. It starts at the first byte of a string or at the first element of an
	// array.
	raw []byte
}

// Type returns a readable name of the value's kind, such as "uint32" or "string[4096]".
func (v Value) Type() string {
	if v.Kind == KindArray {
		return fmt.Sprintf("%s[%d]", v.Elem, v.Len)
	}
	return v.Kind.String()
}

// Any decodes the value. The result has the Go type that matches the kind: an integer type of the same width,
// float32, float64, bool or string. An array becomes a []any. Any returns nil for the zero Value.
func (v Value) Any() any {
	if len(v.raw) < v.Kind.size() {
		return nil // v is the zero Value
	}
	switch v.Kind {
	case KindUint8:
		return v.raw[0]
	case KindInt8:
		return int8(v.raw[0])
	case KindUint16:
		return binary.LittleEndian.Uint16(v.raw)
	case KindInt16:
		return int16(binary.LittleEndian.Uint16(v.raw))
	case KindUint32:
		return binary.LittleEndian.Uint32(v.raw)
	case KindInt32:
		return int32(binary.LittleEndian.Uint32(v.raw))
	case KindUint64:
		return binary.LittleEndian.Uint64(v.raw)
	case KindInt64:
		return int64(binary.LittleEndian.Uint64(v.raw))
	case KindFloat32:
		return math.Float32frombits(binary.LittleEndian.Uint32(v.raw))
	case KindFloat64:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.raw))
	case KindBool:
		return v.raw[0] != 0
	case KindString:
		return string(v.raw)
	case KindArray:
		list := make([]any, 0, v.Len)
		v.each(v.Len, func(e Value) { list = append(list, e.Any()) })
		return list
	}
	return nil
}

// String formats the value on one line. It quotes strings. It shortens long strings, and long arrays to their
// first elements.
func (v Value) String() string {
	const firstElements, firstBytes, longest = 8, 200, 400
	switch v.Kind {
	case KindString:
		if len(v.raw) > firstBytes {
			return fmt.Sprintf("%q… (%d bytes)", v.raw[:firstBytes], len(v.raw))
		}
		return strconv.Quote(string(v.raw))
	case KindArray:
		var b strings.Builder
		b.WriteByte('[')
		shown := 0
		v.each(min(v.Len, firstElements), func(e Value) {
			if b.Len() > longest {
				return
			}
			if b.Len() > 1 {
				b.WriteString(", ")
			}
			b.WriteString(e.String())
			shown++
		})
		if v.Len > shown {
			fmt.Fprintf(&b, ", … (%d)", v.Len)
		}
		b.WriteByte(']')
		return b.String()
	}
	return fmt.Sprint(v.Any())
}

// short returns the result of String, shortened for use in an error message.
func (v Value) short() string { return printable.Short(v.String(), 80) }

// each calls a function with each of the first n elements of an array. Reading the elements cannot fail,
// because Parse has already read the same bytes without an error.
func (v Value) each(n int, do func(Value)) {
	r := &reader{data: v.raw, size: int64(len(v.raw))}
	for range n {
		e, err := r.value(v.Elem, 0)
		if err != nil {
			return
		}
		do(e)
	}
}

func (v Value) uint() (uint64, bool) {
	switch x := v.Any().(type) {
	case uint8:
		return uint64(x), true
	case uint16:
		return uint64(x), true
	case uint32:
		return uint64(x), true
	case uint64:
		return x, true
	}
	i, ok := v.signed()
	return uint64(i), ok && i >= 0
}

func (v Value) signed() (int64, bool) {
	switch x := v.Any().(type) {
	case int8:
		return int64(x), true
	case int16:
		return int64(x), true
	case int32:
		return int64(x), true
	case int64:
		return x, true
	}
	return 0, false
}

func (v Value) int() (int, bool) {
	if u, ok := v.uint(); ok {
		return int(u), u <= uint64(maxInt)
	}
	i, ok := v.signed()
	return int(i), ok && int64(int(i)) == i
}

func (v Value) float() (float64, bool) {
	switch x := v.Any().(type) {
	case float32:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

func (v Value) bool() (bool, bool) {
	b, ok := v.Any().(bool)
	return b, ok
}

// Keys returns the metadata keys in file order. The caller must not modify the slice.
func (f *File) Keys() []string { return f.keys }

// Has reports whether the metadata of the file contain the key.
func (f *File) Has(key string) bool {
	_, ok := f.values[key]
	return ok
}

// Value returns the metadata value of a key, of any kind. The bool reports whether the metadata contain the
// key.
func (f *File) Value(key string) (Value, bool) {
	v, ok := f.values[key]
	return v, ok
}

func (f *File) value(key string) (Value, error) {
	if v, ok := f.values[key]; ok {
		return v, nil
	}
	return Value{}, f.errorf("metadata %q is missing", key)
}

func (f *File) errorf(format string, args ...any) error {
	if f.name == "" { // the name is not set during parsing; read adds it to the error later
		return fmt.Errorf(format, args...)
	}
	return fmt.Errorf("%s: %w", f.name, fmt.Errorf(format, args...))
}

// scalar converts the value of a key with the function `conv`. It returns an error if the key is missing, if
// the value is an array, or if `conv` rejects the value. In the error, `want` describes the accepted values.
func scalar[T any](f *File, key, want string, conv func(Value) (T, bool)) (T, error) {
	var zero T
	v, err := f.value(key)
	if err != nil {
		return zero, err
	}
	if v.Kind != KindArray { // decoding an array could take as much memory as the whole file
		if x, ok := conv(v); ok {
			return x, nil
		}
	}
	return zero, f.errorf("metadata %q has type %s and value %s; it must be %s",
		key, v.Type(), v.short(), want)
}

// maxList is the maximum length of an array that is decoded. It is larger than any known vocabulary.
const maxList = 1 << 22

// list converts each element of an array with the function `conv`. The array is the value of a key. list
// returns an error if the key is missing, if the value is not an array of scalars, or if `conv` rejects an
// element. In the error, `want` describes the accepted elements.
func list[T any](f *File, key, want string, conv func(Value) (T, bool)) ([]T, error) {
	v, err := f.value(key)
	if err != nil {
		return nil, err
	}
	if v.Kind != KindArray || v.Elem == KindArray {
		return nil, f.errorf("metadata %q has type %s and value %s; it must be an array of %s",
			key, v.Type(), v.short(), want)
	}
	if err := f.checkLen(key, v); err != nil {
		return nil, err
	}
	out := make([]T, 0, v.Len)
	var bad *Value
	v.each(v.Len, func(e Value) {
		x, ok := conv(e)
		if !ok && bad == nil {
			bad = &e
		}
		out = append(out, x)
	})
	if bad != nil {
		return nil, f.errorf("metadata %q has type %s and contains %s; it must be an array of %s",
			key, v.Type(), bad.short(), want)
	}
	return out, nil
}

func (f *File) checkLen(key string, v Value) error {
	if v.Len > maxList {
		return f.errorf("metadata %q is an array of %d values, but the maximum is %d", key, v.Len, maxList)
	}
	return nil
}

// `or` returns the value that `read` returns for a key. If the metadata do not contain the key, it returns
// `def` instead. A value of the wrong kind is an error.
func or[T any](f *File, key string, def T, read func(string) (T, error)) (T, error) {
	if !f.Has(key) {
		return def, nil
	}
	return read(key)
}

// Uint returns the value of a key, which must be a non-negative integer of any width. A missing key is an
// error.
func (f *File) Uint(key string) (uint64, error) {
	return scalar(f, key, "an integer of at least 0", Value.uint)
}

// UintOr is like Uint, but returns `def` if the key is missing.
func (f *File) UintOr(key string, def uint64) (uint64, error) { return or(f, key, def, f.Uint) }

// Int returns the value of a key, which must be an integer of any width that fits an int. A missing key is an
// error.
func (f *File) Int(key string) (int, error) {
	return scalar(f, key, "an integer", Value.int)
}

// IntOr is like Int, but returns `def` if the key is missing.
func (f *File) IntOr(key string, def int) (int, error) { return or(f, key, def, f.Int) }

// Ints returns the value of a key, which must be an array of integers of any width. A missing key is an
// error.
func (f *File) Ints(key string) ([]int, error) { return list(f, key, "integers", Value.int) }

// Float returns the value of a key, which must be a float32 or a float64. A missing key is an error.
func (f *File) Float(key string) (float64, error) { return scalar(f, key, "a float", Value.float) }

// Floats returns the value of a key, which must be an array of floats. A missing key is an error.
func (f *File) Floats(key string) ([]float64, error) { return list(f, key, "floats", Value.float) }

// Bool returns the value of a key, which must be a bool. A missing key is an error.
func (f *File) Bool(key string) (bool, error) {
	return scalar(f, key, "a bool", Value.bool)
}

// Bools returns the value of a key, which must be an array of bools. A missing key is an error.
func (f *File) Bools(key string) ([]bool, error) { return list(f, key, "bools", Value.bool) }

// BoolOr is like Bool, but returns `def` if the key is missing.
func (f *File) BoolOr(key string, def bool) (bool, error) { return or(f, key, def, f.Bool) }

// String returns the value of a key, which must be a string. The string may contain invalid UTF-8. A missing
// key is an error.
func (f *File) String(key string) (string, error) {
	return scalar(f, key, "a string",
		func(v Value) (string, bool) { return string(v.raw), v.Kind == KindString })
}

// StringOr is like String, but returns `def` if the key is missing.
func (f *File) StringOr(key, def string) (string, error) { return or(f, key, def, f.String) }

// Strings returns the value of a key, which must be an array of strings. All returned strings share one copy
// of the array's bytes. A missing key is an error.
func (f *File) Strings(key string) ([]string, error) {
	v, err := f.value(key)
	if err != nil {
		return nil, err
	}
	if v.Kind != KindArray || v.Elem != KindString {
		return nil, f.errorf("metadata %q is %s; it must be an array of strings", key, v.Type())
	}
	if err := f.checkLen(key, v); err != nil {
		return nil, err
	}
	all := string(v.raw)
	out := make([]string, v.Len)
	for i := range out {
		n := int(binary.LittleEndian.Uint64([]byte(all[:8])))
		out[i], all = all[8:8+n], all[8+n:]
	}
	return out, nil
}
