package model

import (
	"context"
	"fmt"

	"gpuscope/engine"
	"gpuscope/engine/graph"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// usualTrials is the default number of runs of each route. maxLengths is the maximum number of prompt lengths
// in a command.
const (
	usualTrials = 10
	maxLengths  = 64
)

func (s *live) beginTimeOp(c session.Command) (stepping.Work, error) {
	ops := s.runner.Net.Graph.NumOps()
	switch {
	case !s.runner.Timed():
		return nil, session.Refusef("cannot time an operator: this device has no timestamps")
	case c.Op == nil || *c.Op < 0 || int(*c.Op) >= ops:
		return nil, session.Refusef("time_op: the operator is missing or invalid; give an id from 0 to %d",
			ops-1)
	case len(c.Lengths) == 0 || len(c.Lengths) > maxLengths:
		return nil, session.Refusef("time_op: got %d prompt lengths, want 1 to %d", len(c.Lengths),
			maxLengths)
	case c.N > engine.MostTrials:
		return nil, session.Refusef("time_op: %d runs of each route were requested, but the maximum is %d",
			c.N, engine.MostTrials)
	}
	for _, m := range c.Lengths {
		if err := s.m.checkChunk(fmt.Sprintf("time_op: a prompt length of %d", m), m, 1); err != nil {
			return nil, err
		}
	}
	if c.N == 0 {
		c.N = usualTrials
	}
	return func(ctx context.Context, r *session.Reply) error { return s.timeOp(ctx, c, r) }, nil
}

// timeOp measures an operator in isolation at each of the prompt lengths. If timeOp is cancelled, completed
// measurements are kept.
func (s *live) timeOp(ctx context.Context, c session.Command, r *session.Reply) error {
	progress := s.Progress()
	for i, m := range c.Lengths {
		if err := progress("time operator", i, len(c.Lengths)); err != nil {
			return err
		}
		at := func(l *graph.Live) error { return s.runner.Net.SetShape(l, m, 0) }
		times, err := s.runner.Exec.TimeRoutes(ctx, []graph.OpID{*c.Op}, c.N, at)
		for _, t := range times {
			if t.N == 0 {
				continue
			}
			r.Repeats++
			s.Record(trace.Record{Trial: &trace.Trial{
				Op: *c.Op, Tokens: m, Route: t.Route, Planned: t.Planned, NS: t.NS, Q1NS: t.Q1NS,
				Q3NS: t.Q3NS, N: t.N,
			}})
		}
		if err != nil {
			return fmt.Errorf("at %s: %w", table.Plural(m, "token"), err)
		}
	}
	return progress("time operator", len(c.Lengths), len(c.Lengths))
}
