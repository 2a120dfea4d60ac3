package model

import (
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/model/run"
	"gpuscope/session"
	"gpuscope/trace"
)

// onDevice loads a model's network on the machine's device, without a session.
func onDevice(t *testing.T, o Options) *run.Runner {
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
	x, err := engine.Load(dev, net.Graph, graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Release)
	return run.NewRunner(dev, x, net)
}

// deviceSession opens a session on the machine's device. The returned function closes the session and returns
// the complete trace, as built from the session's events.
func deviceSession(t *testing.T, o Options) (*live, func() *trace.Trace) {
	t.Helper()
	dev := gputest.Open(t)
	m, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	silent := func(string, int, int) error { return nil }
	n, err := m.graphFor(dev.Info().Limits, silent, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.load(dev, n, silent, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	s := start(m, r, m.header(r))
	var mirror session.Mirror
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range s.Events() {
			if err := mirror.Apply(e); err != nil {
				t.Error(err)
			}
		}
	}()
	return s, func() *trace.Trace {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-done
		return mirror.Trace
	}
}
