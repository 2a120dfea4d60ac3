package graph

import "slices"

// liveShapes are the live shapes of tensors as a trace has them, by value: a value that a step does not
// compute has none.
type liveShapes struct {
	dims   [][]int
	absent []bool
}

func newLiveShapes(values int) liveShapes {
	return liveShapes{make([][]int, values), make([]bool, values)}
}

// set gives a tensor its shape; dims of an absent one are kept for their number alone.
func (s *liveShapes) set(v ValueID, dims []int, absent bool) {
	if s.absent[v] = absent; !absent || s.dims[v] == nil {
		s.dims[v] = append(s.dims[v][:0], dims...)
	}
}

// is says whether a tensor has a shape.
func (s *liveShapes) is(v ValueID, dims []int, absent bool) bool {
	return s.absent[v] == absent && (absent || slices.Equal(s.dims[v], dims))
}

// sameAs says whether a tensor has the same shape in both.
func (s *liveShapes) sameAs(t *liveShapes, v ValueID) bool { return s.is(v, t.dims[v], t.absent[v]) }
