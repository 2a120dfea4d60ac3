package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// spreadColumns is how many columns of a row a lane of a GEMV takes at a time at most. A row that is spread
// has the first four of each such chunk, then the next four, so that lanes load what lies together.
const spreadColumns = 32

// spreadFrom is the column of a row of so many that lies at a place of it spread.
func spreadFrom(at, width int) int {
	chunks := width / spreadColumns
	return at/4%chunks*spreadColumns + at/4/chunks*4 + at%4
}

// spreadOf is a row as it lies spread.
func spreadOf(row []float64) reference.Tensor {
	t := reference.Zeros(1, len(row))
	for at := range t.Data {
		t.Data[at] = row[spreadFrom(at, len(row))]
	}
	return t
}

// inOrder is a row of which that is how it lies spread.
func inOrder(row []float64) []float64 {
	list := make([]float64, len(row))
	for at, v := range row {
		list[spreadFrom(at, len(row))] = v
	}
	return list
}

// spreadCols are the columns of a row of which the wanted places of a spread value are made.
func spreadCols(r *reference.Ref, v graph.ValueID, width int) (cols []int) {
	for at := range r.Cols(v, width) {
		cols = append(cols, spreadFrom(at, width))
	}
	slices.Sort(cols)
	return cols
}

// spreadRow is what an operator gives in place of a single row that linears alone read: that row, spread.
type spreadRow struct {
	value graph.ValueID
	width int
}

// spreadBehind is how y can be left to those that read it wherever of has one row; nil where it cannot.
func spreadBehind(b *graph.Builder, y graph.ValueID, width int, of graph.ValueID) *spreadRow {
	if width%spreadColumns != 0 || b.RouteAsked(y) || !leftTo(b, y, width, of) {
		return nil
	}
	return &spreadRow{spreadTensor(b, b.Name(y)+".spread", width), width}
}

// spreadTensor declares an output that is spread: a row of so many.
func spreadTensor(b *graph.Builder, name string, width int) graph.ValueID {
	return liesSpread(b, b.Tensor(name, graph.F32), width)
}

func liesSpread(b *graph.Builder, v graph.ValueID, width int) graph.ValueID {
	b.Permuted(v, func(at int) int { return spreadFrom(at, width) })
	return v
}

// isConstant says whether a value is a constant.
func isConstant(b *graph.Builder, v graph.ValueID) bool {
	info, _ := b.Value(v)
	return info.Role == graph.Constant
}

// spreadConstant declares a constant row that is spread, of one that is not.
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

// leftTo says whether all that read y, or a view of it, are linears that have kernels for a single row of so
// many columns, and make a single row wherever of has one.
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

// give settles whether y is given, or left in favour of the row.
func (s *spreadRow) give(p *graph.Planner, y graph.ValueID, leaves bool, dims ...int) {
	if leaves {
		p.Defer(y, dims...)
	} else {
		p.SetDims(y, dims...)
	}
	s.settle(p, leaves)
}

// settle settles whether the row is given, or left.
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

func (s *spreadRow) specialise(_ int, c shaders.Constants, _ int) { c["Spread"] = true }

func (s *spreadRow) planLeft(int, *graph.Planner, *graph.Launch) {}

func (s *spreadRow) leftRow(r *reference.Ref, x reference.Tensor) reference.Tensor {
	if !r.Has(s.value) {
		return x
	}
	return reference.Tensor{Dims: x.Dims, Data: inOrder(r.Tensor(s.value).Data)}
}

func (s *spreadRow) leftTolerance(int) (row float64, why string) { return 0, "" }
