//go:build !race

package model

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
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

// One NaN in one weight is found wherever it is.
func TestNaNOfAWeightIsFound(t *testing.T) {
	dev := gputest.Open(t)
	for _, candidates := range []int{0, 2, ops.MaxTopK + 1} {
		b := tiny()
		b.Change("blk.1.ffn_norm.weight", func(data []byte) {
			copy(data[4*5:], []byte{0, 0, 0xc0, 0x7f})
		})
		r := openOn(t, dev, Options{Path: write(t, b.Bytes()), TopLogits: candidates})
		_, err := r.s.Do(context.Background(), session.Command{Kind: session.Prompt, Text: "x"})
		if err == nil || !strings.Contains(err.Error(), "the highest of its logits is NaN; the first in the step "+
			"is NaN, element 5 of layers.1.mlp.norm, which dispatch ") {
			t.Errorf("%d candidates: %v", candidates, err)
		}
		step := r.end().Steps[0]
		if step.Token != nil || len(step.Top) != candidates {
			t.Errorf("%d candidates: token %v, %d told", candidates, step.Token, len(step.Top))
		}
		if data, err := json.Marshal(step); err != nil || candidates > 0 && !bytes.Contains(data, []byte(`"NaN"`)) {
			t.Errorf("%d candidates: as JSON %s, %v", candidates, data, err)
		}
	}
}
