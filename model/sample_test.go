//go:build !race

package model

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/model/arch"
	"gpuscope/model/sample"
	"gpuscope/ops/basic"
	"gpuscope/session"
	"gpuscope/trace"
)

// The GPU finds the same candidates as the host does among all logits, for every number of candidates.
func TestGPUAndHostFindTheSameCandidates(t *testing.T) {
	dev := gputest.Open(t)
	steps := func(candidates int) []trace.Step {
		r := openOn(t, dev, Options{TopLogits: candidates, IgnoreEOS: true, Context: 64})
		r.do(session.Command{Kind: session.Prompt, Text: "There was once"})
		r.do(session.Command{Kind: session.Run, N: 2})
		return r.end().Steps
	}
	host := steps(basic.MaxTopK + 1)
	for _, n := range []int{0, 1, 5, basic.MaxTopK} {
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
				t.Errorf("%d candidates: step %d has no sampling time", n, i)
			}
		}
	}
}

// A NaN in one weight is found with every number of candidates. The error names its column: element 5 of a
// row of 64 is stored at index 9 of the interleaved layout.
func TestNaNOfAWeightIsFound(t *testing.T) {
	dev := gputest.Open(t)
	for _, candidates := range []int{0, 2, basic.MaxTopK + 1} {
		b := tiny()
		b.Change("blk.1.ffn_norm.weight", func(data []byte) {
			copy(data[4*5:], []byte{0, 0, 0xc0, 0x7f})
		})
		r := openOn(t, dev, Options{Path: write(t, b.Bytes()), TopLogits: candidates})
		_, err := r.s.Do(context.Background(), session.Command{Kind: session.Prompt, Text: "x"})
		if err == nil || !strings.Contains(err.Error(), "element 5 of layers.1.mlp.norm.weighted,") {
			t.Errorf("%d candidates: %v", candidates, err)
		}
		step := r.end().Steps[0]
		if step.Token != nil || len(step.Top) != candidates {
			t.Errorf("%d candidates: token %v, %d in the step", candidates, step.Token, len(step.Top))
		}
		if data, err := json.Marshal(step); err != nil || candidates > 0 && !bytes.Contains(data, []byte(`"NaN"`)) {
			t.Errorf("%d candidates: as JSON %s, %v", candidates, data, err)
		}
	}
}

// The error also names the column if the NaN is in an interleaved row between two products.
func TestMLPNaNIsLocatedByColumn(t *testing.T) {
	const ffn = 128 // wide enough for gate and up to be one product
	b := tinyWide(&arch.Llama, ffn)
	b.Change("blk.1.ffn_gate.weight", func(data []byte) {
		row := len(data) / ffn
		copy(data[5*row:], []byte{0, 0x7e}) // the scale of a block
	})
	r := openOn(t, gputest.Open(t), Options{Path: write(t, b.Bytes())})
	defer r.end()
	_, err := r.s.Do(context.Background(), session.Command{Kind: session.Prompt, Text: "x"})
	if err == nil || !strings.Contains(err.Error(), "NaN in element 5 of layers.1.mlp.silu_mul.spread,") {
		t.Error(err)
	}
}

// Sampling from the GPU's candidates gives the same tokens as sampling from all logits.
func TestGPUAndHostSampleTheSameTokens(t *testing.T) {
	dev, path := gputest.Open(t), write(t, tiny().Bytes())
	tokens := func(s sample.Sampling, told int) (list []int) {
		r := openOn(t, dev, Options{Path: path, Sampling: s, TopLogits: told, IgnoreEOS: true})
		r.do(session.Command{Kind: session.Prompt, Text: "There was once"})
		r.do(session.Command{Kind: session.Run, N: 8})
		for _, step := range r.end().Steps {
			list = append(list, *step.Token)
		}
		return list
	}
	for name, s := range map[string]sample.Sampling{
		"some of 64":        {Temperature: 0.8, TopP: 0.5, RepeatPenalty: 1.3, RepeatLastN: 64, TopK: 40},
		"more than 64 hold": {Temperature: 2, TopP: 1, RepeatPenalty: 1},
	} {
		got, want := tokens(s, 0), tokens(s, basic.MaxTopK+1)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, sampled on the host %v", name, got, want)
		}
	}
}

// A penalty looks back over the text, including the tokens that the run has generated.
func TestPipeliningKeepsPenalizedTokens(t *testing.T) {
	by := sample.Sampling{TopP: 1, RepeatPenalty: 1.7, RepeatLastN: 8}
	dev := gputest.Open(t)
	var want []int
	for _, how := range []string{"one by one", "run"} {
		r := openOn(t, dev, Options{Path: write(t, tiny().Bytes()), Sampling: by, IgnoreEOS: true})
		r.do(promptOf(5))
		if how == "run" {
			r.do(session.Command{Kind: session.Run, N: 20})
		} else {
			for range 20 {
				r.do(session.Command{Kind: session.Next})
			}
		}
		var got []int
		for _, s := range r.end().Steps {
			got = append(got, *s.Token)
		}
		if want == nil {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" || len(got) != 21 {
			t.Errorf("%s: %d tokens\n%s", how, len(got), d)
		}
	}
}
