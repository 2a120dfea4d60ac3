// Package analyzetest adds measurements to traces, for tests.
package analyzetest

import (
	"context"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Rounds is the number of rounds of the costs that Cost adds.
const Rounds = 30

// Cost adds a cost for each part of a step, and times of the whole step. The cost of a part is half of the
// sum of the isolated times of its dispatches. `step` is an index into Trace.Steps. Each dispatch of the step
// must have a time.
func Cost(t *trace.Trace, step int) error {
	parts, err := analyze.NewIndex(t).CostParts(context.Background(), step)
	if err != nil {
		return err
	}
	s := &t.Steps[step]
	took, all := map[trace.DispatchID]int64{}, int64(0)
	for i := range s.Dispatches {
		ns := analyze.Whole(analyze.TimeOf(&s.Dispatches[i]).Median) / 2
		took[t.Plans[s.Dispatches[i].Plan].Dispatch] = ns
		all += ns
	}
	for _, p := range parts {
		c := trace.Cost{Name: p.Name, Dispatches: p.Dispatches, N: Rounds, OffNS: trace.Measured(600)}
		for _, id := range p.Dispatches {
			c.NS += took[id]
		}
		c.Q1NS, c.Q3NS = c.NS-400, c.NS+600
		s.Costs = append(s.Costs, c)
	}
	s.Whole = &trace.Whole{
		NS: all, Q1NS: all - 1000, Q3NS: all + 1000, N: Rounds + 1, OffNS: trace.Measured(1000),
		WallNS: trace.Measured(all + all/50), WallOff: trace.Measured(2000),
	}
	return nil
}
