package model

import (
	"context"
	"fmt"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/model/run"
	"gpuscope/ops"
	"gpuscope/session"
	"gpuscope/trace"
)

// costed is the step whose costs were measured last, with all that its runs took: what is measured again
// joins it, so that costs are told the better the more often they are asked for.
type costed struct {
	step    int
	samples *engine.CostSamples
}

// costFor is within how long the rounds of a cost end where their number was not asked for.
const costFor = 3 * time.Second

// beginCost checks what does not take a run of the step.
func (s *live) beginCost(c session.Command) (work, error) {
	if err := s.canRepeat(); err != nil {
		return nil, err
	}
	if c.N > engine.MostCostRounds {
		return nil, session.Refusef("cost: %d rounds, want at most %d", c.N, engine.MostCostRounds)
	}
	if n := len(c.Parts); n > trace.MaxCosts/2 {
		return nil, session.Refusef("cost: %d parts, want at most %d", n, trace.MaxCosts/2)
	}
	t, err := s.turnAgain(c.Step)
	if err != nil {
		return nil, err
	}
	slots := s.runner.Net.Graph.NumDispatches()
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
	return func(ctx context.Context, r *session.Reply) error {
		s.upto = nil
		err := s.cost(ctx, t, c, r)
		if ctx.Err() == nil { // else the next that needs the current step does it
			err = gpu.Join(err, s.hold(ctx))
		}
		return err
	}, nil
}

// cost measures what a step takes without each of some parts, and whole.
func (s *live) cost(ctx context.Context, t *run.Turn, c session.Command, r *session.Reply) error {
	if _, err := s.again(ctx, t, engine.TimingStep); err != nil {
		return err
	}
	sets := make([][]trace.DispatchID, len(c.Parts))
	for i, p := range c.Parts {
		sets[i] = p.Dispatches
	}
	if s.costed.step != t.Index || s.costed.samples == nil {
		s.costed = costed{t.Index, &engine.CostSamples{}}
	}
	kernels, err := ops.Ceilings()
	if err != nil {
		return err
	}
	o := engine.CostOptions{
		Rounds: c.N, Progress: s.progress(), Samples: s.costed.samples, Empty: kernels.Empty,
	}
	if c.N == 0 {
		o.For = costFor
		if end, ok := ctx.Deadline(); ok { // rounds that are whole rather than one that is cut
			o.For = min(o.For, max(time.Until(end), 1))
		}
	}
	costs, err := s.runner.Exec.Costs(ctx, sets, o)
	told := trace.Costs{Step: t.Index, Whole: costs.Whole}
	r.Repeats = costs.Whole.N // of none there are whole runs alone
	for i, cost := range costs.Sets {
		if cost.Name = c.Parts[i].Name; cost.N > 0 {
			told.Costs = append(told.Costs, cost)
		}
		if i == 0 || cost.N < r.Repeats {
			r.Repeats = cost.N
		}
	}
	if costs.Whole.N > 0 {
		s.record(trace.Record{Costs: &told})
	}
	if n := len(told.Costs); n > 0 {
		stopped := ""
		if ctx.Err() != nil {
			stopped = ", then stopped"
		}
		parts := fmt.Sprintf("%d parts", n)
		if n == 1 {
			parts = "1 part"
		}
		s.event(t.Index, "cost", "cost of %s measured, in %s%s", parts, trace.Rounds(told.Costs), stopped)
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
