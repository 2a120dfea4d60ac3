package ops

import (
	"fmt"
	"iter"

	"gpuscope/engine/graph"
	"gpuscope/ops/weight"
)

// Stored is a part of a constant matrix in a graph, as whoever wants to see its numbers has it: which arrays
// hold it, and how rows of it are read.
type Stored struct {
	Format     string          // the name of its format
	Rows, Cols int             // of the part
	Arrays     []graph.ValueID // the first has the weights, the others what belongs to them
	matrix     *weight.Matrix
	first      int // row of the matrix
}

// stores is an operator with matrices.
type stores interface {
	stored() (*weight.Matrix, []weight.Part)
}

func (o *linear) stored() (*weight.Matrix, []weight.Part)    { return &o.w, o.parts }
func (o *embedding) stored() (*weight.Matrix, []weight.Part) { return &o.table, o.parts }

// StoredMatrices are the matrices of a graph that are stored in a format, part by part. What several
// operators share comes more than once.
func StoredMatrices(g *graph.Graph) iter.Seq[Stored] {
	return func(yield func(Stored) bool) {
		g.Operators(func(_ graph.OpID, _ string, o graph.Operator) bool {
			s, ok := o.(stores)
			if !ok {
				return true
			}
			m, parts := s.stored()
			if m.Dense != nil {
				return true // a tensor like any other
			}
			for _, p := range parts {
				if !yield(Stored{m.Format.File, p.Rows, m.Cols, p.Arrays, m, p.First}) {
					return false
				}
			}
			return true
		})
	}
}

// Read reads some rows, one after another. Only these are taken from the file, and brought into the order
// of the device as all of them were: no bit of a weight is changed on that way, so these are the numbers that
// kernels read.
func (s *Stored) Read(first, n int) ([]float64, error) {
	if first < 0 || n < 0 || first+n > s.Rows {
		return nil, fmt.Errorf("%s: rows %d to %d, it has %d", s.matrix.Name, first, first+n-1, s.Rows)
	}
	var arrays [][]byte
	for k := range s.Arrays {
		data, err := s.matrix.PackArray(k, s.first+first, n)
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, data)
	}
	numbers := make([]float64, n*s.Cols)
	for row := range n {
		s.matrix.Format.ReadRow(arrays, row, numbers[row*s.Cols:(row+1)*s.Cols])
	}
	return numbers, nil
}
