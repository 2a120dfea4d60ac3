package trace

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Most of the time in which a long trace is read goes into decoding its steps. So they are cut off some at a
// time, decoded on all processors while the next are cut off, and taken in their order.

// A batch ends with the value that makes it so long, or so many.
const batchBytes, batchValues = 1 << 20, 256

// batch is values that are decoded at the same time.
type batch[T any] struct {
	text   []byte // of all of them
	values []pending[T]
	done   sync.WaitGroup
}

// pending is a value on its way.
type pending[T any] struct {
	from, to int   // of the batch's text
	at       int64 // about where it stands in the file
	value    T
	unknown  *Unknown
	err      error
}

// cut fills the batch with values, n of which were there before, while there is another. It returns false
// after the last.
func (b *batch[T]) cut(d *decoder, n int, another func(n int) (bool, error)) (bool, error) {
	clear(b.values)
	b.text, b.values = b.text[:0], b.values[:0]
	for len(b.text) < batchBytes && len(b.values) < batchValues {
		more, err := another(n + len(b.values))
		if err != nil || !more {
			return false, err
		}
		from := len(b.text)
		if b.text, err = d.json.value(b.text); err != nil {
			return false, err
		}
		if err := d.fits(b.text[from:]); err != nil {
			return false, err
		}
		b.values = append(b.values, pending[T]{from: from, to: len(b.text), at: d.json.at})
	}
	return true, nil
}

// decode begins to decode the values, on all processors; done waits for it.
func (b *batch[T]) decode() {
	var taken atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(b.values)) {
		b.done.Go(func() {
			for i := taken.Add(1) - 1; i < int64(len(b.values)); i = taken.Add(1) - 1 {
				p := &b.values[i]
				p.unknown, p.err = decodeRecord(b.text[p.from:p.to], &p.value)
				p.err = fitting(p.err)
			}
		})
	}
}

// decodeEach decodes values one after the other, while there is another after the n that were cut off, and
// gives each to take, with its text and what it holds that its type does not. It returns how many were taken:
// an error is about the one after them.
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
				d.json.at = p.at
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
