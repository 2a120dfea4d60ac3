package analyze

import (
	"slices"

	"gpuscope/trace"
)

// StepCosts holds the costs that were measured at a step: one cost for each set of dispatches that was
// skipped. A cost applies only where the dispatches take the same routes as in this step.
type StepCosts struct {
	Step *trace.Step
	X    *Index
	sets map[string]*RowCost
	Ran  map[trace.DispatchID]*trace.Plan
}

// Of returns the cost of skipping these dispatches together, or nil if it was not measured.
func (c *StepCosts) Of(ids []trace.DispatchID) *RowCost { return c.sets[trace.SetKey(ids)] }

// Beside returns the cost of skipping the given launches together, or nil. The cost is nil if one of the
// launches ran differently when the cost was measured: by another route, with another kernel or number of
// tokens, or not at all. In this case other is that launch.
func (c *StepCosts) Beside(launches []*Launch) (cost *RowCost, other *Launch) {
	if c == nil {
		return nil, nil
	}
	var ids []trace.DispatchID
	for _, l := range launches {
		p := c.Ran[l.ID]
		if p != nil {
			ids = append(ids, l.ID)
		}
		same := p != nil && p.SameKernel(l.Plan)
		if (!same || l.Tokens != len(c.Step.Tokens)) && other == nil {
			other = l
		}
	}
	switch cost = c.Of(ids); {
	case cost == nil:
		return nil, nil
	case other != nil:
		return nil, other
	}
	return cost, nil
}

// Costs returns the costs that were measured at the last step of a selection that has costs. If there are
// several selections, the first selection with such a step is used. If no step has costs, Costs returns nil.
func (x *Index) Costs(selections ...Selection) *StepCosts {
	for _, s := range selections {
		for _, step := range slices.Backward(s.Steps) {
			if len(x.Trace.Steps[step].Costs) > 0 {
				return x.CostsOf(step)
			}
		}
	}
	return nil
}

// CostsOf returns the costs that were measured at a step. `step` is an index into Trace.Steps.
func (x *Index) CostsOf(step int) *StepCosts {
	s := &x.Trace.Steps[step]
	ran, streamed := x.ran(s), x.streamed(s)
	c := &StepCosts{Step: s, X: x, sets: map[string]*RowCost{}, Ran: ran}
	d := &x.Trace.Device
	judged := NoSave(d) == ""
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
		c.sets[trace.SetKey(r.Dispatches)] = r
	}
	return c
}

// CostOf returns the cost of skipping all dispatches of a part together, or nil if it is not known.
func (t *DispatchTree) CostOf(p trace.Part) *RowCost {
	var list []*Launch
	for i := range t.Launches {
		if _, in := slices.BinarySearch(p.Dispatches, t.Launches[i].ID); in {
			list = append(list, &t.Launches[i])
		}
	}
	cost, _ := t.Costs.Beside(list)
	return cost
}
