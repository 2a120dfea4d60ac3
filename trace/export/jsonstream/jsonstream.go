// Package jsonstream writes large JSON files piece by piece. Memory use does not depend on the size of the
// file. The caller calls the methods in the order of the text; the writer adds commas.
package jsonstream

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
)

// flushAt is the number of bytes that a Writer collects before it writes them.
const flushAt = 1 << 16

// Writer writes one JSON value. It keeps the first error of the underlying writer for Flush.
type Writer struct {
	out  io.Writer
	b    []byte
	last byte // last byte before b; 0 at the beginning
	line bool // a newline follows the next comma
	err  error
}

// New returns a Writer to out.
func New(out io.Writer) *Writer { return &Writer{out: out, b: make([]byte, 0, flushAt+1<<12)} }

// Members returns the text that f writes: members of an object or elements of an array, for Raw.
func Members(f func(w *Writer)) []byte {
	w := &Writer{out: io.Discard, last: '{'}
	f(w)
	return w.b
}

// begin writes the comma before a value or a key, if one is needed.
func (w *Writer) begin() {
	if len(w.b) >= flushAt {
		w.write()
	}
	if n := len(w.b); n > 0 {
		w.last = w.b[n-1]
	}
	switch w.last {
	case 0, '{', '[', ':':
	default:
		w.b = append(w.b, ',')
	}
	if w.line {
		w.b, w.line = append(w.b, '\n'), false
	}
}

// write writes the collected bytes.
func (w *Writer) write() {
	if len(w.b) == 0 {
		return
	}
	w.last = w.b[len(w.b)-1]
	if w.err == nil {
		_, w.err = w.out.Write(w.b)
	}
	w.b = w.b[:0]
}

// Flush writes what was collected, and a newline. It returns the first error.
func (w *Writer) Flush() error {
	w.b = append(w.b, '\n')
	w.write()
	return w.err
}

// Err returns the first error so far. A long loop can end when it is not nil.
func (w *Writer) Err() error { return w.err }

// Line puts the next value on a new line.
func (w *Writer) Line() { w.line = true }

// Object begins an object. Each key must be followed by one value.
func (w *Writer) Object() { w.begin(); w.b = append(w.b, '{') }

// EndObject ends an object.
func (w *Writer) EndObject() { w.b = append(w.b, '}') }

// Array begins an array.
func (w *Writer) Array() { w.begin(); w.b = append(w.b, '[') }

// EndArray ends an array.
func (w *Writer) EndArray() { w.b = append(w.b, ']') }

// Key writes the key of a member. The key must not contain characters that JSON escapes.
func (w *Writer) Key(key string) {
	w.begin()
	w.b = append(append(append(w.b, '"'), key...), '"', ':')
}

// Raw writes JSON text as it is: a value, or the result of Members. The text must not be empty.
func (w *Writer) Raw(text []byte) { w.begin(); w.b = append(w.b, text...) }

// String writes a string.
func (w *Writer) String(s string) { w.begin(); w.b = appendString(w.b, s) }

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			text, _ := json.Marshal(s) // a string has no errors
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Int writes an integer.
func (w *Writer) Int(n int64) { w.begin(); w.b = strconv.AppendInt(w.b, n, 10) }

// IntString writes an integer as a string: some formats do so because many readers of JSON lose the precision
// of large integers.
func (w *Writer) IntString(n int64) {
	w.begin()
	w.b = append(w.b, '"')
	w.b = append(strconv.AppendInt(w.b, n, 10), '"')
}

// Float writes a number. JSON has no way to write NaN and infinities; Float writes null for them.
func (w *Writer) Float(v float64) {
	w.begin()
	if math.IsNaN(v) || math.IsInf(v, 0) {
		w.b = append(w.b, "null"...)
		return
	}
	w.b = strconv.AppendFloat(w.b, v, 'g', -1, 64)
}

// Bool writes true or false.
func (w *Writer) Bool(v bool) { w.begin(); w.b = strconv.AppendBool(w.b, v) }

// Micros writes a time as a number of µs. `ns` is the time in ns. The written number has three decimals, so
// it is exact.
func (w *Writer) Micros(ns int64) {
	w.begin()
	u := uint64(ns)
	if ns < 0 {
		w.b = append(w.b, '-')
		u = -u
	}
	w.b = strconv.AppendUint(w.b, u/1000, 10)
	u %= 1000
	w.b = append(w.b, '.', byte('0'+u/100), byte('0'+u/10%10), byte('0'+u%10))
}

// StringMember writes a member whose value is a string.
func (w *Writer) StringMember(key, value string) { w.Key(key); w.String(value) }

// IntMember writes a member whose value is an integer.
func (w *Writer) IntMember(key string, value int64) { w.Key(key); w.Int(value) }

// IntsMember writes a member whose value is an array of integers.
func (w *Writer) IntsMember(key string, values ...int) {
	w.Key(key)
	w.Array()
	for _, v := range values {
		w.Int(int64(v))
	}
	w.EndArray()
}
