package model

import (
	"encoding/binary"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu/gputest"
)

// onDevice is a model's network on the machine's device, with no session around it.
func onDevice(t *testing.T, o Options) *runner {
	t.Helper()
	dev := gputest.Open(t)
	m, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	net, err := m.build(dev.Info().Limits)
	if err != nil {
		t.Fatal(err)
	}
	x, err := engine.Load(dev, net.graph, engine.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Release)
	return newRunner(dev, x, net)
}

// inputOf is what a step takes: tokens at a position.
func inputOf(n *network, position int, tokens []int) *engine.StepInput {
	in := engine.StepInput{
		Inputs:  []engine.InputData{{Value: n.tokens, Dims: []int{1, len(tokens)}}},
		SymInts: []engine.SymIntValue{{Value: n.pos, Int: int64(position)}},
	}
	for _, id := range tokens {
		in.Inputs[0].Host = append(in.Inputs[0].Host, int64(id))
		in.Inputs[0].Data = binary.LittleEndian.AppendUint32(in.Inputs[0].Data, uint32(id))
	}
	return &in
}
