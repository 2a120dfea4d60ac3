package model

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/forecast"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// At is a trace of one step that nothing ran: what a step of so many tokens at a position would launch on a
// device with these limits.
func (m *Model) At(limits gpu.Limits, tokens, position int) (*trace.Trace, error) {
	if err := m.checkShape(tokens, position); err != nil {
		return nil, err
	}
	n, err := m.build(limits)
	if err != nil {
		return nil, err
	}
	l, err := graph.NewLive(n.graph, m.options.Live)
	if err != nil {
		return nil, err
	}
	if err := n.at(l, tokens, position); err != nil {
		return nil, err
	}
	if err := l.Propagate(); err != nil {
		return nil, err
	}
	l.Commit()
	t := &trace.Trace{
		Schema: trace.Schema, Static: m.options.Live.Static, Model: m.Info(), Graph: n.graph.Describe(),
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

// checkShape refuses a step that the graph is not made for.
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

// at sets a graph to the live shapes of a step of so many tokens at a position.
func (n *network) at(l *graph.Live, tokens, position int) error {
	if err := l.SetDims(n.tokens, 1, tokens); err != nil {
		return err
	}
	if err := l.SetHost(n.tokens, make([]int64, tokens)); err != nil {
		return err
	}
	return l.SetInt(n.pos, int64(position))
}

// farthest is the last position that is planned ahead: planning a model of 8B that far takes some 6 s of
// a core, or half of that on two.
const farthest = 1<<17 - 1

// plannedAhead is a forecast, or why there is none.
type plannedAhead struct {
	forecast *trace.Forecast
	err      error
}

// planAhead makes the forecast beside what the caller does, who waits for it.
func (n *network) planAhead(ctx context.Context, o graph.LiveOptions) <-chan plannedAhead {
	done := make(chan plannedAhead, 1)
	go func() {
		f, err := n.forecast(ctx, o)
		done <- plannedAhead{f, err}
	}()
	return done
}

// await waits for a forecast, and says so. It ends soon where the forecast's context does.
func await(ahead <-chan plannedAhead, progress engine.Progress) plannedAhead {
	for {
		select {
		case p := <-ahead:
			return p
		case <-time.After(200 * time.Millisecond):
			_ = progress("plan ahead", 0, 0)
		}
	}
}

// forecast is what dispatches are given where the model may go: at every position of decoding, at every
// length of a prompt from its beginning, and at every position of a prompt that is taken in by full chunks.
func (n *network) forecast(ctx context.Context, o graph.LiveOptions) (*trace.Forecast, error) {
	chunk := n.graph.Value(n.tokens).MaxDims[1]
	last := int(n.graph.Value(n.pos).Range[1])
	lines := []trace.Line{
		{Along: trace.AlongPosition, At: 1, From: 0, To: min(last, farthest)},
		{Along: trace.AlongTokens, At: 0, From: 1, To: chunk},
		{Along: trace.AlongPosition, At: chunk, From: 0, To: min(last+1-chunk, farthest)},
	}
	if chunk == 1 {
		lines = lines[:2] // the third is the first
	}
	errs := make([]error, len(lines))
	var all sync.WaitGroup
	for i := range lines {
		all.Go(func() {
			line := &lines[i]
			set := func(l *graph.Live, at int) error { return n.at(l, line.At, at) }
			if line.Along == trace.AlongTokens {
				set = func(l *graph.Live, at int) error { return n.at(l, at, line.At) }
			}
			planned, err := forecast.Line(n.graph, ctx, o, line.From, line.To, set)
			if err != nil {
				errs[i] = fmt.Errorf("forecast along the %s: %w", line.Along, err)
			}
			planned.Along, planned.At = line.Along, line.At
			*line = planned
		})
	}
	all.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	return &trace.Forecast{Lines: lines}, nil
}
