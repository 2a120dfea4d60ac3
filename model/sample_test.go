//go:build !race

package model

import (
	"math"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/model/session"
	"gpuscope/ops"
	"gpuscope/trace"
)

// The GPU finds the candidates that the host would find among all logits, whatever their number.
func TestCandidatesOfTheGPUAreThoseOfTheHost(t *testing.T) {
	dev := gputest.Open(t)
	steps := func(candidates int) []trace.Step {
		r := openOn(t, dev, Options{TopLogits: candidates, IgnoreEOS: true, Context: 64})
		r.do(session.Command{Kind: session.Prompt, Text: "There was once"})
		r.do(session.Command{Kind: session.Run, N: 2})
		return r.end().Steps
	}
	host := steps(ops.MaxTopK + 1)
	for _, n := range []int{0, 1, 5, ops.MaxTopK} {
		for i, s := range steps(n) {
			if *s.Token != *host[i].Token || len(s.Top) != n {
				t.Fatalf("%d candidates: step %d gives token %d and %d, want %d and as many", n, i, *s.Token,
					len(s.Top), *host[i].Token)
			}
			for k, c := range s.Top {
				want := host[i].Top[k]
				if c.ID != want.ID || c.Logit != want.Logit || math.Abs(c.P-want.P) > 1e-5 {
					t.Errorf("%d candidates: candidate %d of step %d is %+v, want %+v", n, k, i, c, want)
				}
			}
			if read := s.CPU.SampleNS; read == (trace.Time{}) {
				t.Errorf("%d candidates: step %d does not say how long they took", n, i)
			}
		}
	}
}
