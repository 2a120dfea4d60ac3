package curves

import (
	"slices"
	"sort"

	"gpuscope/trace"
)

// State is the memory in which a row keeps data between steps: recurrent state, which has the same size at
// every position, and KV caches, of which each token uses a part.
type State struct {
	// Recurrent is the size of the recurrent state at one position, in bytes. Slots is the largest number of
	// positions whose state the memory can hold at the same time.
	Recurrent int64
	Slots     int
	caches    []*trace.Value
}

// addState sets the State of all rows. If the graph has no recurrent state, it sets none, because the chart
// compares recurrent state with KV caches.
func (c *Curves) addState() {
	g := &c.Index.Trace.Graph
	recurrent := false
	for i := range g.Values {
		recurrent = recurrent || g.Values[i].Recurrent
	}
	if !recurrent {
		return
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		var ids []trace.ValueID
		for id := range g.Values {
			if r.Dispatches == nil {
				ids = append(ids, trace.ValueID(id))
			}
		}
		for _, id := range r.Dispatches {
			d := &g.Dispatches[id]
			for _, v := range g.Ops[d.Op].State {
				if slices.Contains(d.Reads, v) || slices.Contains(d.Writes, v) {
					ids = append(ids, v)
				}
			}
		}
		r.State = stateOf(g, ids)
	}
}

// stateOf returns the State of a list of values. A value that occurs several times counts once. The State is
// nil if no value is state.
func stateOf(g *trace.Graph, ids []trace.ValueID) *State {
	s, done := &State{}, map[trace.ValueID]bool{}
	for _, id := range ids {
		v := &g.Values[id]
		if done[id] || v.AliasOf != nil {
			continue
		}
		done[id] = true
		switch {
		case v.Recurrent && v.MaxDims[0] > 0:
			s.Recurrent += v.Bytes / int64(v.MaxDims[0])
			s.Slots = max(s.Slots, v.MaxDims[0])
		case isCache(v):
			s.caches = append(s.caches, v)
		}
	}
	if s.Recurrent == 0 && s.caches == nil {
		return nil
	}
	return s
}

// isCache reports whether a value is a KV cache: a state with the dims [1, positions, heads, numbers per
// head].
func isCache(v *trace.Value) bool {
	d := v.MaxDims
	return v.Role == trace.RoleState && !v.Recurrent && len(d) == 4 && d[0] == 1 && d[1] > 0
}

// HasCache reports whether the row uses a KV cache.
func (s *State) HasCache() bool { return s.caches != nil }

// Compares reports whether the row has both kinds of state.
func (s *State) Compares() bool { return s.Recurrent > 0 && s.HasCache() }

// Cache returns the number of bytes of the KV caches that hold data of a text of the given length. Each token
// uses the same number of bytes, up to the size of the cache.
func (s *State) Cache(tokens int) int64 {
	var sum int64
	for _, v := range s.caches {
		most := v.MaxDims[1]
		sum += int64(float64(v.Bytes) * float64(min(tokens, most)) / float64(most))
	}
	return sum
}

// Text returns the length of the text after a step at a place of the axis, in tokens.
func (c *Curves) Text(at int) int {
	if c.Along == trace.AlongPosition {
		return at + 1
	}
	return at
}

// Crossing returns the first place of the axis at which the KV caches use more bytes than the recurrent
// state. The bool is false if there is no such place, or if the row has only one kind of state.
func (c *Curves) Crossing(s *State) (at int, ok bool) {
	if s == nil || !s.Compares() {
		return 0, false
	}
	at = c.From + sort.Search(c.To-c.From+1, func(i int) bool {
		return s.Cache(c.Text(c.From+i)) > s.Recurrent
	})
	return at, at <= c.To
}
