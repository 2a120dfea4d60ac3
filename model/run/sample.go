package run

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gpuscope/engine"
	"gpuscope/engine/graph"
	"gpuscope/model/arch"
	"gpuscope/model/network"
	"gpuscope/model/sample"
	"gpuscope/trace"
)

// The GPU finds the highest logits. For a vocabulary of 128,256 tokens the host would need 2 ms for this,
// longer than for all its other work in a step. A step reads back the highest logits with their token ids, in
// descending order. Among equal logits the lower id is first. A NaN sorts before every number, so if any
// logit is NaN, the first result is NaN. The host searches all logits only if more candidates are requested
// than the operator on the GPU can find.

// picker picks the token from the outputs that a step read back. It reuses its buffers for every step.
type picker struct {
	exec   *engine.Executor
	Net    *network.Network
	read   []graph.ValueID // the outputs that a step reads back if it produces a token
	words  []byte
	ids    []int
	values []float64
	ranked []int // token ids in descending order of their logits
	sample.Sampler
}

// Picked is the result of a step that produces a token.
type Picked struct {
	Token int
	// Highest is the highest logit. It is not finite if the logits contain NaN or Inf, and 0 if the graph
	// computes no logits.
	Highest float64
	Top     []trace.Candidate
}

// Finite reports whether the highest logit is finite. If it is, no logit is NaN or +Inf, because these would
// sort first.
func (p *Picked) Finite() bool { return !math.IsNaN(p.Highest) && !math.IsInf(p.Highest, 0) }

func newPicker(exec *engine.Executor, n *network.Network) picker {
	p := picker{exec: exec, Net: n, read: []graph.ValueID{n.IDs}}
	p.Sampling = n.Sampling
	if n.Values != graph.None {
		p.read = append(p.read, n.Values)
	}
	switch {
	case n.OnGPU():
		p.read = append(p.read, n.Stats)
	case n.Candidates > 0:
		p.read = append(p.read, n.Logits)
	}
	p.read = append(p.read, n.ExpertCounts...)
	return p
}

// Pick picks the token for a position from the outputs that the step read back. It also returns the
// candidates if they were requested. `recent` lists the earlier tokens to which the repeat penalty applies.
func (p *picker) Pick(recent []int, position int) (Picked, error) {
	if err := p.output(p.Net.IDs, "the token"); err != nil {
		return Picked{}, err
	}
	p.ids = p.ids[:0]
	for word := range slices.Chunk(p.words, 4) {
		p.ids = append(p.ids, int(int32(binary.LittleEndian.Uint32(word))))
	}
	if bad := slices.IndexFunc(p.ids, func(id int) bool { return id < 0 || id >= p.Net.Vocab }); bad >= 0 {
		return Picked{},
			fmt.Errorf("the device produced token id %d, but the vocabulary has only %d tokens",
				p.ids[bad], p.Net.Vocab)
	}
	if p.Net.Values == graph.None {
		return Picked{Token: p.ids[0]}, nil
	}
	if err := p.floats(p.Net.Values, "the token's logit"); err != nil {
		return Picked{}, err
	}
	out := Picked{Token: p.ids[0], Highest: p.values[0]}
	if p.Net.Candidates == 0 {
		return out, nil
	}
	find := p.ranking
	if p.Net.OnGPU() {
		find = p.found
	}
	list, sum, err := find()
	if err == nil && !p.Greedy() && out.Finite() {
		out.Token, err = p.among(list, sum, recent, position)
	}
	out.Top = list[:min(len(list), p.Net.Told)]
	return out, err
}

// among draws the token at random from the candidates. If a token that is not a candidate might be drawn, it
// reads all logits and draws from them.
func (p *picker) among(list []trace.Candidate, sum float64, recent []int, position int) (int, error) {
	token, ok := p.Draw(list, sum, len(list) == p.Net.Vocab, recent, position)
	if ok {
		return token, nil
	}
	if p.Net.OnGPU() { // if the host found the candidates, it has already read all logits
		p.words = slices.Grow(p.words[:0], 4*p.Net.Vocab)[:4*p.Net.Vocab]
		if err := p.exec.ReadValue(p.Net.Logits, p.words); err != nil {
			return 0, fmt.Errorf("read the logits back: %w", err)
		}
		p.decode()
	}
	all, sum := p.rank(p.Net.Vocab)
	token, _ = p.Draw(all, sum, true, recent, position)
	return token, nil
}

// output copies a graph output to p.words.
func (p *picker) output(v graph.ValueID, what string) error {
	n := 4 * arch.Numel(p.Net.Graph.Value(v).MaxDims)
	p.words = slices.Grow(p.words[:0], n)[:n]
	if _, err := p.exec.Output(v, p.words); err != nil {
		return fmt.Errorf("read %s back: %w", what, err)
	}
	return nil
}

// floats copies a graph output to p.values.
func (p *picker) floats(v graph.ValueID, what string) error {
	if err := p.output(v, what); err != nil {
		return err
	}
	p.decode()
	return nil
}

func (p *picker) decode() {
	p.values = p.values[:0]
	for word := range slices.Chunk(p.words, 4) {
		p.values = append(p.values, float64(math.Float32frombits(binary.LittleEndian.Uint32(word))))
	}
}

// found returns the candidates that the GPU found, and the sum of exp(logit - highest) over the vocabulary.
// The ids and logits of the candidates must already be in p.ids and p.values.
func (p *picker) found() ([]trace.Candidate, float64, error) {
	list := make([]trace.Candidate, len(p.ids))
	for i, id := range p.ids {
		list[i] = trace.Candidate{ID: id, Logit: p.values[i]}
	}
	if err := p.floats(p.Net.Stats, "the candidates"); err != nil {
		return nil, 0, err
	}
	highest, sum := p.values[0], p.values[1]
	for i := range list {
		list[i].P = math.Exp(list[i].Logit-highest) / sum
	}
	return list, sum, nil
}

// ranking returns the same results as the method `found`. It is used if the GPU did not find the candidates:
// the host then finds them among all logits.
func (p *picker) ranking() ([]trace.Candidate, float64, error) {
	if err := p.floats(p.Net.Logits, "the logits"); err != nil {
		return nil, 0, err
	}
	list, sum := p.rank(p.Net.Candidates)
	return list, sum, nil
}

// rank returns the n highest logits in p.values, and the sum of exp(logit - highest) over all logits.
func (p *picker) rank(n int) ([]trace.Candidate, float64) {
	logits := p.values
	higher := func(a, b int) int {
		x, y := logits[a], logits[b]
		if math.IsNaN(x) != math.IsNaN(y) {
			x, y = y, x // the order is descending, so swap to keep a NaN first
		}
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(a, b))
	}
	p.ranked = p.ranked[:0]
	for id := range logits {
		if n == len(logits) {
			p.ranked = append(p.ranked, id)
			continue
		}
		if len(p.ranked) == n && higher(id, p.ranked[n-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(p.ranked, id, higher)
		p.ranked = slices.Insert(p.ranked[:min(len(p.ranked), n-1)], at, id)
	}
	if n == len(logits) {
		slices.SortFunc(p.ranked, higher)
	}
	highest := logits[p.ranked[0]]
	var sum float64
	for _, x := range logits {
		sum += math.Exp(x - highest)
	}
	list := make([]trace.Candidate, len(p.ranked))
	for i, id := range p.ranked {
		list[i] = trace.Candidate{ID: id, Logit: logits[id], P: math.Exp(logits[id]-highest) / sum}
	}
	return list, sum
}
