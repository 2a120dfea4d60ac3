package sample

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// Picks are the outputs of a graph that tell which tokens come next.
type Picks struct {
	Told        int // candidates that a step tells; 0: the token alone
	Sampling    Sampling
	Candidates  int           // that are read back
	IDs, Values graph.ValueID // i32 and f32, of the candidates, at least one
	Stats       graph.ValueID // f32 [1, 4] as ops.TopK has them; None where the host finds the candidates
}

// Pick adds them to a graph for a number of candidates to be told.
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

// OnGPU says whether an operator finds the candidates, and not only the first.
func (p *Picks) OnGPU() bool { return p.Candidates > 0 && p.Candidates <= basic.MaxTopK }
