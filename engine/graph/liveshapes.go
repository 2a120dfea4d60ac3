package graph

import "slices"

// liveShapes are the live shapes of tensors in trace format, by value. A tensor that the step does not
// compute is absent.
type liveShapes struct {
	dims   [][]int
	absent []bool
}

func newLiveShapes(values int) liveShapes {
	return liveShapes{make([][]int, values), make([]bool, values)}
}

// set sets a tensor's shape; for an absent tensor only the rank of dims counts.
func (s *liveShapes) set(v ValueID, dims []int, absent bool) {
	if s.absent[v] = absent; !absent || s.dims[v] == nil {
		s.dims[v] = append(s.dims[v][:0], dims...)
	}
}

// is reports whether a tensor has the shape.
func (s *liveShapes) is(v ValueID, dims []int, absent bool) bool {
	return s.absent[v] == absent && (absent || slices.Equal(s.dims[v], dims))
}

// sameAs reports whether a tensor has the same shape in both.
func (s *liveShapes) sameAs(t *liveShapes, v ValueID) bool { return s.is(v, t.dims[v], t.absent[v]) }
