package session

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"reflect"
	"unsafe"

	"gpuscope/trace"
)

// This file and form.go define the binary encoding of messages. Each message starts with its length in
// bytes.
//
// A struct is encoded as a field count followed by its fields in the order of the Go type, without names.
// Zero fields at the end are left out. Names are unnecessary because both ends are the same program: the
// engine starts by sending a protocol fingerprint, which is computed from the message types. Integers and
// lengths are varints. Floats have 8 bytes. Strings and lists start with their length. A value that can be
// nil starts with a byte or a length that marks nil. Values that repeat often start with their size in bytes,
// so that a receiver can recognize and reuse an earlier copy. Two types have special encodings. One is the
// plan, because plans often repeat. The other is the list of dispatches, because without timing most
// dispatches have only a plan. Interface values are encoded as JSON.
//
// The encoding carries only what JSON can carry, so everything received over a pipe can be written to a
// file. Fields without a JSON name are not sent. A float must be finite unless its type has its own JSON
// encoding.

const (
	wireForm    = "binary 3" // version of this encoding, part of the fingerprint
	mostMessage = 1 << 28    // maximum message size in bytes; the header of a large graph has millions
	lastTexts   = 1 << 10    // size of the receiver's cache of strings
	shortText   = 64         // maximum length in bytes of a cached string
	lastAlike   = 1 << 10    // size of the receiver's cache of values that repeat often
)

// The errors of a malformed message.
var (
	errTooLarge = errors.New("message too large")
	errUnread   = errors.New("a message has extra bytes after its last field")
	errShort    = errors.New("a message is too short for its fields")
	errHeader   = errors.New("a length in a message is wrong")
	errPlanRef  = errors.New("a message refers to an unknown plan")
)

// errNotFinite is the error for a float that encoding/json rejects too.
var errNotFinite = errors.New("this field cannot hold NaN or Inf")

// wireWriter encodes messages. If encoding fails, it keeps the first error.
type wireWriter struct {
	b     []byte
	plans []*trace.Plan // plans of this message that have been written so far
	err   error
}

// wireBytes returns an encoded message, which begins with its length. The error is not nil if the message
// contains a value that cannot be encoded.
func wireBytes[T any](m *T) ([]byte, error) {
	w := wireWriter{b: make([]byte, binary.MaxVarintLen64, 512)}
	formOf(reflect.TypeFor[T]()).put(&w, reflect.ValueOf(m).Elem())
	body := len(w.b) - binary.MaxVarintLen64
	if w.err == nil && body > mostMessage {
		w.err = fmt.Errorf("%w: it has %d bytes, but the maximum is %d", errTooLarge, body, mostMessage)
	}
	head := binary.AppendUvarint(nil, uint64(body))
	from := binary.MaxVarintLen64 - len(head)
	copy(w.b[from:], head)
	return w.b[from:], w.err
}

func (w *wireWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func flag(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (w *wireWriter) length(n int) { w.b = binary.AppendUvarint(w.b, uint64(n)) }

func (w *wireWriter) float(f float64, wild bool) {
	if !wild && (math.IsNaN(f) || math.IsInf(f, 0)) {
		w.fail(errNotFinite)
	}
	w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(f))
}

func (w *wireWriter) text(s string) {
	w.length(len(s))
	w.b = append(w.b, s...)
}

// wireReader decodes messages. It caches short strings because most of them repeat in every step.
type wireReader struct {
	in   *bufio.Reader
	body bytes.Buffer
	all  []byte // bytes of the message body
	// at is the offset in `all` of the next byte to read. An offset is faster than a slice of the unread
	// bytes, because each update of a slice pointer needs a GC write barrier.
	at    int
	err   error // first error of the current message
	seed  maphash.Seed
	texts [lastTexts]string // cache of short strings, indexed by hash
	plans []*trace.Plan     // plans of this message that have been read so far

	blocks []block // indexed by stock.place
	alike  [lastAlike]alike
}

// alike is an entry in the cache of values that repeat often. It holds the encoded bytes (said) and the
// decoded value (is).
type alike struct {
	of   *form
	said string
	is   unsafe.Pointer
}

func newWireReader(r io.Reader) *wireReader {
	return &wireReader{in: bufio.NewReaderSize(r, 1<<16), seed: maphash.MakeSeed()}
}

// receive decodes the next message into m. It returns io.EOF if there are no more messages.
func receive[T any](r *wireReader, m *T) error {
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return err
	}
	if n > mostMessage {
		return fmt.Errorf("%w: %d bytes, want at most %d", errTooLarge, n, mostMessage)
	}
	r.body.Reset()
	if _, err := io.CopyN(&r.body, r.in, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	r.all, r.at, r.err, r.plans = r.body.Bytes(), 0, nil, r.plans[:0]
	formOf(reflect.TypeFor[T]()).take(r, unsafe.Pointer(m))
	if r.err == nil && r.left() > 0 {
		r.err = fmt.Errorf("%w: %d of %d bytes", errUnread, r.left(), n)
	}
	return r.err
}

// fail records an error, unless there is an earlier one, and skips the rest of the message, so that later
// reads return zero.
func (r *wireReader) fail(err error) {
	if err != nil && r.err == nil {
		r.err, r.at = err, len(r.all)
	}
}

// left returns the number of unread bytes of the message.
func (r *wireReader) left() int { return len(r.all) - r.at }

func (r *wireReader) uvarint() uint64 {
	if r.at < len(r.all) && r.all[r.at] < 0x80 { // fast path: most numbers have one byte
		r.at++
		return uint64(r.all[r.at-1])
	}
	x, n := binary.Uvarint(r.all[r.at:])
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.at += n
	return x
}

func (r *wireReader) varint() int64 {
	x := r.uvarint()
	return int64(x>>1) ^ -int64(x&1)
}

func (r *wireReader) flag() bool {
	n := r.uvarint()
	if n > 1 {
		r.fail(fmt.Errorf("a boolean is encoded as %d; want 0 or 1", n))
	}
	return n == 1
}

// length reads the length of a list and checks that this many elements fit in the rest of the message.
// `least` is the minimum size of an element in bytes. The check allows one extra element because a list is
// encoded with its length plus 1.
func (r *wireReader) length(least int) int {
	n := r.uvarint()
	if n > uint64(r.left()/max(1, least))+1 {
		r.fail(fmt.Errorf("%w: a length is %d, but only %d bytes remain", errShort, n, r.left()))
		return 0
	}
	return int(n)
}

func (r *wireReader) bytes(n int) []byte {
	if n > r.left() {
		r.fail(fmt.Errorf("%w: want %d bytes, %d remain", errShort, n, r.left()))
		return nil
	}
	r.at += n
	return r.all[r.at-n : r.at]
}

func (r *wireReader) float(wild bool) float64 {
	b := r.bytes(8)
	if b == nil {
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if !wild && (math.IsNaN(f) || math.IsInf(f, 0)) {
		r.fail(errNotFinite)
	}
	return f
}

func (r *wireReader) text() string {
	b := r.bytes(r.length(1))
	if len(b) > shortText {
		return string(b)
	}
	same := &r.texts[maphash.Bytes(r.seed, b)%lastTexts]
	if *same != string(b) {
		*same = string(b)
	}
	return *same
}
