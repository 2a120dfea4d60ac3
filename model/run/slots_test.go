package run

import (
	"testing"

	"pgregory.net/rapid"
)

// A text is stepped forward and back at random. What the slots say they hold is what steps left there.
func TestSlotsHoldTheStatesThatTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSlots(rapid.IntRange(3, 8).Draw(t, "slots"))
		holds := make([]string, len(s.at)) // by slot: the text whose state it has
		text := ""
		pinned := ""
		for range rapid.IntRange(1, 60).Draw(t, "moves") {
			switch at := len(text); rapid.IntRange(0, 5).Draw(t, "move") {
			case 0: // step back, and perhaps continue with another text
				text = text[:rapid.IntRange(0, at).Draw(t, "back")]
				s.forget(len(text))
			case 1:
				if _, ok := s.of(at); ok && at > 0 {
					s.pinned, pinned = at, text
				}
			case 2: // run an earlier step of the text again
				from := rapid.IntRange(0, at).Draw(t, "again")
				step(t, s, holds, text, from, rapid.IntRange(from, at).Draw(t, "to"))
			default:
				for range rapid.IntRange(1, 3).Draw(t, "tokens") {
					text += string(rune('a' + rapid.IntRange(0, 3).Draw(t, "token")))
				}
				step(t, s, holds, text, at, len(text))
			}
			for slot, position := range s.at {
				if position != unknown && holds[slot] != text[:position] {
					t.Fatalf("slot %d has the state after %q, but says position %d of %q", slot,
						holds[slot], position, text)
				}
			}
			if len(text) < len(pinned) || text[:len(pinned)] != pinned {
				s.pinned, pinned = unknown, ""
			}
			if _, ok := s.of(len(pinned)); !ok {
				t.Fatalf("the pinned state of position %d is lost: %v", len(pinned), s.at)
			}
		}
	})
}

// step runs a step of a text, after the steps that restore its state.
func step(t *rapid.T, s *slots, holds []string, text string, from, to int) {
	for at := s.nearest(from); at < to; {
		end := min(at+1, from)
		if at >= from {
			end = to
		}
		slot, ok := s.of(at)
		if !ok {
			t.Fatalf("no state at position %d: %v", at, s.at)
		}
		if at > 0 && holds[slot] != text[:at] {
			t.Fatalf("slot %d has the state after %q, want %q", slot, holds[slot], text[:at])
		}
		written := s.take(slot, at, end)
		if written == slot {
			t.Fatalf("a step at position %d reads and writes slot %d", at, slot)
		}
		holds[written], s.at[written] = text[:end], end
		at = end
	}
}

// In a text of single tokens with 16 slots, the tokens that run again to go back n positions are never many
// more than n.
func TestKeptStatesAreDenseNearTheEndOfTheText(t *testing.T) {
	s, slot := newSlots(16), 0
	for position := range 2000 {
		slot = s.take(slot, position, position+1)
		s.at[slot] = position + 1
		for back := range position + 1 {
			at := position + 1 - back
			if again := at - s.nearest(at); 5*again > 6*back+10 {
				t.Fatalf("from position %d, %d tokens run again to go back %d positions: %v", position+1,
					again, back, s.at)
			}
		}
	}
}
