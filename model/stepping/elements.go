package stepping

import (
	"context"
	"math"

	"gpuscope/engine/graph"
	"gpuscope/ops"
	"gpuscope/ops/reference"
	"gpuscope/session"
	"gpuscope/trace"
)

// numbers gives access to the elements of a value as float64. The elements are read from the device only when
// read is called.
type numbers struct {
	dtype string
	dims  []int
	count int
	read  reader
}

// reader is a function that returns n consecutive elements, starting with the element at index `first`.
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
	return elementsOf(s.Graph.Value(v), s.Exec.LiveDims(v), func(from uint64, data []byte) error {
		return s.Exec.ReadPart(v, from, data)
	})
}

// elementsOf gives access to the elements of a tensor with the given dims. `fetch` fills data with the bytes
// of the tensor from an offset on.
func elementsOf(info graph.ValueInfo, dims []int, fetch func(from uint64, data []byte) error) numbers {
	count := 1
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
		if err := fetch(uint64(from), data); err != nil {
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

// scanPiece is the number of elements that a scan reads at a time. A cancellation takes effect after the
// current piece.
const scanPiece = 1 << 20

// scan reads all elements of a value, in one or more passes. It holds one piece of them at a time.
type scan struct {
	numbers
	ctx    context.Context
	passes int // number of passes that are planned, for the progress
	done   int // number of passes that have ended
	tell   func(phase string, done, total int) error
	phase  string
}

// pieces calls f with consecutive pieces of the elements, and with the index of the first element of each.
func (s *scan) pieces(read reader, f func(first int, list []float64) error) error {
	for first := 0; first < s.count; first += scanPiece {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if s.count > scanPiece {
			if err := s.tell(s.phase, s.done*s.count+first, s.passes*s.count); err != nil {
				return err
			}
		}
		list, err := read(first, min(scanPiece, s.count-first))
		if err != nil {
			return err
		}
		if err := f(first, list); err != nil {
			return err
		}
	}
	s.done++
	return nil
}

// each calls f with every element and its index.
func (s *scan) each(f func(i int, v float64)) error {
	return s.pieces(s.read, func(first int, list []float64) error {
		for i, v := range list {
			f(first+i, v)
		}
		return nil
	})
}

// statistics computes the statistics of all elements in two passes. The first pass finds the range and the
// mean. The second pass uses these to compute the standard deviation and the histogram.
func (s *scan) statistics() (*session.Statistics, error) {
	st := &session.Statistics{Elements: s.count, Min: math.Inf(1), Max: math.Inf(-1)}
	var sum float64
	err := s.each(func(i int, v float64) {
		if st.FirstOdd == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			st.FirstOdd = &i
		}
		switch {
		case math.IsNaN(v):
			st.NaN++
			return
		case math.IsInf(v, 1):
			st.PosInf++
			return
		case math.IsInf(v, -1):
			st.NegInf++
			return
		case v == 0:
			st.Zeros++
		}
		st.Min, st.Max, sum = min(st.Min, v), max(st.Max, v), sum+v
	})
	if err != nil {
		return nil, err
	}
	finite := st.Finite()
	if finite == 0 {
		st.Min, st.Max = 0, 0
		return st, nil
	}
	st.Mean, st.Histogram = sum/float64(finite), make([]int, session.HistogramBins)
	var squares float64
	err = s.each(func(_ int, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		squares += (v - st.Mean) * (v - st.Mean)
		bin := 0
		if st.Max > st.Min {
			bin = min(int((v-st.Min)/(st.Max-st.Min)*session.HistogramBins), session.HistogramBins-1)
		}
		st.Histogram[bin]++
	})
	st.Std = math.Sqrt(squares / float64(finite))
	return st, err
}

// heatMap computes the largest |x| of each cell in one pass.
func (s *scan) heatMap(at session.MapAt) (*session.HeatMap, error) {
	if at.Elements > 0 {
		s.count = min(s.count, at.Elements)
	}
	at.Width = max(1, min(at.Width, s.count))
	at.Rows, at.Columns = max(1, min(at.Rows, s.count)), min(at.Columns, at.Width)
	rows := ceilDiv(ceilDiv(s.count, at.Width), at.Rows)
	columns := ceilDiv(at.Width, at.Columns)
	if columns > 0 && rows > session.MostNumbers/columns {
		return nil, session.Refusef("a heat map of %d×%d cells was requested; the maximum is %d cells in all",
			rows, columns, session.MostNumbers)
	}
	m := &session.HeatMap{Rows: rows, Columns: columns, Cells: make([]trace.Number, rows*columns)}
	err := s.each(func(i int, v float64) {
		cell := &m.Cells[i/at.Width/at.Rows*columns+i%at.Width/at.Columns]
		switch was, size := float64(*cell), math.Abs(v); {
		case math.IsNaN(was):
		case math.IsNaN(v), size > was:
			*cell = trace.Number(size)
		}
	})
	return m, err
}

// ceilDiv returns n/d, rounded up.
func ceilDiv(n, d int) int { return (n + d - 1) / d }
