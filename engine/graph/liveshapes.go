package graph

import "slices"

// liveShapes holds the live shapes of tensors by value id, as a trace records them. A tensor is absent if the
// step does not compute it.
type liveShapes struct {
	dims   [][]int
	absent []bool
}

func newLiveShapes(values int) liveShapes {
	return liveShapes{make([][]int, values), make([]bool, values)}
}

// set sets the shape of a tensor. For an absent tensor only the rank of dims matters.
func (s *liveShapes) set(v ValueID, dims []int, absent bool) {
	if s.absent[v] = absent; !absent || s.dims[v] == nil {
		s.dims[v] = append(s.dims[v][:0], dims...)
	}
}

// is reports whether a tensor has the given shape, or is absent as given.
func (s *liveShapes) is(v ValueID, dims []int, absent bool) bool {
	return s.absent[v] == absent && (absent || slices.Equal(s.dims[v], dims))
}

// sameAs reports whether a tensor has the same shape in s and t.
func (s *liveShapes) sameAs(t *liveShapes, v ValueID) bool { return s.is(v, t.dims[v], t.absent[v]) }
