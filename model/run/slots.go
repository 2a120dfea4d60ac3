package run

import (
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/model/network"
)

// slots records which slots of the recurrent State hold the state of which position. The state of a position
// is what the layers have computed from the tokens before it. A step reads the slot of its position and
// writes another slot, so the states of earlier positions remain until their slots are needed. A session
// returns to an earlier position by reading its slot again; no state is ever copied.
//
// Which slot a step overwrites decides how far apart the kept states are. They are close together near the
// current position and farther apart before it, so that from any position few tokens must run again to return
// to any earlier one.
type slots struct {
	at     []int // by slot: position of the state; unknown if it is not the state of the current text
	pinned int   // position whose state is never overwritten
}

const unknown = -1

func newSlots(n int) *slots {
	s := &slots{at: make([]int, n), pinned: unknown}
	for i := range s.at {
		s.at[i] = unknown
	}
	return s
}

// of returns the slot with the state of a position. At position 0 any slot will do, because steps there do
// not read the state.
func (s *slots) of(position int) (slot int, ok bool) {
	if position == 0 {
		return 0, true
	}
	slot = slices.Index(s.at, position)
	return slot, slot >= 0
}

// nearest returns the last position up to the given one whose state is known.
func (s *slots) nearest(position int) int {
	best := 0
	for _, at := range s.at {
		if at <= position {
			best = max(best, at)
		}
	}
	return best
}

// forget drops the states of all positions after the given one.
func (s *slots) forget(after int) {
	for i, at := range s.at {
		if at > after {
			s.at[i] = unknown
		}
	}
}

// take returns the slot that a step writes, if it reads slot from, and processes tokens at a position up to
// position end. The slot does not hold a known state until the caller says so.
func (s *slots) take(from, position, end int) int {
	best, least := -1, math.Inf(1)
	pinned := -1 // one slot with the pinned state; a second one may be overwritten
	if s.pinned != unknown {
		pinned = slices.Index(s.at, s.pinned)
	}
	for i, at := range s.at {
		loss := -1.0 // the slot has the state that the step computes again
		switch {
		case i == from || i == pinned && at != end:
			continue
		case at == unknown:
			loss = 0
		case at != end:
			loss = s.loss(i, position)
		}
		if loss < least {
			best, least = i, loss
		}
	}
	s.at[best] = unknown
	return best
}

// loss says how much is lost if a step at a position overwrites slot i: the largest number of tokens that
// must then run again to return to a position for which the slot would serve, divided by how far back this
// is.
func (s *slots) loss(i, position int) float64 {
	at, next := s.at[i], max(position, s.at[i])+1
	for _, other := range s.at {
		if other > at {
			next = min(next, other)
		}
	}
	far := next - 1 // the farthest position for which the slot serves
	return float64(far-s.nearest(at-1)) / float64(max(position-far, far-position)+1)
}

// place is where a step finds the recurrent State and where it leaves it.
type place struct {
	to    int  // slot that the step writes
	end   int  // position after the step
	known bool // the step reads the state of its position, so that its result is the state of end
}

// place sets the slots of a step in its input. If no slot holds the state of the position, the step reads an
// arbitrary one.
func (r *Runner) place(in *graph.StepInput, position, tokens int) (p place) {
	if r.slots == nil {
		return p
	}
	from, known := r.slots.of(position)
	return r.placeFrom(in, place{max(from, 0), position, known}, tokens)
}

// placeFrom does the same as place, for a step that reads what the previous step leaves.
func (r *Runner) placeFrom(in *graph.StepInput, previous place, tokens int) place {
	if r.slots == nil {
		return place{}
	}
	p := place{end: previous.end + tokens, known: previous.known}
	p.to = r.slots.take(previous.to, previous.end, p.end)
	network.SetSlots(in, previous.to, p.to)
	return p
}

// ended records the state that a step has left, after the step has ended without an error.
func (r *Runner) ended(p place) {
	if r.slots != nil && p.known {
		r.slots.at[p.to] = p.end
	}
}

// HasState reports whether a step at a position can run: whether a slot of the recurrent State holds the
// state of this position. It is always true for a model without such State, and without a device.
func (r *Runner) HasState(position int) bool {
	if r.slots == nil || !r.Exec.Loaded() {
		return true
	}
	_, ok := r.slots.of(position)
	return ok
}

// NearestState returns the last position up to the given one at which a step can run.
func (r *Runner) NearestState(position int) int {
	if r.slots == nil {
		return position
	}
	return r.slots.nearest(position)
}

// ForgetStates says that the text has changed after a position, so that the states of later positions are no
// longer valid.
func (r *Runner) ForgetStates(after int) {
	if r.slots != nil {
		r.slots.forget(after)
	}
}

// PinState keeps the state of a position until another one is pinned.
func (r *Runner) PinState(position int) {
	if r.slots != nil {
		r.slots.pinned = position
	}
}
