package model

import (
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
