package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gpuscope/trace"
)

// RouteTime is what an operator took on one of its routes. N is 0 where it was not measured.
type RouteTime struct {
	Route          string // "" where the operator has no choice
	Planned        bool   // its plan takes that route
	NS, Q1NS, Q3NS int64
	N              int
}

// MostTrials is how often TimeRoutes runs a route at most.
const MostTrials = 1000

// TimeRoutes runs an operator alone, n times on each route that can do a live shape, which set gives: its
// dispatches between two timestamps, the routes in turns, so that a drift of clocks meets all alike. What it
// reads is what lies in its memory, and may come from the device's caches: a GEMV whose weights fit them is
// faster here than in a step.
//
// The live shapes stay as they are, and State that the operator writes has its content again when this
// returns. What lies in the memory of other values may be overwritten: a Replay makes it anew.
func (x *Executor) TimeRoutes(ctx context.Context, op OpID, n int, set func(*Live) error) (
	times []RouteTime, err error,
) {
	r, err := x.newRouteRun(op, n, set)
	if err != nil {
		return nil, err
	}
	if err := r.save(); err != nil {
		return nil, fmt.Errorf("time %s: %w", r.op.name, err)
	}
	defer func() { err = errors.Join(err, r.restore()) }()
	err = r.measure(ctx)
	for i := range r.trials {
		times = append(times, r.trials[i].time(r.op))
	}
	return times, err
}

// routeRun is one such measurement.
type routeRun struct {
	x      *Executor
	op     *op
	n      int
	trials []trial
	real   *Live // that the trials stand in for
	state  map[ValueID][]byte
	log    stepLog
}

// trial is a route that can do the shape: a graph of its own that has it in force.
type trial struct {
	live    *Live
	run     []trace.DispatchID
	route   int
	planned bool
	ns      []int64
}

func (t *trial) time(o *op) RouteTime {
	out := RouteTime{Route: o.routeName(t.route), Planned: t.planned, N: len(t.ns)}
	if out.N > 0 {
		out.Q1NS, out.NS, out.Q3NS = trace.Quartiles(t.ns)
	}
	return out
}

func (x *Executor) newRouteRun(id OpID, n int, set func(*Live) error) (*routeRun, error) {
	switch {
	case id < 0 || int(id) >= len(x.g.ops):
		return nil, fmt.Errorf("operator %d: the graph has %d", id, len(x.g.ops))
	case n < 1 || n > MostTrials:
		return nil, fmt.Errorf("%d runs of each route, want 1 to %d", n, MostTrials)
	case x.clock == nil:
		return nil, errors.New("this device has no timestamps")
	case !x.clock.scale.known():
		return nil, errNoPeriod
	}
	r := &routeRun{
		x: x, op: &x.g.ops[id], n: n, real: x.live,
		log: stepLog{timing: TimingStep, ticks: make([]uint64, 2)},
	}
	planned := -1
	for route := range max(1, len(r.op.spec.Routes)) {
		l, err := NewLive(x.g, LiveOptions{})
		if err != nil {
			return nil, err
		}
		if err := errors.Join(set(l), l.Propagate()); err != nil {
			return nil, err
		}
		l.Commit()
		if planned < 0 {
			planned = l.plans[id].route
		}
		if route != planned && !l.reroute(id, route) {
			continue
		}
		t := trial{live: l, route: route, planned: route == planned, ns: make([]int64, 0, n)}
		for slot, d := range r.op.dispatches {
			if d >= 0 && l.plans[id].launches[slot].active {
				t.run = append(t.run, d)
			}
		}
		if len(t.run) == 0 {
			return nil, fmt.Errorf("%s has no dispatch: it is a view of its input", r.op.name)
		}
		r.trials = append(r.trials, t)
	}
	return r, nil
}

// reroute puts a plan on another route in force, if the shape in force and what was compiled and allocated
// allow it. What the operator gives is the same on every route.
func (l *Live) reroute(id OpID, route int) bool {
	o, p := &l.g.ops[id], l.g.ops[id].newPlan()
	if err := l.planner.make(o, &p, routeRequest{route: route, must: true}, o.aliased); err != nil {
		return false
	}
	if p.route != route || l.check(o, &p) != nil {
		return false
	}
	l.plans[id] = p
	l.planned = append(l.planned[:0], id)
	l.chooseLayout()
	l.planned, l.routesMove = l.planned[:0], true
	return true
}

// save keeps what the operator's State holds.
func (r *routeRun) save() error {
	r.state = map[ValueID][]byte{}
	for _, v := range r.op.spec.State {
		r.state[v] = make([]byte, r.x.g.values[v].bytes)
		if err := r.x.ReadValue(v, r.state[v]); err != nil {
			return err
		}
	}
	return nil
}

// restore puts the graph that the executor has in force again, with the operator's params and its State.
func (r *routeRun) restore() error {
	x := r.x
	x.live, x.lastEnd = r.real, time.Now()
	x.arena.take(r.op, &x.live.plans[r.op.id])
	_, err := x.arena.upload(x.dev)
	for v, data := range r.state {
		for at := 0; at < len(data); at += piece {
			part := data[at:min(at+piece, len(data))]
			err = errors.Join(err, x.dev.Write(x.buffers[x.live.memory(v)], uint64(at), part))
		}
	}
	return err
}

// measure runs the routes in turns; the first run of each does not count.
func (r *routeRun) measure(ctx context.Context) error {
	for round := range r.n + 1 {
		for i := range r.trials {
			if err := ctx.Err(); err != nil {
				return err
			}
			ns, err := r.run(&r.trials[i])
			if err != nil {
				return fmt.Errorf("time %s: %w", r.op.name, err)
			}
			if round > 0 {
				r.trials[i].ns = append(r.trials[i].ns, ns)
			}
		}
	}
	return nil
}

func (r *routeRun) run(t *trial) (ns int64, err error) {
	x := r.x
	x.live = t.live
	x.arena.take(r.op, &t.live.plans[r.op.id])
	if _, err := x.arena.upload(x.dev); err != nil {
		return 0, err
	}
	if err := x.submit(&r.log, t.run, 0, len(t.run), nil); err != nil {
		return 0, err
	}
	if err := x.readTicks(&r.log); err != nil {
		return 0, err
	}
	ns, _ = x.clock.scale.duration(r.log.ticks[0], r.log.ticks[1]).NS()
	return ns, nil
}
