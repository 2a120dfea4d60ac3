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

// The binary form of messages. A message follows its length. A struct is the number of its fields that
// follow, in the order of its type and with no names, up to the last that is not zero: both ends are one
// program, and the protocol that the engine names first is that of the types. Integers and lengths are
// varints, floats have 8 bytes, texts and lists follow their length, what may be nil after a byte or a
// length that says so. What is often the same follows how many bytes it has; plans that are the same
// for several dispatches, and lists of dispatches with plans alone, have forms of their own. What may be
// anything is JSON.
//
// What JSON does not carry does not cross either: fields that have no name there, and floats that are not
// finite, but in types that have JSON of their own. So what has come over a pipe can be written to a file.

const (
	wireForm    = "binary 3" // the above
	mostMessage = 1 << 28    // bytes; the header of a large graph has millions
	lastTexts   = 1 << 10    // that a receiver remembers
	shortText   = 64         // bytes, at most, of those
	lastAlike   = 1 << 10    // things, of those that are often the same
)

// errNotFinite is what JSON says of such a float too.
// What is wrong with a message.
var (
	errTooLarge = errors.New("message too large")
	errUnread   = errors.New("unread bytes at the end of a message")
	errShort    = errors.New("message too short for its fields")
	errHeader   = errors.New("wrong length in a header")
	errPlanRef  = errors.New("reference to an unknown plan")
)

var errNotFinite = errors.New("NaN and Inf cannot be sent in this field")

// wireWriter makes messages. The first error stays.
type wireWriter struct {
	b     []byte
	plans []*trace.Plan // of the message
	err   error
}

// wireBytes is a message as it is sent. Its error says what of the message cannot cross.
func wireBytes[T any](m *T) ([]byte, error) {
	w := wireWriter{b: make([]byte, binary.MaxVarintLen64, 512)}
	formOf(reflect.TypeFor[T]()).put(&w, reflect.ValueOf(m).Elem())
	body := len(w.b) - binary.MaxVarintLen64
	if w.err == nil && body > mostMessage {
		w.err = fmt.Errorf("%w: %d bytes, want at most %d", errTooLarge, body, mostMessage)
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

// flag is a bool as a length.
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

// wireReader takes messages. It remembers texts: most are in every step.
type wireReader struct {
	in    *bufio.Reader
	body  bytes.Buffer
	all   []byte // of the body
	at    int    // in it: a pointer would be told to the garbage collector with every number
	err   error  // the first about this message
	seed  maphash.Seed
	texts [lastTexts]string // by their hash
	plans []*trace.Plan     // of the message

	blocks []block // by stock.place
	alike  [lastAlike]alike
}

// alike is what was received last of a form, and of the bytes with that hash.
type alike struct {
	of   *form
	said string
	is   unsafe.Pointer
}

func newWireReader(r io.Reader) *wireReader {
	return &wireReader{in: bufio.NewReaderSize(r, 1<<16), seed: maphash.MakeSeed()}
}

// receive takes the next message; io.EOF where there is none.
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
		r.err = fmt.Errorf("%w: %d of %d", errUnread, r.left(), n)
	}
	return r.err
}

// fail ends the message: what is still asked of it is zero.
func (r *wireReader) fail(err error) {
	if err != nil && r.err == nil {
		r.err, r.at = err, len(r.all)
	}
}

// left is how many bytes of the message are.
func (r *wireReader) left() int { return len(r.all) - r.at }

func (r *wireReader) uvarint() uint64 {
	if r.at < len(r.all) && r.all[r.at] < 0x80 { // as most are
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
		r.fail(fmt.Errorf("%d is not a boolean", n))
	}
	return n == 1
}

// length is how many things follow, of so many bytes at least; one less may be meant.
func (r *wireReader) length(least int) int {
	n := r.uvarint()
	if n > uint64(r.left()/max(1, least))+1 {
		r.fail(fmt.Errorf("%w: length %d with %d bytes remaining", errShort, n, r.left()))
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
