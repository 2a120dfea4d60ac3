package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// spreadColumns is the number of columns in the largest chunk of a row that a lane of a GEMV loads at a time.
// An interleaved row ("spread" in names) stores the first four columns of all chunks, then the next four
// columns of all chunks, and so on. Neighboring lanes then load neighboring addresses.
const spreadColumns = 32

// spreadFrom(at, width) returns the column that an interleaved row of `width` columns stores at index `at`.
func spreadFrom(at, width int) int {
	chunks := width / spreadColumns
	return at/4%chunks*spreadColumns + at/4/chunks*4 + at%4
}

// spreadOf converts a row to interleaved order.
func spreadOf(row []float64) reference.Tensor {
	t := reference.Zeros(1, len(row))
	for at := range t.Data {
		t.Data[at] = row[spreadFrom(at, len(row))]
	}
	return t
}

// inOrder converts an interleaved row to plain order.
func inOrder(row []float64) []float64 {
	list := make([]float64, len(row))
	for at, v := range row {
		list[spreadFrom(at, len(row))] = v
	}
	return list
}

// spreadCols returns the columns of a row that are requested through v, the interleaved copy of the row.
// Ref.Cols lists the requested elements of v.
func spreadCols(r *reference.Ref, v graph.ValueID, width int) (cols []int) {
	for at := range r.Cols(v, width) {
		cols = append(cols, spreadFrom(at, width))
	}
	slices.Sort(cols)
	return cols
}

// spreadRow is an interleaved row. An operator computes it instead of its plain output if this output has a
// single row and only linears read it.
type spreadRow struct {
	value graph.ValueID
	width int
}

// spreadAfter declares an interleaved row. It replaces y in every step in which the tensor `of` has a
// single row. spreadAfter returns nil if the readers of y cannot use an interleaved row.
func spreadAfter(b *graph.Builder, y graph.ValueID, width int, of graph.ValueID) *spreadRow {
	if width%spreadColumns != 0 || b.RouteAsked(y) || !leftTo(b, y, width, of) {
		return nil
	}
	return &spreadRow{spreadTensor(b, b.Name(y)+".spread", width), width}
}

// spreadTensor declares an output that is an interleaved row of width columns.
func spreadTensor(b *graph.Builder, name string, width int) graph.ValueID {
	return liesSpread(b, b.Tensor(name, graph.F32), width)
}

// liesSpread marks a tensor as stored in interleaved order.
func liesSpread(b *graph.Builder, v graph.ValueID, width int) graph.ValueID {
	b.Permuted(v, func(at int) int { return spreadFrom(at, width) })
	return v
}

func isConstant(b *graph.Builder, v graph.ValueID) bool {
	info, _ := b.Value(v)
	return info.Role == graph.Constant
}

// spreadConstant declares an interleaved copy of a constant row.
func spreadConstant(b *graph.Builder, v graph.ValueID) graph.ValueID {
	info, _ := b.Value(v)
	width := shape.Last(info.MaxDims)
	load := func() ([]byte, error) {
		row, err := info.Load()
		if err != nil || len(row) != 4*width {
			return row, err
		}
		list := make([]byte, len(row))
		for at := range width {
			copy(list[4*at:4*at+4], row[4*spreadFrom(at, width):])
		}
		return list, nil
	}
	return liesSpread(b, b.Constant(info.Name+".spread", graph.F32, info.MaxDims, load), width)
}

// leftTo(b, y, width, of) reports whether y and its views are read only by suitable linears. A linear is
// suitable if it has a kernel for a single row of `width` columns. Its output must have a single row in every
// step in which the tensor `of` has a single row.
func leftTo(b *graph.Builder, y graph.ValueID, width int, of graph.ValueID) bool {
	readers, all := b.Readers(y)
	if !all || len(readers) == 0 {
		return false
	}
	for _, r := range readers {
		switch r := r.(type) {
		case *basic.ViewOp:
			if !leftTo(b, r.Y, width, of) {
				return false
			}
		case *linear:
			if r.x != y || r.residual == y || r.w.Cols != width || r.shapes[linearGEMV].batch != 1 ||
				b.RouteAsked(r.y) {
				return false
			}
			if r.residual != graph.None && !ofOneRow(b, r.residual) &&
				rowsOf(b, r.residual) != rowsOf(b, of) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// give(p, y, leaves, dims) sets the dims of y and of the interleaved row. If `leaves` is true, the operator
// computes the interleaved row, and y is deferred. Otherwise the operator computes y, and the interleaved row
// is deferred.
func (s *spreadRow) give(p *graph.Planner, y graph.ValueID, leaves bool, dims ...int) {
	if leaves {
		p.Defer(y, dims...)
	} else {
		p.SetDims(y, dims...)
	}
	s.settle(p, leaves)
}

// settle plans the interleaved row for a step. If `gives` is true, a dispatch of the step writes the row, and
// settle sets the row's dims. Otherwise settle marks the row as not written. If s is nil, it does nothing.
func (s *spreadRow) settle(p *graph.Planner, gives bool) {
	switch {
	case s == nil:
	case gives:
		p.SetDims(s.value, 1, s.width)
	default:
		p.Defer(s.value, 1, s.width)
	}
}

func (s *spreadRow) left(route int) graph.ValueID {
	if route != linearGEMV {
		return graph.None
	}
	return s.value
}

func (s *spreadRow) leavesAll() bool { return true }

func (s *spreadRow) besides() []graph.Binding { return nil }

func (s *spreadRow) specialize(_ int, c shaders.Constants, _ int) { c["Spread"] = true }

func (s *spreadRow) planLeft(int, *graph.Planner, *graph.Launch) {}

func (s *spreadRow) leftRow(r *reference.Ref, x reference.Tensor) reference.Tensor {
	if !r.Has(s.value) {
		return x
	}
	return reference.Tensor{Dims: x.Dims, Data: inOrder(r.Tensor(s.value).Data)}
}

func (s *spreadRow) leftTolerance(int) (row float64, why string) { return 0, "" }
