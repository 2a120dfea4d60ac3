package trace

import (
	"runtime"
	"sync"
	"sync/atomic"

	"gpuscope/trace/internal/unknown"
)

// Reading a long trace takes most of its time for decoding steps, so the reader decodes values on all
// processors. It works in batches: it reads the JSON of one batch of values and starts to decode them.
// Meanwhile it reads the JSON of the next batch. The reader then adds the decoded values to the trace in
// their original order.

// A batch is complete when it has batchBytes bytes or more, or batchValues values.
const batchBytes, batchValues = 1 << 20, 256

// batch is a group of values that are decoded in parallel.
type batch[T any] struct {
	text   []byte // JSON of all values
	values []pending[T]
	done   sync.WaitGroup
}

// pending is one value of a batch: where its JSON is in batch.text, and the value after it was decoded.
type pending[T any] struct {
	from, to int   // range of bytes in batch.text
	at       int64 // approximate offset in the file
	line     int
	value    T
	unknown  *Unknown
	err      error
}

// cut replaces the content of the batch by the JSON of the next values. n is the number of values that
// earlier batches took from the list. `another` reports whether one more value follows. cut returns false if
// the batch ends with the last value.
func (b *batch[T]) cut(d *decoder, n int, another func(n int) (bool, error)) (bool, error) {
	clear(b.values)
	b.text, b.values = b.text[:0], b.values[:0]
	for len(b.text) < batchBytes && len(b.values) < batchValues {
		more, err := another(n + len(b.values))
		if err != nil || !more {
			return false, err
		}
		from := len(b.text)
		if b.text, err = d.json.Value(b.text); err != nil {
			d.failed = b.text[from:]
			return false, err
		}
		if err := d.fits(b.text[from:]); err != nil {
			return false, err
		}
		b.values = append(b.values, pending[T]{from: from, to: len(b.text), at: d.json.At, line: d.json.Line})
	}
	return true, nil
}

// decode starts to decode the values on all processors. The caller must wait for b.done before it uses the
// values.
func (b *batch[T]) decode() {
	var taken atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(b.values)) {
		b.done.Go(func() {
			for i := taken.Add(1) - 1; i < int64(len(b.values)); i = taken.Add(1) - 1 {
				p := &b.values[i]
				p.unknown, p.err = unknown.Decode(b.text[p.from:p.to], &p.value)
				p.err = fitting(p.err)
			}
		})
	}
}

// decodeEach decodes a list of values. For each value, in order, it calls `take` with the JSON of the value,
// the decoded value and its unknown fields. `another` reports whether one more value follows after the first
// n values. decodeEach returns the number of values that take accepted. If it also returns an error, the next
// value caused the error.
func decodeEach[T any](d *decoder, another func(n int) (bool, error),
	take func(raw []byte, v *T, unknown *Unknown) error,
) (taken int, err error) {
	now, next := &batch[T]{}, &batch[T]{}
	more, cut := now.cut(d, 0, another)
	for {
		now.decode()
		if more {
			more, cut = next.cut(d, taken+len(now.values), another)
		} else {
			next.values = next.values[:0]
		}
		now.done.Wait()
		for i := range now.values {
			p := &now.values[i]
			if err = p.err; err == nil {
				err = take(now.text[p.from:p.to], &p.value, p.unknown)
			}
			if err != nil {
				d.json.At, d.json.Line = p.at, p.line
				return taken, err
			}
			taken++
		}
		if len(next.values) == 0 {
			return taken, cut
		}
		now, next = next, now
	}
}
