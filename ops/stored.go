package ops

import (
	"fmt"
	"iter"

	"gpuscope/engine/graph"
	"gpuscope/ops/weight"
)

// Stored describes a part of a constant weight matrix in a graph. Read returns its weights as numbers.
type Stored struct {
	Format     string          // ggml's name of the weight format
	Rows, Cols int             // numbers of rows and columns of the part
	Arrays     []graph.ValueID // first the array of weights, then other arrays such as the scales
	matrix     *weight.Matrix
	first      int // first row of the part in the matrix
}

// stores is the interface of operators that have a constant weight matrix.
type stores interface {
	stored() (*weight.Matrix, []weight.Part)
}

func (o *linear) stored() (*weight.Matrix, []weight.Part)    { return &o.w, o.parts }
func (o *embedding) stored() (*weight.Matrix, []weight.Part) { return &o.table, o.parts }

// StoredMatrices lists the parts of the constant weight matrices of a graph's linears and embeddings. It
// skips matrices that are f32 tensors of the graph (weight.Matrix.Dense). If several operators share a
// matrix, its parts are listed once for each of these operators.
func StoredMatrices(g *graph.Graph) iter.Seq[Stored] {
	return func(yield func(Stored) bool) {
		g.Operators(func(_ graph.OpID, _ string, o graph.Operator) bool {
			s, ok := o.(stores)
			if !ok {
				return true
			}
			m, parts := s.stored()
			if m.Dense != nil {
				return true // the matrix is an ordinary f32 tensor
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

// Read returns the weights of n rows, starting at row `first` of the part. It reads only these rows from the
// file, and packs them in the same way as the whole matrix is packed for the device. Packing does not change
// the bits of a weight, so Read returns exactly the numbers that kernels use.
func (s *Stored) Read(first, n int) ([]float64, error) {
	if first < 0 || n < 0 || first+n > s.Rows {
		return nil, fmt.Errorf("%s: rows %d to %d are out of range, because this part of the matrix has %d rows",
			s.matrix.Name, first,
			first+n-1, s.Rows)
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
