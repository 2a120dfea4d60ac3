package sample

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// Picks describes the outputs of a graph from which the next token is picked.
type Picks struct {
	Told        int // number of candidates that a step reports; 0 for the token only
	Sampling    Sampling
	Candidates  int           // number of candidates that are read back
	IDs, Values graph.ValueID // token ids (i32) and logits (f32) of the candidates, at least one
	// Stats is the f32 [1, 4] output of ops.TopK; None if the host finds the candidates.
	Stats graph.ValueID
}

// Pick adds to a graph the outputs from which the next token is picked. told is the number of candidate
// tokens that each step reports, or 0 to report only the next token.
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

// OnGPU reports whether the GPU finds the candidates and not only the highest logit.
func (p *Picks) OnGPU() bool { return p.Candidates > 0 && p.Candidates <= basic.MaxTopK }
