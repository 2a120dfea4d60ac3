package stepping

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/ops/kind"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze/ranking"
)

// costed holds all samples of the step whose costs were measured last. Repeating the command for the same
// step adds samples, which makes the costs more precise.
type costed struct {
	step    int
	samples *engine.CostSamples
}

// costFor is the time limit for measuring costs if the command does not state the number of rounds. If a part
// has the field Rival set, the limit is session.CostBudget instead.
const costFor = 3 * time.Second

// beginCost checks a cost command before any step is run.
func (s *Session) beginCost(c session.Command) (Work, error) {
	if err := s.canRepeat(); err != nil {
		return nil, err
	}
	if c.N > engine.MostCostRounds {
		return nil, session.Refusef("cost: %d rounds were requested, but the maximum is %d", c.N,
			engine.MostCostRounds)
	}
	if n := len(c.Parts); n > trace.MaxCosts/2 {
		return nil, session.Refusef("cost: %d groups of dispatches were requested, but the maximum is %d", n,
			trace.MaxCosts/2)
	}
	t, err := s.StepAgain(c.Step)
	if err != nil {
		return nil, err
	}
	slots := s.Graph.NumDispatches()
	for _, p := range c.Parts {
		if len(p.Dispatches) == 0 {
			return nil, session.Refusef("cost: the group %.40q contains no dispatches", p.Name)
		}
		for _, id := range p.Dispatches {
			if id < 0 || int(id) >= slots {
				return nil, session.Refusef("cost: group %.40q: there is no dispatch %d; the graph has %d dispatches",
					p.Name, id, slots)
			}
		}
	}
	return func(ctx context.Context, r *session.Reply) error {
		s.Upto = nil
		err := s.cost(ctx, t, c, r)
		// After a cancellation, do not restore the values of the current step here: the next command that
		// needs them calls Hold.
		if ctx.Err() == nil {
			err = gpu.Join(err, s.Hold(ctx))
		}
		return err
	}, nil
}

// cost measures how long the whole step takes, and how long it takes without each of the given parts.
func (s *Session) cost(ctx context.Context, t Step, c session.Command, r *session.Reply) error {
	if _, err := s.Again(ctx, t, engine.TimingStep); err != nil {
		return err
	}
	sets := make([][]trace.DispatchID, len(c.Parts))
	for i, p := range c.Parts {
		sets[i] = p.Dispatches
	}
	if s.costed.step != t.Index || s.costed.samples == nil {
		s.costed = costed{t.Index, &engine.CostSamples{}}
	}
	kernels, err := kind.Ceilings()
	if err != nil {
		return err
	}
	o := engine.CostOptions{
		Rounds: c.N, Progress: s.Progress(), Samples: s.costed.samples, Empty: kernels.Empty,
	}
	rivals := slices.ContainsFunc(c.Parts, func(p trace.Part) bool { return p.Rival })
	if c.N == 0 {
		if o.For = costFor; rivals {
			o.For, o.Rounds = session.CostBudget(s.Dev.Info().Type == gpu.CPU), engine.MostCostRounds
			o.Decided = func(found engine.Costs) bool {
				return ranking.Decided(found.Whole, c.Parts, found.Sets)
			}
		}
		if end, ok := ctx.Deadline(); ok { // end with the last full round before the deadline
			o.For = min(o.For, max(time.Until(end), 1))
		}
	}
	costs, err := s.Exec.Costs(ctx, sets, o)
	told := trace.Costs{Step: t.Index, Whole: costs.Whole}
	r.Repeats = costs.Whole.N // if no parts are given, only whole steps run
	for i, cost := range costs.Sets {
		if cost.Name = c.Parts[i].Name; cost.N > 0 {
			told.Costs = append(told.Costs, cost)
		}
		if i == 0 || cost.N < r.Repeats {
			r.Repeats = cost.N
		}
	}
	if costs.Whole.N > 0 {
		s.Record(trace.Record{Costs: &told})
	}
	if n := len(told.Costs); n > 0 {
		stopped := ""
		switch {
		case ctx.Err() != nil:
			stopped = "; stopped early"
		case o.Decided != nil && !o.Decided(costs):
			stopped = "; the order of the rows to fix first is not significant yet"
		}
		parts := fmt.Sprintf("%d parts", n)
		if n == 1 {
			parts = "1 part"
		}
		r.Note = s.Event(t.Index, "cost", "measured the cost of %s in %s%s", parts,
			trace.Rounds(told.Costs), stopped)
	}
	return err
}

// progressEvery is the minimum time between two progress reports of a measuring command.
const progressEvery = 50 * time.Millisecond

// rateAfter is how long a measuring command runs before the speed of its progress is known.
const rateAfter = 500 * time.Millisecond

// Progress returns a function that reports progress to the front end, at most once per progressEvery.
func (s *Session) Progress() engine.Progress {
	var told, began time.Time
	var first session.Progress
	return func(phase string, done, total int) error {
		now := time.Now()
		if done != total && now.Sub(told) < progressEvery {
			return nil
		}
		told = now
		at := session.Progress{Phase: phase, Done: done, Total: total}
		if phase != first.Phase {
			first, began = at, now
		}
		if passed := now.Sub(began); passed >= rateAfter {
			at.PerSecond = float64(done-first.Done) / passed.Seconds()
		}
		s.sender.Send(func() session.Event { return session.Event{Progress: &at} })
		return nil
	}
}
