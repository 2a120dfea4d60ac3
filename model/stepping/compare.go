package stepping

import (
	"context"
	"fmt"
	"math"

	"gpuscope/engine/graph"
	"gpuscope/session"
	"gpuscope/trace"
)

// The command look can have a baseline. It then shows how the elements of a value differ between two steps.
// The device holds the values of one step at a time. The session therefore runs the baseline's step first,
// copies the value to memory, and then runs the other step. It keeps the copy for further looks, until
// another command.

// MaxBaseline is the maximum size in bytes of a value that can be compared with its baseline.
const MaxBaseline = 512 << 20

// kept is the value of a baseline, copied from the device.
type kept struct {
	key   keptKey
	after *trace.DispatchID
	numbers
}

// keptKey identifies a copy: the value `value` of the step `step`, right after the dispatch `after`. If
// `after` is -1, the value was copied after the last dispatch that writes it.
type keptKey struct {
	step  int
	after trace.DispatchID
	value graph.ValueID
}

// keep copies the value of a baseline from the device. It does nothing if the session already has the copy.
func (s *Session) keep(ctx context.Context, at session.LookAt, t Step) error {
	key := keptKey{t.Index, -1, at.Value}
	if at.Baseline.After != nil {
		key.after = *at.Baseline.After
	}
	if s.kept != nil && s.kept.key == key {
		return nil
	}
	s.kept = nil
	var out session.Tensor
	at.After = at.Baseline.After
	if err := s.replayTo(ctx, at, t, &out); err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	x, info := s.Exec, s.Graph.Value(at.Value)
	size := x.LiveSize(at.Value)
	if size > MaxBaseline {
		return session.Refusef("compare %s: in step %d, this value has %d bytes; the limit is %d. Export the value in each of the two steps instead",
			info.Name, t.Index, size, int64(MaxBaseline))
	}
	data := make([]byte, size)
	tell := s.Progress()
	const piece = 4 * scanPiece
	for from := 0; from < len(data); from += piece {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(data) > piece {
			if err := tell("reading "+info.Name+" of the baseline", from, len(data)); err != nil {
				return err
			}
		}
		if err := x.ReadPart(at.Value, uint64(from), data[from:min(from+piece, len(data))]); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
	}
	s.kept = &kept{key, out.After, elementsOf(info, x.LiveDims(at.Value), func(from uint64, to []byte) error {
		copy(to, data[from:])
		return nil
	})}
	return nil
}

// pair compares a value in two steps. If the sizes of the value differ, only indices that exist in both steps
// are compared. The number of dims must be the same.
type pair struct {
	numbers // the differences
	a, b    reader
}

// pairOf compares a and b at the indices that exist in both. The elements of the pair are the differences a -
// b.
func pairOf(a, b numbers) pair {
	dims, count := make([]int, len(a.dims)), 1
	for i := range dims {
		dims[i] = min(a.dims[i], b.dims[i])
		count *= dims[i]
	}
	p := pair{a: part(a, dims), b: part(b, dims)}
	p.numbers = numbers{a.dtype, dims, count, func(first, n int) ([]float64, error) {
		list, err := p.a(first, n)
		if err != nil {
			return nil, err
		}
		minus, err := p.b(first, n)
		for i, b := range minus {
			list[i] = difference(list[i], b)
		}
		return list, err
	}}
	return p
}

// difference returns a - b. The difference of two equal infinite numbers is 0.
func difference(a, b float64) float64 {
	if a == b {
		return 0
	}
	return a - b
}

// part returns a reader for a part of a value. The part has the given dims, and begins at index 0 in each
// dim.
func part(n numbers, dims []int) reader {
	outer := len(dims) - 1 // the dims after this one are the same
	for outer >= 0 && dims[outer] == n.dims[outer] {
		outer--
	}
	if outer < 0 {
		return n.read
	}
	run, stride := 1, 1 // elements that follow each other, in the part and in the whole value
	for i := outer; i < len(dims); i++ {
		run *= dims[i]
		stride *= n.dims[i]
	}
	return func(first, count int) ([]float64, error) {
		list := make([]float64, 0, count)
		for len(list) < count {
			at := first + len(list)
			block, scale := 0, 1 // index of the run in the whole value
			for i, rest := outer-1, at/run; i >= 0; i-- {
				block += rest % dims[i] * scale
				rest /= dims[i]
				scale *= n.dims[i]
			}
			some, err := n.read(block*stride+at%run, min(run-at%run, count-len(list)))
			if err != nil {
				return nil, err
			}
			list = append(list, some...)
		}
		return list, nil
	}
}

// compare computes the size of the differences in one pass over all elements.
func (s *scan) compare(p *pair) (*session.Difference, error) {
	d := &session.Difference{Elements: p.count}
	var sum, squares, dot, ofA, ofB float64
	finite := 0
	err := s.pieces(p.a, func(first int, list []float64) error {
		minus, err := p.b(first, len(list))
		for i, b := range minus {
			a := list[i]
			if a != b {
				d.Differ++
			}
			diff := difference(a, b)
			if math.IsNaN(diff) || math.IsInf(diff, 0) {
				d.NotFinite++
				continue
			}
			if size := math.Abs(diff); size > d.MaxAbs {
				at := first + i
				d.MaxAbs, d.MaxAt = size, &at
			}
			if math.IsInf(a, 0) { // both are the same
				continue
			}
			finite++
			sum, squares = sum+math.Abs(diff), squares+diff*diff
			dot, ofA, ofB = dot+a*b, ofA+a*a, ofB+b*b
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if finite > 0 {
		d.MeanAbs = sum / float64(finite)
	}
	if ofB > 0 {
		rel := math.Sqrt(squares / ofB)
		d.Relative = &rel
	}
	if ofA > 0 && ofB > 0 {
		cos := dot / (math.Sqrt(ofA) * math.Sqrt(ofB))
		d.Cosine = &cos
	}
	return d, nil
}
