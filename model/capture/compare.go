package capture

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"gpuscope/engine/graph"
	"gpuscope/ops/reference"
	"gpuscope/trace"
)

// Output compares what a replay wrote to a binding with what the captured dispatch wrote.
type Output struct {
	Binding  string `json:"binding"`
	Value    string `json:"value,omitempty"`
	Elements int    `json:"elements"`
	Differ   int    `json:"differ"` // elements that are not equal
	// Exceed is the number of elements that differ by more than the tolerance, or are NaN on one side only.
	Exceed int `json:"exceed"`
	NaN    int `json:"nan"` // elements that are NaN, although the expected element is not
	// MaxAbs is the largest difference, and Element the index of the element that differs most. MaxAbs is
	// infinite if an element is infinite on one side only, or has the other sign there. It is NaN if an
	// element is NaN on one side only, and Element is then the first such element.
	MaxAbs  trace.Number `json:"max_abs"`
	Element int          `json:"element"`
	// Largest is the largest absolute value among the finite expected elements, or 0 if there are none.
	Largest trace.Number `json:"largest"`
}

// compare reads binding i and compares its content with the expected content.
func (r *replay) compare(ctx context.Context, i int, tolerance float64) (Output, error) {
	b := &r.c.Bindings[i]
	got := make([]byte, b.size)
	readback, err := r.dev.NewReadback("replay", uint64(min(max(b.size, 4), piece)))
	if err != nil {
		return Output{}, err
	}
	defer readback.Release()
	for at := int64(0); at < b.size; at += piece {
		if err := ctx.Err(); err != nil {
			return Output{}, err
		}
		part := got[at:min(at+piece, b.size)]
		enc, err := r.dev.Begin("replay")
		if err != nil {
			return Output{}, err
		}
		if err := enc.CopyOut(r.buffers[i], uint64(at), readback, 0, uint64(len(part))); err != nil {
			enc.Discard()
			return Output{}, err
		}
		if err := enc.Submit(); err != nil {
			return Output{}, err
		}
		if err := r.dev.Wait(); err != nil {
			return Output{}, err
		}
		if err := readback.Read(part, 0); err != nil {
			return Output{}, fmt.Errorf("read binding %s: %w", b.Name, err)
		}
	}
	return b.compare(got, tolerance)
}

// decoded is the number of elements that are compared at a time. It is a multiple of the number of elements
// in a 32-bit word.
const decoded = 1 << 16

// compare compares the content that a replay wrote to the binding with the expected content.
func (b *Binding) compare(got []byte, tolerance float64) (Output, error) {
	out := Output{Binding: b.Name, Value: b.Value, Elements: graph.Numel(b.Dims)}
	// `each` calls f for every element if `all` is true. Otherwise it may skip elements whose bits are equal.
	each := func(all bool, f func(i int, got, want float64)) error {
		for first := 0; first < out.Elements; first += decoded {
			n := min(decoded, out.Elements-first)
			from := b.dtype.Bytes(first)
			to := from + b.dtype.Bytes(n)
			if !all && bytes.Equal(got[from:to], b.after[from:to]) {
				continue
			}
			have, err := reference.Decode(b.dtype, got[from:to], n)
			if err != nil {
				return err
			}
			want, err := reference.Decode(b.dtype, b.after[from:to], n)
			if err != nil {
				return err
			}
			for i := range want {
				f(first+i, have[i], want[i])
			}
		}
		return nil
	}
	largest := 0.0
	err := each(true, func(_ int, _, want float64) {
		if v := math.Abs(want); !math.IsNaN(v) && !math.IsInf(v, 0) {
			largest = max(largest, v)
		}
	})
	if err != nil {
		return out, err
	}
	limit := tolerance * largest
	if b.dtype == graph.I32 || b.dtype == graph.U32 {
		limit = 0
	}
	worst := 0.0
	err = each(false, func(i int, got, want float64) {
		if got == want || math.IsNaN(got) && math.IsNaN(want) {
			return
		}
		out.Differ++
		off := math.Abs(got - want) // NaN if one side is NaN
		if math.IsNaN(got) {
			out.NaN++
		}
		if !(off <= limit) {
			out.Exceed++
		}
		if !(off <= worst) && !math.IsNaN(worst) {
			worst, out.Element = off, i
		}
	})
	out.MaxAbs, out.Largest = trace.Number(worst), trace.Number(largest)
	return out, err
}
