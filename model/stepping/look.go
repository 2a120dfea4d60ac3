package stepping

import (
	"context"
	"fmt"
	"math"

	"gpuscope/engine"
	"gpuscope/engine/graph"
	"gpuscope/ops"
	"gpuscope/ops/reference"
	"gpuscope/session"
	"gpuscope/trace"
)

// The command look reads the elements of a value. After a step, other values may have overwritten the memory
// of the requested value. The step therefore runs again up to the requested dispatch, after which the value
// is read. The elements are the same as in the first run, because the KV cache still contains everything that
// the step read. If a value is read several times after the same dispatch, the step runs again only once.

// Nowhere is used as a step index to mean no step.
const Nowhere = -1

// replayed describes the last replay: the step that ran again, the last dispatch that ran, and the value for
// which it ran. Only this value is certain to be intact in memory. To read another value, the step must run
// again.
type replayed struct {
	step  int
	after trace.DispatchID
	value trace.ValueID
}

// beginLook checks a look command before any step is run.
func (s *Session) beginLook(c session.Command) (Work, error) {
	if c.At == nil {
		return nil, session.Refusef("look: no value given")
	}
	at := *c.At
	g := s.Graph
	if at.Value < 0 || int(at.Value) >= g.NumValues() {
		return nil, session.Refusef("look: there is no value %d; the graph has %d values", at.Value,
			g.NumValues())
	}
	v := g.Value(at.Value)
	switch {
	case v.SymInt:
		return nil, session.Refusef("look: %s is not a tensor but an integer on the host; the record of the step contains its value", v.Name)
	case v.Role == graph.Fused:
		return nil, session.Refusef("look: %s is fused away, so it is never in memory",
			v.Name)
	case at.Offset < 0 || at.Count < 0 || at.Count > session.MostNumbers || at.Rows < 0 || at.Stride < 0 ||
		at.Rows > 0 && at.Count > session.MostNumbers/at.Rows:
		return nil, session.Refusef("look: invalid request for %s, starting at element %d; the maximum is %d elements",
			pageText(at), at.Offset, session.MostNumbers)
	}
	var t *Step
	if v.Role != graph.Constant {
		of, err := s.stepOf(at.Step)
		if err != nil {
			return nil, err
		}
		t = &of
	}
	return func(ctx context.Context, r *session.Reply) error { return s.look(ctx, at, t, r) }, nil
}

func pageText(at session.LookAt) string {
	if at.Rows > 0 {
		return fmt.Sprintf("%d rows of %d elements with a stride of %d", at.Rows, at.Count, at.Stride)
	}
	return fmt.Sprintf("%d elements", at.Count)
}

// stepOf returns the step with the given index, or the current step if `step` is nil.
func (s *Session) stepOf(step *int) (Step, error) {
	t, ok := s.host.Current()
	if !ok {
		return t, errNoStep
	}
	if step == nil {
		return t, nil
	}
	if t, ok = s.host.Find(*step); !ok {
		return t, session.Refusef("step %d cannot run again: the text was stepped back before it, or another text has begun",
			*step)
	}
	return t, nil
}

// look reads the requested elements and statistics of a value. t is nil for a constant, which no step
// changes.
func (s *Session) look(ctx context.Context, at session.LookAt, t *Step, r *session.Reply) error {
	out := &session.Tensor{Value: at.Value}
	if t != nil {
		if err := s.replayTo(ctx, at, *t, out); err != nil {
			return err
		}
	}
	n := s.numbers(at.Value)
	out.DType, out.Dims, out.Offset = n.dtype, n.dims, min(at.Offset, n.count)
	for row := range max(at.Rows, 1) {
		first := out.Offset + row*min(at.Stride, n.count)
		if first >= n.count {
			break
		}
		part, err := n.read(first, min(at.Count, n.count-first))
		if err != nil {
			return err
		}
		for _, v := range part {
			out.Numbers = append(out.Numbers, trace.Number(v))
		}
	}
	if at.Statistics {
		name := s.Graph.Value(at.Value).Name
		tell := s.Progress()
		var err error
		out.Statistics, err = statistics(ctx, n, func(done, total int) error {
			return tell("reading "+name, done, total)
		})
		if err != nil {
			return fmt.Errorf("statistics of %s: %w", name, err)
		}
	}
	r.Tensor = out
	return nil
}

// replayTo runs step t again up to at.After, or up to the last dispatch that writes the value if at.After is
// nil. It stores the id of this last dispatch in out.After.
func (s *Session) replayTo(ctx context.Context, at session.LookAt, t Step, out *session.Tensor) error {
	out.Step = &t.Index
	if s.Ran != t.Index {
		differs, err := s.Again(ctx, t, engine.TimingOff)
		if err != nil {
			return err
		}
		if differs != "" {
			why := "the device does not compute the same result twice"
			if len(s.Edited()) > 0 {
				why = "an edited kernel is in use"
			}
			return fmt.Errorf("step %d %s: %s", t.Index, differs, why)
		}
	}
	x := s.Exec
	writers := x.Writers(at.Value)
	v := s.Graph.Value(at.Value)
	switch {
	case at.After != nil:
		out.After = at.After
	case len(writers) > 0:
		out.After = &writers[len(writers)-1]
	case v.Role == graph.Input:
		return nil
	case x.Live().Deferred(at.Value):
		return fmt.Errorf("no dispatch writes %s in step %d: the value is fused into the operators that read it", v.Name, t.Index)
	default:
		return fmt.Errorf("no dispatch writes %s in step %d: the operator of this value runs on a route that does not compute the value",
			v.Name, t.Index)
	}
	if to := (replayed{t.Index, *out.After, at.Value}); s.looked != to {
		s.looked = replayed{step: Nowhere}
		if err := s.replayLook(ctx, engine.Look{After: to.after, Value: at.Value}); err != nil {
			return err
		}
		s.looked = to
	}
	return nil
}

// numbers gives access to the elements of a value as float64. The elements are read from the device only when
// read is called.
type numbers struct {
	dtype string
	dims  []int
	count int
	read  reader
}

// reader is a function that returns n consecutive elements, starting with the element at index first.
type reader func(first, n int) ([]float64, error)

// numbers gives access to the current elements of a value. If the value is a matrix in a storage format such
// as Q4_0, the elements are the decoded weights.
func (s *Session) numbers(v graph.ValueID) numbers {
	for m := range ops.StoredMatrices(s.Graph) {
		if m.Arrays[0] != v {
			continue
		}
		read := func(first, n int) ([]float64, error) {
			if n == 0 {
				return nil, nil
			}
			row := first / m.Cols
			rows, err := m.Read(row, (first+n-1)/m.Cols-row+1)
			if err != nil {
				return nil, err
			}
			return rows[first-row*m.Cols:][:n], nil
		}
		return numbers{m.Format, []int{m.Rows, m.Cols}, m.Rows * m.Cols, read}
	}
	x, info := s.Exec, s.Graph.Value(v)
	count := 1
	dims := x.LiveDims(v)
	for _, d := range dims {
		count *= d
	}
	read := func(first, n int) ([]float64, error) {
		if n == 0 {
			return nil, nil
		}
		const together = 8 // 8 elements of any type fill whole 32-bit words
		whole := first / together * together
		var from int64
		if whole > 0 {
			from = info.DType.Bytes(whole)
		}
		data := make([]byte, info.DType.Bytes(first+n-whole))
		if err := x.ReadPart(v, uint64(from), data); err != nil {
			return nil, err
		}
		list, err := reference.Decode(info.DType, data, first+n-whole)
		if err != nil {
			return nil, err
		}
		return list[first-whole:], nil
	}
	if info.Column != nil {
		read = inOrder(read, count, info.Column)
	}
	return numbers{info.DType.String(), dims, count, read}
}

// inOrder converts a reader of elements in stored order to a reader of elements in column order. The value
// has one row of `count` elements. `column` returns the column of the element that is stored at an index.
func inOrder(read reader, count int, column func(at int) int) reader {
	return func(first, n int) ([]float64, error) {
		list, err := read(0, count)
		if err != nil {
			return nil, err
		}
		row := make([]float64, count)
		for at, v := range list {
			row[column(at)] = v
		}
		return row[first:][:n], nil
	}
}

// statisticsPiece is the number of elements that statistics reads at a time. A cancellation takes effect
// after the current piece.
const statisticsPiece = 1 << 20

// statistics computes the statistics of all elements in two passes. The first pass finds the range and the
// mean. The second pass uses these to compute the standard deviation and the histogram.
func statistics(ctx context.Context, n numbers, progress func(done, total int) error) (
	*session.Statistics, error,
) {
	s := &session.Statistics{Elements: n.count, Min: math.Inf(1), Max: math.Inf(-1)}
	each := func(pass int, f func(i int, v float64)) error {
		for first := 0; first < n.count; first += statisticsPiece {
			if err := ctx.Err(); err != nil {
				return err
			}
			if n.count > statisticsPiece {
				if err := progress(pass*n.count+first, 2*n.count); err != nil {
					return err
				}
			}
			list, err := n.read(first, min(statisticsPiece, n.count-first))
			if err != nil {
				return err
			}
			for i, v := range list {
				f(first+i, v)
			}
		}
		return nil
	}
	var sum float64
	err := each(0, func(i int, v float64) {
		if s.FirstOdd == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			s.FirstOdd = &i
		}
		switch {
		case math.IsNaN(v):
			s.NaN++
			return
		case math.IsInf(v, 1):
			s.PosInf++
			return
		case math.IsInf(v, -1):
			s.NegInf++
			return
		case v == 0:
			s.Zeros++
		}
		s.Min, s.Max, sum = min(s.Min, v), max(s.Max, v), sum+v
	})
	if err != nil {
		return nil, err
	}
	finite := s.Finite()
	if finite == 0 {
		s.Min, s.Max = 0, 0
		return s, nil
	}
	s.Mean, s.Histogram = sum/float64(finite), make([]int, session.HistogramBins)
	var squares float64
	err = each(1, func(_ int, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		squares += (v - s.Mean) * (v - s.Mean)
		bin := 0
		if s.Max > s.Min {
			bin = min(int((v-s.Min)/(s.Max-s.Min)*session.HistogramBins), session.HistogramBins-1)
		}
		s.Histogram[bin]++
	})
	s.Std = math.Sqrt(squares / float64(finite))
	return s, err
}
