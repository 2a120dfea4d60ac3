package engine

import (
	"fmt"
	"slices"
)

// A plan is pure, so it can be made again at the shapes in force. What differs is stale: a trigger that was
// missed, a plan that is not pure.

// StaleError says what Check found.
type StaleError struct {
	Op, Kind, Dispatch string
	What               string
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("check: %s (%s): %s", e.Dispatch, e.Kind, e.What)
}

// Fresh plans an operator anew at the shapes in force. Its error is a *StaleError where the plan in force is
// another.
func (l *Live) Fresh(id OpID) (*plan, error) {
	o, fresh := &l.g.ops[id], &l.scratchPlans[id]
	if err := l.planAfresh(o, fresh); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return fresh, l.stale(o, fresh)
}

// planAfresh plans an operator at the shapes in force.
func (l *Live) planAfresh(o *op, into *plan) error {
	was := l.planner.env
	l.planner.env = l.now
	defer func() { l.planner.env = was }()
	if err := l.planner.make(o, into, l.requested[o.id], o.aliased); err != nil {
		return err
	}
	if l.static {
		l.pin(o, into)
	}
	return nil
}

// stale holds the plan in force against a fresh one.
func (l *Live) stale(o *op, fresh *plan) error {
	inForce := &l.plans[o.id]
	for i := range fresh.outs {
		out, v := &fresh.outs[i], o.out(i)
		if l.g.values[v].kind == symInt {
			if out.int != l.now.ints[v] {
				return l.Stale(o, -1,
					fmt.Sprintf("%s is %d, a fresh plan gives %d", l.g.values[v].name, l.now.ints[v],
						out.int))
			}
		} else if !slices.Equal(out.dims, l.now.dims[v]) {
			return l.Stale(o, -1,
				fmt.Sprintf("%s is %v, a fresh plan gives %v", l.g.values[v].name, l.now.dims[v], out.dims))
		}
	}
	if inForce.route != fresh.route {
		return l.Stale(o, -1,
			fmt.Sprintf("runs route %s, a fresh plan takes %s", o.routeLabel(inForce.route),
				o.routeLabel(fresh.route)))
	}
	for s := range fresh.launches {
		a, b := &inForce.launches[s], &fresh.launches[s]
		switch {
		case a.active != b.active:
			return l.Stale(o, s, fmt.Sprintf("in use: %v, by a fresh plan: %v", a.active, b.active))
		case a.active && a.Grid.counts() != b.Grid.counts():
			return l.Stale(o, s,
				fmt.Sprintf("grid %v, a fresh plan gives %v", a.Grid.counts(), b.Grid.counts()))
		}
	}
	return nil
}

// Stale is the error of an operator, or of one of its dispatch slots, that does not have what a fresh plan
// gives; slot is -1 for the operator.
func (l *Live) Stale(o *op, slot int, what string) error {
	e := &StaleError{Op: o.name, Kind: o.spec.Kind, Dispatch: o.name, What: what}
	if slot >= 0 && o.dispatches[slot] >= 0 {
		e.Dispatch = fmt.Sprintf("dispatch %d %s", o.dispatches[slot], o.named(slot))
	}
	return e
}
