package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// StepCosts are the costs of a step by what was left out. They belong to the routes on which the dispatches
// of that step ran.
type StepCosts struct {
	Step *trace.Step
	x    *Index
	sets map[string]*RowCost
	ran  map[trace.DispatchID]*trace.Plan
}

// of is the cost of some dispatches skipped together; nil where that was not measured.
func (c *StepCosts) of(ids []trace.DispatchID) *RowCost { return c.sets[setKey(ids)] }

// Beside is the cost of some launches skipped together. Where one of them ran differently than when the cost
// was measured (another route, kernel or number of tokens, or not at all), the cost is of other work: then
// there is none, and other is that launch.
func (c *StepCosts) Beside(launches []*Launch) (cost *RowCost, other *Launch) {
	if c == nil {
		return nil, nil
	}
	var ids []trace.DispatchID
	for _, l := range launches {
		p := c.ran[l.ID]
		if p != nil {
			ids = append(ids, l.ID)
		}
		same := p != nil && p.Route == l.Plan.Route && p.Kernel == l.Plan.Kernel
		if (!same || l.Tokens != len(c.Step.Tokens)) && other == nil {
			other = l
		}
	}
	switch cost = c.of(ids); {
	case cost == nil:
		return nil, nil
	case other != nil:
		return nil, other
	}
	return cost, nil
}

// costs are those of the last step of a scope that has some, of the first scope with such a step; nil where
// none has.
func (x *Index) costs(scopes ...Scope) *StepCosts {
	for _, s := range scopes {
		for _, step := range slices.Backward(s.Steps) {
			if len(x.Trace.Steps[step].Costs) > 0 {
				return x.costsOf(step)
			}
		}
	}
	return nil
}

func (x *Index) costsOf(step int) *StepCosts {
	s := &x.Trace.Steps[step]
	ran := make(map[trace.DispatchID]*trace.Plan, len(s.Dispatches))
	c := &StepCosts{Step: s, x: x, sets: map[string]*RowCost{}, ran: ran}
	streamed := x.streamed(s)
	for i := range s.Dispatches {
		p := &x.Trace.Plans[s.Dispatches[i].Plan]
		ran[p.Dispatch] = p
	}
	d := &x.Trace.Device
	judged := noSave(d) == ""
	for i := range s.Costs {
		r := &RowCost{Cost: &s.Costs[i], Floor: judged}
		for _, id := range r.Dispatches {
			if p := ran[id]; p != nil && judged {
				r.LeastNS += roofNS(d.Ceilings, float64(p.Bytes), float64(p.FLOPs), streamed)
			}
		}
		r.judge(s.Whole, x.Trace)
		if s.Whole != nil && s.Whole.NS > 0 {
			r.Share = float64(r.NS) / float64(s.Whole.NS)
		}
		c.sets[setKey(r.Dispatches)] = r
	}
	return c
}

// otherWork says how a launch differs from what ran when the costs were measured.
func (c *StepCosts) otherWork(l *Launch) string {
	name, step, was := c.x.Name(l.ID), fmt.Sprintf("s%d", c.Step.Index), c.ran[l.ID]
	ways := func(p *trace.Plan) string { return cmp.Or(p.Route, p.Kernel) }
	switch {
	case was == nil:
		return fmt.Sprintf("%s did not run in %s, where costs were measured", name, step)
	case ways(was) != ways(l.Plan):
		return fmt.Sprintf("%s takes the route %s; the cost of %s is of %s", name, ways(l.Plan), step,
			ways(was))
	case was.Kernel != l.Plan.Kernel:
		return fmt.Sprintf("%s runs %s; the cost of %s is of %s", name, l.Plan.Kernel, step, was.Kernel)
	}
	return fmt.Sprintf("%s has %s; the cost of %s is of %d", name, table.Plural(l.Tokens, "token"), step,
		len(c.Step.Tokens))
}

// otherWorkNotes say which rows have no cost because it was measured on other work, and how to get one.
func (t *DispatchTable) otherWorkNotes(about func(row int) bool) []string {
	var said []string
	for i := range t.Folded {
		if r := &t.Folded[i]; r.Other != nil && t.single(i) && about(i) {
			said = append(said, t.Costs.otherWork(r.Other))
		}
	}
	const some = 3
	if n := len(said) - some; n > 0 {
		said = append(said[:some], fmt.Sprintf("%d more", n))
	}
	if said == nil {
		return nil
	}
	return []string{"no cost: " + strings.Join(said, "; ") + ". Measure costs at a step like these."}
}

// CostOf is what a part of the table costs, skipped as a whole; nil where that is not known.
func (t *DispatchTree) CostOf(p Part) *RowCost {
	var list []*Launch
	for i := range t.Launches {
		if _, in := slices.BinarySearch(p.Dispatches, t.Launches[i].ID); in {
			list = append(list, &t.Launches[i])
		}
	}
	cost, _ := t.Costs.Beside(list)
	return cost
}
