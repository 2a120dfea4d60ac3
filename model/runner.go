package model

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// runner is a network on a device: tokens at a position go in, the next token comes out. Its buffers are used
// again from step to step.
type runner struct {
	dev  gpu.Device
	exec *engine.Executor
	rec  *engine.Recorder
	net  *network
	top  int // candidates that a step tells

	input    engine.StepInput
	data     []byte
	host     []int64
	read     []engine.ValueID // what a step reads back that gives a token
	logits   []byte
	ranked   []int // ids of the highest logits, falling
	sampleNS int64 // ns that picking the last step's token took on the host; 0 where it gave none
}

// output is what a step that gives a token gives.
type output struct {
	token int
	top   []trace.Candidate
}

func newRunner(dev gpu.Device, exec *engine.Executor, n *network, top int) *runner {
	r := &runner{
		dev: dev, exec: exec, rec: engine.NewRecorder(exec), net: n, top: min(top, n.vocab()),
		read: []engine.ValueID{n.next},
	}
	r.input.Inputs = []engine.InputData{{Value: n.tokens, Dims: []int{1, 0}}}
	r.input.SymInts = []engine.SymIntValue{{Value: n.pos}}
	if r.top > 0 {
		r.read = append(r.read, n.logits)
		r.logits = make([]byte, 4*n.vocab())
	}
	return r
}

// release frees the device and everything on it.
func (r *runner) release() {
	r.exec.Release()
	r.dev.Release()
}

// timed says whether the device can time dispatches.
func (r *runner) timed() bool { return r.dev.Info().Timestamps }

// step runs tokens at a position. Where it gives a token the output has it.
func (r *runner) step(ctx context.Context, position int, tokens []int, gives bool,
	timing engine.Timing,
) (output, error) {
	r.data, r.host = r.data[:0], r.host[:0]
	for _, t := range tokens {
		r.data = binary.LittleEndian.AppendUint32(r.data, uint32(t))
		r.host = append(r.host, int64(t))
	}
	in := &r.input.Inputs[0]
	in.Dims[1], in.Data, in.Host = len(tokens), r.data, r.host
	r.input.SymInts[0].Int = int64(position)
	r.input.Read, r.sampleNS = nil, 0
	if gives {
		r.input.Read = r.read
	}
	if err := r.exec.Step(ctx, &r.input, timing); err != nil {
		return output{}, err
	}
	if !gives {
		return output{}, nil
	}
	start := time.Now()
	out, err := r.sample()
	r.sampleNS = time.Since(start).Nanoseconds()
	return out, err
}

// sample takes the token, and the candidates where they are wanted, from what the step read back.
func (r *runner) sample() (output, error) {
	var word [4]byte
	if _, err := r.exec.Output(r.net.next, word[:]); err != nil {
		return output{}, fmt.Errorf("read the token back: %w", err)
	}
	out := output{token: int(int32(binary.LittleEndian.Uint32(word[:])))}
	if out.token < 0 || out.token >= r.net.vocab() {
		return output{},
			fmt.Errorf("the device gave token %d of a vocabulary of %d", out.token, r.net.vocab())
	}
	if r.top > 0 {
		if _, err := r.exec.Output(r.net.logits, r.logits); err != nil {
			return output{}, fmt.Errorf("read the logits back: %w", err)
		}
		out.top = r.candidates()
	}
	return out, nil
}

// record is the last step as a trace has it, and the plans that are new with it. Its wall time ends when its
// token is known: nobody can begin the next step before.
func (r *runner) record() ([]trace.Plan, trace.Step) {
	plans, step := r.rec.Step()
	if r.sampleNS > 0 {
		step.CPU.SampleNS = trace.Measured(r.sampleNS)
		total, _ := step.CPU.TotalNS.NS()
		step.CPU.TotalNS = trace.Measured(total + r.sampleNS)
	}
	return plans, step
}

func (r *runner) logit(id int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(r.logits[4*id:])))
}

// candidates are the highest logits in falling order with their probabilities; of equal ones the lower id is
// first.
func (r *runner) candidates() []trace.Candidate {
	higher := func(a, b int) int { return cmp.Or(cmp.Compare(r.logit(b), r.logit(a)), cmp.Compare(a, b)) }
	r.ranked = r.ranked[:0]
	for id := range r.net.vocab() {
		if len(r.ranked) == r.top && higher(id, r.ranked[r.top-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(r.ranked, id, higher)
		if len(r.ranked) == r.top {
			r.ranked = r.ranked[:r.top-1]
		}
		r.ranked = slices.Insert(r.ranked, at, id)
	}
	highest := r.logit(r.ranked[0])
	var sum float64
	for id := range r.net.vocab() {
		sum += math.Exp(r.logit(id) - highest)
	}
	list := make([]trace.Candidate, len(r.ranked))
	for i, id := range r.ranked {
		list[i] = trace.Candidate{ID: id, Logit: r.logit(id), P: math.Exp(r.logit(id)-highest) / sum}
	}
	return list
}
