package engine

import (
	"bytes"
	"fmt"
	"slices"
)

// Check. A plan is pure, so it can be made again: Executor.Check plans every operator afresh at the shapes in
// force, holds grids, params and dims against what is about to run, and reads the params arena back from the
// device. What differs is stale: a trigger that was missed, a write that was lost.

// StaleError says what Check found.
type StaleError struct {
	Op, Kind, Dispatch string
	What               string
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("check: %s (%s): %s", e.Dispatch, e.Kind, e.What)
}

// Check returns a *StaleError where what is in force is not what a fresh plan says. It reads from the device
// and so waits for it.
func (x *Executor) Check() error {
	var onDevice []byte
	if n := len(x.arena.shadow); n > 0 {
		onDevice = make([]byte, n)
		if err := x.read(x.arena.buffer, 0, onDevice); err != nil {
			return fmt.Errorf("check: read params back: %w", err)
		}
	}
	l := x.live
	for i := range x.g.ops {
		o := &x.g.ops[i]
		fresh := &l.scratchPlans[i]
		if err := l.planAfresh(o, fresh); err != nil {
			return fmt.Errorf("check: %w", err)
		}
		if err := l.stale(o, fresh); err != nil {
			return err
		}
		for s := range fresh.launches {
			d := o.dispatches[s]
			if d < 0 || !fresh.launches[s].active {
				continue
			}
			want := fresh.launches[s].Params.Bytes()
			at := x.arena.blocks[x.arena.read(d)].begin
			if got := onDevice[at : at+len(want)]; !bytes.Equal(got, want) {
				return l.staleError(o, s,
					fmt.Sprintf("params on the device are % x, a fresh plan gives % x", got, want))
			}
		}
	}
	return nil
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
				return l.staleError(o, -1,
					fmt.Sprintf("%s is %d, a fresh plan gives %d", l.g.values[v].name, l.now.ints[v],
						out.int))
			}
		} else if !slices.Equal(out.dims, l.now.dims[v]) {
			return l.staleError(o, -1,
				fmt.Sprintf("%s is %v, a fresh plan gives %v", l.g.values[v].name, l.now.dims[v], out.dims))
		}
	}
	if inForce.route != fresh.route {
		return l.staleError(o, -1,
			fmt.Sprintf("runs route %s, a fresh plan takes %s", o.routeLabel(inForce.route),
				o.routeLabel(fresh.route)))
	}
	for s := range fresh.launches {
		a, b := &inForce.launches[s], &fresh.launches[s]
		switch {
		case a.active != b.active:
			return l.staleError(o, s, fmt.Sprintf("in use: %v, by a fresh plan: %v", a.active, b.active))
		case a.active && a.Grid.counts() != b.Grid.counts():
			return l.staleError(o, s,
				fmt.Sprintf("grid %v, a fresh plan gives %v", a.Grid.counts(), b.Grid.counts()))
		}
	}
	return nil
}

func (l *Live) staleError(o *op, slot int, what string) error {
	e := &StaleError{Op: o.name, Kind: o.spec.Kind, Dispatch: o.name, What: what}
	if slot >= 0 && o.dispatches[slot] >= 0 {
		e.Dispatch = fmt.Sprintf("dispatch %d %s", o.dispatches[slot], o.named(slot))
	}
	return e
}
