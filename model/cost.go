package model

import (
	"context"
	"fmt"
	"time"

	"gpuscope/engine"
	"gpuscope/model/session"
	"gpuscope/trace"
)

// costFor is after how long no round of a cost begins where their number was not asked for.
const costFor = 3 * time.Second

// beginCost checks what does not take a run of the step.
func (s *live) beginCost(c session.Command) (work, error) {
	if err := s.canRepeat(); err != nil {
		return nil, err
	}
	if c.N > engine.MostCostRounds {
		return nil, session.Refusef("cost: %d rounds, want at most %d", c.N, engine.MostCostRounds)
	}
	if len(c.Parts) == 0 {
		return nil, session.Refusef("cost: say which dispatches to leave out")
	}
	slots := len(s.runner.net.graph.Describe().Dispatches)
	for _, p := range c.Parts {
		if len(p.Dispatches) == 0 {
			return nil, session.Refusef("cost of %.40q: it has no dispatches", p.Name)
		}
		for _, id := range p.Dispatches {
			if id < 0 || int(id) >= slots {
				return nil, session.Refusef("cost of %.40q: dispatch %d, the graph has %d", p.Name, id, slots)
			}
		}
	}
	return func(ctx context.Context, r *session.Reply) error { return s.cost(ctx, c, r) }, nil
}

// cost measures what the current step takes without each of some parts.
func (s *live) cost(ctx context.Context, c session.Command, r *session.Reply) error {
	t := s.text.last()
	// Once more as it was: another step may have run since.
	if _, err := s.runner.step(ctx, t.position, t.tokens, t.gives, engine.TimingStep); err != nil {
		return err
	}
	sets := make([][]trace.DispatchID, len(c.Parts))
	for i, p := range c.Parts {
		sets[i] = p.Dispatches
	}
	o := engine.CostOptions{Rounds: c.N, Progress: s.progress()}
	if c.N == 0 {
		o.For = costFor
	}
	costs, err := s.runner.exec.Costs(ctx, sets, o)
	told := trace.Costs{Step: t.index, Whole: costs.Whole}
	for i, cost := range costs.Sets {
		if cost.Name = c.Parts[i].Name; cost.N > 0 {
			told.Costs = append(told.Costs, cost)
		}
		if r.Repeats = min(r.Repeats, cost.N); i == 0 {
			r.Repeats = cost.N
		}
	}
	if len(told.Costs) > 0 {
		s.record(trace.Record{Costs: &told})
		s.record(trace.Record{Event: &trace.Event{
			Step: t.index, Kind: "cost",
			Text: fmt.Sprintf("measured the cost of %d parts of step %d, in %d rounds", len(told.Costs),
				t.index, told.Costs[0].N),
		}})
	}
	return err
}

// progressEvery is how often a command that measures says how far it has come.
const progressEvery = 50 * time.Millisecond

// progress tells the front end how far a command has come, not more often than anybody can see.
func (s *live) progress() engine.Progress {
	var told time.Time
	return func(phase string, done, total int) error {
		if now := time.Now(); done == total || now.Sub(told) >= progressEvery {
			told = now
			s.teller.tell(func() session.Event {
				return session.Event{Progress: &session.Progress{Phase: phase, Done: done, Total: total}}
			})
		}
		return nil
	}
}
