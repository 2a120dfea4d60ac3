package engine

import (
	"fmt"
	"slices"
	"time"

	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// firstPiece is the number of dispatches in the first submit of a step. While the GPU runs this submit, the
// host encodes the next one, with the same number of dispatches. From then on, each submit has twice as many
// as the one before. The GPU stays busy if it takes at least as long to run a dispatch as the host takes to
// encode one. A step of n dispatches needs about log2(n / firstPiece) submits.
const firstPiece = 32

// submit encodes the dispatches in `run`, submits them piece by piece, and waits for the GPU. `from` is the
// position of the first of them in the step, and `all` is the number of dispatches in the step.
func (x *Executor) submit(s *flight, run []trace.DispatchID, from, all int, in *graph.StepInput) error {
	var begun time.Time
	var first int64 // time that the host spent on the first piece
	for at := 0; at == 0 || at < len(run); {
		n := x.piece(s, run, at)
		encoded, err := x.send(s, run[at:at+n], from+at, all, in)
		if err != nil {
			// Wait for the submitted pieces, so that the GPU is idle when the caller continues.
			if at > 0 {
				_ = x.dev.Wait()
			}
			return err
		}
		if at == 0 {
			begun, first = encoded, s.encode+s.submit
		}
		if at += n; n == 0 {
			// the graph has no dispatches
			break
		}
	}
	s.overlapped += s.encode + s.submit - first
	submitted := time.Now()
	if err := x.dev.Wait(); err != nil {
		return fmt.Errorf("cannot wait for the GPU: %w", err)
	}
	s.waited(submitted)
	s.running += s.ended.Sub(begun).Nanoseconds()
	x.haveRun(run)
	return nil
}

// piece returns how many dispatches to submit next, starting with run[at]. A piece, except the last, has at
// least as many dispatches as all earlier pieces together. A piece ends at the end of a level, where a
// barrier is needed anyway. Dispatches that share a pair of timestamps stay in one piece.
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

// send encodes and submits a piece. `from` is the position of the piece's first dispatch in the step. send
// returns the moment at which encoding ended.
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
