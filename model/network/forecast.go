package network

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"gpuscope/engine/forecast"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// SetShape sets the shapes in l for a step with the given number of tokens at the given position.
func (n *Network) SetShape(l *graph.Live, tokens, position int) error {
	if err := l.SetDims(n.Tokens, 1, tokens); err != nil {
		return err
	}
	if err := l.SetHost(n.Tokens, make([]int64, tokens)); err != nil {
		return err
	}
	if n.PosTensor != graph.None {
		if err := l.SetHost(n.PosTensor, []int64{int64(position)}); err != nil {
			return err
		}
	}
	return l.SetInt(n.Pos, int64(position))
}

// farthest is the last position that a forecast covers. A forecast of an 8B model up to this position takes
// about 6 s on one core, and half as long on two cores.
const farthest = 1<<17 - 1

// PlannedAhead is the result of PlanAhead: a forecast, or the error that prevented it.
type PlannedAhead struct {
	Forecast *trace.Forecast
	Err      error
}

// PlanAhead computes the forecast in the background. The caller receives the result from the channel.
func (n *Network) PlanAhead(ctx context.Context, o graph.LiveOptions) <-chan PlannedAhead {
	done := make(chan PlannedAhead, 1)
	go func() {
		f, err := n.Forecast(ctx, o)
		done <- PlannedAhead{f, err}
	}()
	return done
}

// Forecast plans steps without running them, and returns how each dispatch would be launched in these steps.
// The steps are a decode step at every position, a prefill step of every length at position 0, and a prefill
// step of the maximum length at every position. Positions are at most `farthest`.
func (n *Network) Forecast(ctx context.Context, o graph.LiveOptions) (*trace.Forecast, error) {
	chunk := n.Graph.Value(n.Tokens).MaxDims[1]
	last := int(n.Graph.Value(n.Pos).Range[1])
	lines := []trace.Line{
		{Along: trace.AlongPosition, At: 1, From: 0, To: min(last, farthest)},
		{Along: trace.AlongTokens, At: 0, From: 1, To: chunk},
		{Along: trace.AlongPosition, At: chunk, From: 0, To: min(last+1-chunk, farthest)},
	}
	if chunk == 1 {
		lines = lines[:2] // with a chunk of one token, lines[2] would be the same as lines[0]
	}
	errs := make([]error, len(lines))
	var all sync.WaitGroup
	for i := range lines {
		all.Go(func() {
			line := &lines[i]
			set := func(l *graph.Live, at int) error { return n.SetShape(l, line.At, at) }
			if line.Along == trace.AlongTokens {
				set = func(l *graph.Live, at int) error { return n.SetShape(l, at, line.At) }
			}
			planned, err := forecast.Line(n.Graph, ctx, o, line.From, line.To, set)
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
