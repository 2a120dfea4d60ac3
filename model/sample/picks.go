package sample

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// Picks describes the outputs of a graph that the host reads back to pick the next token.
type Picks struct {
	Told       int // number of candidates that a step reports; 0 for the token only
	Sampling   Sampling
	Candidates int // number of candidates that are read back
	// IDs and Values are the token ids (i32) and logits (f32) of at least one candidate. Values is None if
	// the graph computes only the next token.
	IDs, Values graph.ValueID
	// Stats is the f32 [1, 4] output of ops.TopK; None if the host finds the candidates.
	Stats graph.ValueID
}

// Pick adds to a graph the operators and outputs that are needed to pick the next token. `told` is the
// number of candidates for the next token that each step reports, or 0 to report only the picked token.
func Pick(b *graph.Builder, logits graph.ValueID, vocab, told int, by Sampling) Picks {
	p := Picks{
		Told: min(told, vocab), Sampling: by, Candidates: min(max(told, by.Candidates()), vocab),
		Stats: graph.None,
	}
	if p.OnGPU() {
		p.Values, p.IDs, p.Stats = basic.TopK(b, "top", logits, p.Candidates)
		b.Output(p.IDs)
		b.Output(p.Values)
		b.Output(p.Stats)
		return p
	}
	p.IDs, p.Values = basic.ArgmaxValue(b, "argmax", logits, false)
	b.Output(p.IDs)
	b.Output(p.Values)
	return p
}

// Given returns the outputs of a graph that computes the next token but no logits. `token` is i32 with one
// element.
func Given(b *graph.Builder, token graph.ValueID) Picks {
	b.Output(token)
	return Picks{IDs: token, Values: graph.None, Stats: graph.None}
}

// OnGPU reports whether the GPU finds the candidates. Otherwise the GPU finds only the highest logit.
func (p *Picks) OnGPU() bool { return p.Candidates > 0 && p.Candidates <= basic.MaxTopK }
