package graph

import (
	"fmt"
	"slices"
)

// A plan is a pure function, so planning an operator again at the current shapes must return the same plan.
// If it does not, the current plan is stale: either the operator was not re-planned after a change, or its
// plan is not a pure function.

// StaleError reports that a current plan, or its params on the device, differs from a newly computed plan.
type StaleError struct {
	Op, Kind, Dispatch string
	What               string
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("check: %s (%s): %s", e.Dispatch, e.Kind, e.What)
}

// Fresh plans an operator again at the current shapes, and returns a *StaleError if the plan differs.
func (l *Live) Fresh(id OpID) (*Plan, error) {
	o, fresh := &l.G.Ops[id], &l.scratchPlans[id]
	if err := l.planAfresh(o, fresh); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return fresh, l.stale(o, fresh)
}

func (l *Live) planAfresh(o *Op, into *Plan) error {
	was := l.planner.env
	l.planner.env = l.now
	defer func() { l.planner.env = was }()
	if err := l.planner.make(o, into, l.requested[o.ID], o.Aliased); err != nil {
		return err
	}
	if l.static {
		l.pin(o, into)
	}
	return nil
}

// stale compares the current plan with a fresh plan, and returns a *StaleError for the first difference.
func (l *Live) stale(o *Op, fresh *Plan) error {
	inForce := &l.Plans[o.ID]
	for i := range fresh.outs {
		out, v := &fresh.outs[i], o.out(i)
		if l.G.Values[v].Kind == SymInt {
			if out.int != l.now.ints[v] {
				return l.Stale(o, -1,
					fmt.Sprintf("%s is %d, but a new plan computes %d", l.G.Values[v].Name, l.now.ints[v],
						out.int))
			}
		} else if !slices.Equal(out.dims, l.now.dims[v]) {
			return l.Stale(o, -1,
				fmt.Sprintf("%s has dims %v, but a new plan computes dims %v",
					l.G.Values[v].Name, l.now.dims[v], out.dims))
		}
	}
	if inForce.Route != fresh.Route {
		return l.Stale(o, -1,
			fmt.Sprintf("the current plan uses route %s, but a new plan uses route %s",
				o.routeLabel(inForce.Route), o.routeLabel(fresh.Route)))
	}
	for s := range fresh.Launches {
		a, b := &inForce.Launches[s], &fresh.Launches[s]
		switch {
		case a.Active != b.Active:
			return l.Stale(o, s, fmt.Sprintf("slot is launched: %v in the current plan, but %v in a new plan",
				a.Active, b.Active))
		case a.Active && a.Grid.Counts() != b.Grid.Counts():
			return l.Stale(o, s,
				fmt.Sprintf("the current plan has grid %v, but a new plan has grid %v",
					a.Grid.Counts(), b.Grid.Counts()))
		}
	}
	return nil
}

// Stale returns a *StaleError for a dispatch slot of an operator, or for the operator itself if slot is -1.
// The string `what` describes how the current plan differs from the newly computed plan.
func (l *Live) Stale(o *Op, slot int, what string) error {
	e := &StaleError{Op: o.Name, Kind: o.Spec.Kind, Dispatch: o.Name, What: what}
	if slot >= 0 && o.Dispatches[slot] >= 0 {
		e.Dispatch = fmt.Sprintf("dispatch %d %s", o.Dispatches[slot], o.named(slot))
	}
	return e
}
