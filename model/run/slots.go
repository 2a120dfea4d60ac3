package run

import (
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/model/network"
)

// slots records which slot of the recurrent State holds the state of which position. The state of a position
// is what the layers have computed from all tokens before the position. A step reads the slot of its position
// and writes another slot, so the states of earlier positions remain until their slots are needed. To return
// to an earlier position, a step reads the slot of that position. No state is ever copied.
//
// A step overwrites the slot whose state is least useful (see the method `loss`). Many states near the
// current position are therefore kept, and fewer at earlier positions. To return to a nearby position, only
// few tokens must run again.
type slots struct {
	at     []int // by slot: position of its state; unknown if the slot has no state of the current text
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

// take chooses the slot that a step will write. The step reads slot `from` and processes the tokens from
// `position` up to `end`. take records that the state in the chosen slot is unknown. After the step, the
// caller records the new state.
func (s *slots) take(from, position, end int) int {
	best, least := -1, math.Inf(1)
	pinned := -1 // first slot with the pinned state; other slots with this state may be overwritten
	if s.pinned != unknown {
		pinned = slices.Index(s.at, s.pinned)
	}
	for i, at := range s.at {
		loss := -1.0 // best choice: the slot already has the state that the step computes
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

// loss rates how much is lost if a step at `position` overwrites slot i. It considers the farthest position
// that is restored from this slot. The loss is the number of tokens that would have to run again to reach
// that position without the slot, divided by 1 plus the distance of that position from `position`.
func (s *slots) loss(i, position int) float64 {
	at, next := s.at[i], max(position, s.at[i])+1
	for _, other := range s.at {
		if other > at {
			next = min(next, other)
		}
	}
	far := next - 1 // the farthest position that is restored from this slot
	return float64(far-s.nearest(at-1)) / float64(max(position-far, far-position)+1)
}

// place describes what a step writes to the recurrent State.
type place struct {
	to    int  // slot that the step writes
	end   int  // position after the step
	known bool // whether the step reads the right state, so that it writes the state of position end
}

// place sets the slots of a step in its input. If no slot holds the state of the position, the step reads an
// arbitrary slot.
func (r *Runner) place(in *graph.StepInput, position, tokens int) (p place) {
	if r.slots == nil {
		return p
	}
	from, known := r.slots.of(position)
	return r.placeFrom(in, place{max(from, 0), position, known}, tokens)
}

// placeFrom does the same as place, for a step that reads the slot that the previous step writes.
func (r *Runner) placeFrom(in *graph.StepInput, previous place, tokens int) place {
	if r.slots == nil {
		return place{}
	}
	p := place{end: previous.end + tokens, known: previous.known}
	p.to = r.slots.take(previous.to, previous.end, p.end)
	network.SetSlots(in, previous.to, p.to)
	return p
}

// ended records the state that a step has written. Call it after the step has ended without an error.
func (r *Runner) ended(p place) {
	if r.slots != nil && p.known {
		r.slots.at[p.to] = p.end
	}
}

// HasState reports whether a step at a position can run: whether a slot of the recurrent State holds the
// state of this position. HasState is always true for a model without recurrent State, and in a session
// without a device.
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

// ForgetStates discards the states of all positions after the given one, because the text has changed there.
func (r *Runner) ForgetStates(after int) {
	if r.slots != nil {
		r.slots.forget(after)
	}
}

// PinState keeps the state of a position until another position is pinned.
func (r *Runner) PinState(position int) {
	if r.slots != nil {
		r.slots.pinned = position
	}
}
