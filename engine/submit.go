package engine

import (
	"fmt"
	"slices"
	"time"

	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// firstPiece is how many dispatches are submitted first. The GPU works on them while the host encodes as many
// again, then as many as both, and so on: it stays busy where a dispatch takes it no less time than the host,
// and a step of n dispatches has some log2(n / firstPiece) submits.
const firstPiece = 32

// submit encodes a run of the active dispatches, the first of which is the step's number from, sends it piece
// by piece and waits.
func (x *Executor) submit(s *flight, run []trace.DispatchID, from, all int, in *graph.StepInput) error {
	var begun time.Time
	var first int64 // of encode and submit, with the first piece
	for at := 0; at == 0 || at < len(run); {
		n := x.piece(s, run, at)
		encoded, err := x.send(s, run[at:at+n], from+at, all, in)
		if err != nil {
			if at > 0 { // who comes next finds the GPU idle
				_ = x.dev.Wait()
			}
			return err
		}
		if at == 0 {
			begun, first = encoded, s.encode+s.submit
		}
		if at += n; n == 0 {
			break // a graph of no dispatches
		}
	}
	s.overlapped += s.encode + s.submit - first
	submitted := time.Now()
	if err := x.dev.Wait(); err != nil {
		return fmt.Errorf("wait for the GPU: %w", err)
	}
	s.waited(submitted)
	s.running += s.ended.Sub(begun).Nanoseconds()
	x.haveRun(run)
	return nil
}

// piece is how many dispatches of a run from at on are sent at once: as many as were before them, and on to
// the end of their level, where a barrier is needed in any case. What is timed together stays together.
func (x *Executor) piece(s *flight, run []trace.DispatchID, at int) int {
	end := max(x.firstPiece, 2*at)
	if !s.pieces || end > len(run)-x.firstPiece {
		return len(run) - at
	}
	levels := x.live.Levels()
	for ; end < len(run); end++ {
		_, begins := slices.BinarySearch(levels, run[end])
		if begins && (s.timing < TimingBlock || !s.timing.together(x.g, run[end-1], run[end])) {
			break
		}
	}
	return end - at
}

// send encodes dispatches, the first of which is the step's number from, and submits them. It returns when
// they were encoded.
func (x *Executor) send(s *flight, piece []trace.DispatchID, from, all int, in *graph.StepInput) (
	encoded time.Time, err error,
) {
	start := time.Now()
	enc, err := x.dev.Begin("step")
	if err != nil {
		return start, fmt.Errorf("encode: %w", err)
	}
	if err := x.encode(enc, s, piece, from, all, in); err != nil {
		enc.Discard()
		return start, fmt.Errorf("encode: %w", err)
	}
	encoded = time.Now()
	if from == 0 {
		s.begun = encoded
	}
	if err := enc.Submit(); err != nil {
		return start, fmt.Errorf("submit: %w", err)
	}
	submitted := time.Now()
	s.submits++
	s.encode += encoded.Sub(start).Nanoseconds()
	s.submit += submitted.Sub(encoded).Nanoseconds()
	return encoded, nil
}
