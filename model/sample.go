package model

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gpuscope/engine"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/trace"
)

// The next token is found on the GPU: of a vocabulary of 128,256 the host would take 2 ms, more than the rest
// of a step. What is read back is the highest logits with their ids, best first and of equal ones the lower
// id; a NaN is before any number, so that one anywhere among the logits is the first. Only candidates beyond
// what an operator finds are looked for on the host, among all logits.

// picks are the outputs of a graph that tell which tokens come next.
type picks struct {
	told        int // candidates that a step tells; 0: the token alone
	sampling    Sampling
	candidates  int           // that are read back
	ids, values graph.ValueID // i32 and f32, of the candidates, at least one
	stats       graph.ValueID // f32 [1, 4] as ops.TopK has them; None where the host finds the candidates
}

// pick adds them to a graph for a number of candidates to be told.
func pick(b *graph.Builder, logits graph.ValueID, vocab, told int, by Sampling) picks {
	p := picks{
		told: min(told, vocab), sampling: by, candidates: min(max(told, by.candidates()), vocab),
		stats: graph.None,
	}
	if p.onGPU() {
		p.values, p.ids, p.stats = basic.TopK(b, "top", logits, p.candidates)
		b.Output(p.ids)
		b.Output(p.values)
		b.Output(p.stats)
		return p
	}
	p.ids, p.values = basic.ArgmaxValue(b, "argmax", logits, false)
	b.Output(p.ids)
	b.Output(p.values)
	return p
}

// onGPU says whether an operator finds the candidates, and not only the first.
func (p *picks) onGPU() bool { return p.candidates > 0 && p.candidates <= basic.MaxTopK }

// picker reads back what a step has picked. Its buffers are used again from step to step.
type picker struct {
	exec   *engine.Executor
	net    *network
	read   []graph.ValueID // what a step that gives a token reads back
	words  []byte
	ids    []int
	values []float64
	ranked []int // ids of the highest logits, falling
	sampler
}

// picked is what a step that gives a token gives.
type picked struct {
	token   int
	highest float64 // logit; not finite where the logits are damaged
	top     []trace.Candidate
}

// finite says whether the highest logit is a number. If it is, none of the others is NaN.
func (p *picked) finite() bool { return !math.IsNaN(p.highest) && !math.IsInf(p.highest, 0) }

func newPicker(exec *engine.Executor, n *network) picker {
	p := picker{exec: exec, net: n, read: []graph.ValueID{n.ids, n.values}}
	p.Sampling = n.sampling
	switch {
	case n.onGPU():
		p.read = append(p.read, n.stats)
	case n.candidates > 0:
		p.read = append(p.read, n.logits)
	}
	return p
}

// pick takes the token of a position, and the candidates where they are wanted, from what the step read
// back. recent are the tokens before it that a penalty looks at.
func (p *picker) pick(recent []int, position int) (picked, error) {
	if err := p.output(p.net.ids, "the token"); err != nil {
		return picked{}, err
	}
	p.ids = p.ids[:0]
	for word := range slices.Chunk(p.words, 4) {
		p.ids = append(p.ids, int(int32(binary.LittleEndian.Uint32(word))))
	}
	if bad := slices.IndexFunc(p.ids, func(id int) bool { return id < 0 || id >= p.net.vocab() }); bad >= 0 {
		return picked{},
			fmt.Errorf("the device gave token %d of a vocabulary of %d", p.ids[bad], p.net.vocab())
	}
	if err := p.floats(p.net.values, "the token's logit"); err != nil {
		return picked{}, err
	}
	out := picked{token: p.ids[0], highest: p.values[0]}
	if p.net.candidates == 0 {
		return out, nil
	}
	find := p.ranking
	if p.net.onGPU() {
		find = p.found
	}
	list, sum, err := find()
	if err == nil && !p.greedy() && out.finite() {
		out.token, err = p.among(list, sum, recent, position)
	}
	out.top = list[:min(len(list), p.net.told)]
	return out, err
}

// among draws the token from candidates, or from all logits where those are not enough.
func (p *picker) among(list []trace.Candidate, sum float64, recent []int, position int) (int, error) {
	token, ok := p.draw(list, sum, len(list) == p.net.vocab(), recent, position)
	if ok {
		return token, nil
	}
	if p.net.onGPU() { // the others have been read
		p.words = slices.Grow(p.words[:0], 4*p.net.vocab())[:4*p.net.vocab()]
		if err := p.exec.ReadValue(p.net.logits, p.words); err != nil {
			return 0, fmt.Errorf("read the logits back: %w", err)
		}
		p.decode()
	}
	all, sum := p.rank(p.net.vocab())
	token, _ = p.draw(all, sum, true, recent, position)
	return token, nil
}

// output copies an output to words.
func (p *picker) output(v graph.ValueID, what string) error {
	n := 4 * numel(p.net.graph.Value(v).MaxDims)
	p.words = slices.Grow(p.words[:0], n)[:n]
	if _, err := p.exec.Output(v, p.words); err != nil {
		return fmt.Errorf("read %s back: %w", what, err)
	}
	return nil
}

// floats copies an output to values.
func (p *picker) floats(v graph.ValueID, what string) error {
	if err := p.output(v, what); err != nil {
		return err
	}
	p.decode()
	return nil
}

// decode turns words into values.
func (p *picker) decode() {
	p.values = p.values[:0]
	for word := range slices.Chunk(p.words, 4) {
		p.values = append(p.values, float64(math.Float32frombits(binary.LittleEndian.Uint32(word))))
	}
}

// found are the candidates that an operator found, whose ids and values have been read, and the sum of
// exp(logit - highest) over the vocabulary.
func (p *picker) found() ([]trace.Candidate, float64, error) {
	list := make([]trace.Candidate, len(p.ids))
	for i, id := range p.ids {
		list[i] = trace.Candidate{ID: id, Logit: p.values[i]}
	}
	if err := p.floats(p.net.stats, "the candidates"); err != nil {
		return nil, 0, err
	}
	highest, sum := p.values[0], p.values[1]
	for i := range list {
		list[i].P = math.Exp(list[i].Logit-highest) / sum
	}
	return list, sum, nil
}

// ranking finds the candidates among all logits, as found gives them.
func (p *picker) ranking() ([]trace.Candidate, float64, error) {
	if err := p.floats(p.net.logits, "the logits"); err != nil {
		return nil, 0, err
	}
	list, sum := p.rank(p.net.candidates)
	return list, sum, nil
}

// rank gives the n highest of all logits, which are in values.
func (p *picker) rank(n int) ([]trace.Candidate, float64) {
	logits := p.values
	higher := func(a, b int) int {
		x, y := logits[a], logits[b]
		if math.IsNaN(x) != math.IsNaN(y) {
			x, y = y, x // Compare has a NaN before any number, and here the larger one is first
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
