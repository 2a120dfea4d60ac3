// Package liveshapes stores the live shapes of the tensors of a graph.
package liveshapes

import "slices"

// Shapes holds the live shape of each tensor by value id, in the form that a trace records. A tensor is
// marked absent if the step does not compute it.
type Shapes struct {
	Dims   [][]int
	Absent []bool
}

// New returns empty shapes for a number of values.
func New(values int) Shapes {
	return Shapes{make([][]int, values), make([]bool, values)}
}

// Set sets the shape of a tensor. If the tensor is absent, only the length of dims matters, not the numbers.
func (s *Shapes) Set(v int, dims []int, absent bool) {
	if s.Absent[v] = absent; !absent || s.Dims[v] == nil {
		s.Dims[v] = append(s.Dims[v][:0], dims...)
	}
}

// Is reports whether a tensor has the given shape. If `absent` is true, the tensor must be marked absent, and
// dims is ignored. If `absent` is false, the tensor must not be absent and must have the given dims.
func (s *Shapes) Is(v int, dims []int, absent bool) bool {
	return s.Absent[v] == absent && (absent || slices.Equal(s.Dims[v], dims))
}

// SameAs reports whether a tensor has the same shape in s and t.
func (s *Shapes) SameAs(t *Shapes, v int) bool { return s.Is(v, t.Dims[v], t.Absent[v]) }
