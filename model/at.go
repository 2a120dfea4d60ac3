package model

import (
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/network"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// At plans one step without running it, and returns a trace that contains only this step. The trace shows the
// step that the model would run on a device with these limits, for the given number of tokens at the given
// position.
func (m *Model) At(limits gpu.Limits, tokens, position int) (*trace.Trace, error) {
	if err := m.checkShape(tokens, position); err != nil {
		return nil, err
	}
	n, err := m.build(limits)
	if err != nil {
		return nil, err
	}
	l, err := graph.NewLive(n.Graph, m.options.Live)
	if err != nil {
		return nil, err
	}
	if err := n.SetShape(l, tokens, position); err != nil {
		return nil, err
	}
	if err := l.Propagate(); err != nil {
		return nil, err
	}
	l.Commit()
	t := &trace.Trace{
		Schema: trace.Schema, Static: m.options.Live.Static, Model: m.Info(), Graph: n.Graph.Describe(),
	}
	plans, step := l.Step()
	step.Phase, step.Timing, step.Position = trace.Prefill, trace.TimingOff, position
	if tokens == 1 {
		step.Phase = trace.Decode
	}
	step.Tokens = make([]int, tokens)
	t.Plans, t.Steps = plans, []trace.Step{step}
	return t, nil
}

// checkShape refuses a step that exceeds the limits of the graph.
func (m *Model) checkShape(tokens, position int) error {
	if err := m.checkChunk(table.Plural(tokens, "token")+" in a step", tokens, 1); err != nil {
		return err
	}
	switch {
	case position < 0:
		return session.Refusef("position %d: want 0 or more", position)
	case position > m.context-tokens:
		return session.Refusef("position %d with %s: want at most %d, for a context of %d", position,
			table.Plural(tokens, "token"), m.context-tokens, m.context)
	}
	return nil
}

// await waits for a forecast and reports progress meanwhile. To end the wait early, cancel the context of the
// forecast.
func await(ahead <-chan network.PlannedAhead, progress engine.Progress) network.PlannedAhead {
	for {
		select {
		case p := <-ahead:
			return p
		case <-time.After(200 * time.Millisecond):
			_ = progress("plan ahead", 0, 0)
		}
	}
}
