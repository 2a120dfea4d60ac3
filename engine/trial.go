package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
	"gpuscope/trace"
)

// RouteTime is the measured time of an operator on one of its routes. If several operators ran together, it
// is their mean. N is the number of runs, or 0 if the route was not measured.
type RouteTime struct {
	Route          string // empty if the operator has only one route
	Planned        bool   // the plan for the chosen live shape uses this route
	NS, Q1NS, Q3NS int64
	N              int
	// Ops is the number of operators that one run executes, one after another. These are all operators of the
	// call, or as many of them as fit into one submit.
	Ops          int
	Kernels      []string // kernels of the dispatches of one operator
	Bytes, FLOPs int64    // modeled memory traffic and FLOPs of one operator
}

// MostTrials is the maximum number of runs of each route in TimeRoutes.
const MostTrials = 1000

// TimeRoutes times operators, isolated from the step, on their routes. The caller's function `set` chooses
// the live shape. TimeRoutes runs the operators n times on each route that supports this shape. In each run,
// one timestamp precedes the dispatches of all operators, and one follows them. Runs of the routes alternate,
// so that a drift of the clocks affects all routes equally.
//
// The inputs of the operators are whatever their memory holds. If `ops` holds a single operator, its data may
// stay in the device's caches. A GEMV with few weights is then faster here than in a step. To avoid this,
// pass several operators that do the same work (see Live.Work). They run one after another, so that each
// reads its weights from the same kind of memory as in a step.
//
// The live shapes of the executor do not change. Before TimeRoutes returns, it restores the State that the
// operators write. It may overwrite other values in memory, but a Replay computes these again.
func (x *Executor) TimeRoutes(ctx context.Context, ops []graph.OpID, n int, set func(*graph.Live) error) (
	times []RouteTime, err error,
) {
	r, err := x.newRouteRun(ops, n, set)
	if err != nil {
		return nil, err
	}
	if err := r.save(); err != nil {
		return nil, fmt.Errorf("time %s: %w", r.name(), err)
	}
	defer func() { err = gpu.Join(err, r.restore()) }()
	err = r.measure(ctx)
	for i := range r.trials {
		times = append(times, r.time(&r.trials[i]))
	}
	return times, err
}

// routeRun is one call of TimeRoutes, with operators that all do the same work.
type routeRun struct {
	x      *Executor
	ops    []*graph.Op // never empty
	n      int
	trials []trial
	// real is the executor's own live graph. During TimeRoutes, the executor uses the live graphs of the
	// trials instead.
	real  *graph.Live
	state map[graph.ValueID][]byte
	log   flight
}

// trial holds the measurement of one route. In its live graph, all operators use this route.
type trial struct {
	live    *graph.Live
	run     []trace.DispatchID // dispatches that the operators launch in one run
	each    int                // number of dispatches per operator
	route   int
	planned bool
	ns      []int64
}

// name returns the name of the first operator, for errors about all of them.
func (r *routeRun) name() string { return r.ops[0].Name }

// time returns the result of a trial. The times are per operator: the time of a run divided by the number of
// operators in the run.
func (r *routeRun) time(t *trial) RouteTime {
	o := r.ops[0]
	out := RouteTime{
		Route: o.RouteName(t.route), Planned: t.planned, N: len(t.ns), Ops: len(t.run) / t.each,
	}
	for _, id := range t.run[:t.each] {
		l, k := t.live.Launch(id)
		out.Kernels = append(out.Kernels, r.x.g.KernelNames[k])
		out.Bytes, out.FLOPs = out.Bytes+l.Bytes, out.FLOPs+l.FLOPs
	}
	if out.N > 0 {
		n := int64(out.Ops)
		q1, median, q3 := trace.Quartiles(t.ns)
		out.Q1NS, out.NS, out.Q3NS = q1/n, median/n, q3/n
	}
	return out
}

func (x *Executor) newRouteRun(ids []graph.OpID, n int, set func(*graph.Live) error) (*routeRun, error) {
	switch {
	case len(ids) == 0:
		return nil, errors.New("no operators to time")
	case n < 1 || n > MostTrials:
		return nil, fmt.Errorf("%d runs of each route requested, but 1 to %d are allowed", n, MostTrials)
	case x.clock == nil:
		return nil, errors.New("the device does not support GPU timestamps")
	case !x.clock.Scale.Known():
		return nil, measure.ErrNoPeriod
	}
	r := &routeRun{
		x: x, n: n, real: x.live, log: x.timedFlight(),
	}
	for _, id := range ids {
		if id < 0 || int(id) >= len(x.g.Ops) {
			return nil, fmt.Errorf("operator %d does not exist: the graph has %d operators", id, len(x.g.Ops))
		}
		r.ops = append(r.ops, &x.g.Ops[id])
	}
	planned := -1
	for route := range max(1, len(r.ops[0].Spec.Routes)) {
		l, err := graph.NewLive(x.g, graph.LiveOptions{})
		if err != nil {
			return nil, err
		}
		if err := errors.Join(set(l), l.Propagate()); err != nil {
			return nil, err
		}
		l.Commit()
		if planned < 0 {
			planned = l.Plans[ids[0]].Route
			if !r.alike(l) {
				return nil, fmt.Errorf("%s cannot be timed together with the other operators, because their dispatches differ",
					r.name())
			}
		}
		if route != planned &&
			slices.ContainsFunc(ids, func(id graph.OpID) bool { return !l.Reroute(id, route) }) {
			continue
		}
		t := trial{live: l, route: route, planned: route == planned, ns: make([]int64, 0, n)}
		for _, o := range r.ops {
			t.run = append(t.run, l.Launched(o)...)
		}
		t.each = len(t.run) / len(r.ops)
		if t.each == 0 {
			why := "the operator is a view of its input"
			if !r.ops[0].Aliased {
				why = "the operator launches no dispatch at this shape"
			}
			return nil, fmt.Errorf("%s has no dispatch: %s", r.name(), why)
		}
		r.trials = append(r.trials, t)
	}
	return r, nil
}

// alike reports whether all operators do the same work at the shapes of l.
func (r *routeRun) alike(l *graph.Live) bool {
	first := l.Work(r.ops[0].ID)
	for _, o := range r.ops[1:] {
		if l.Work(o.ID) != first {
			return false
		}
	}
	return true
}

// save copies the State of the operators to the host.
func (r *routeRun) save() error {
	r.state = map[graph.ValueID][]byte{}
	for _, o := range r.ops {
		for _, v := range o.Spec.State {
			r.state[v] = make([]byte, r.x.g.Values[v].Bytes)
			if err := r.x.ReadValue(v, r.state[v]); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore makes the executor use its own live graph again. It also restores the params and the State of the
// operators.
func (r *routeRun) restore() error {
	x := r.x
	x.live, x.lastEnd = r.real, time.Now()
	r.take(x.live)
	_, err := x.arena.upload(x.dev)
	for v, data := range r.state {
		for at := 0; at < len(data); at += piece {
			part := data[at:min(at+piece, len(data))]
			err = gpu.Join(err, x.writePart(v, uint64(at), part))
		}
	}
	return err
}

// measure runs the routes in alternation. The first run of each route only warms up and is not counted.
func (r *routeRun) measure(ctx context.Context) error {
	if err := r.fit(ctx); err != nil {
		return err
	}
	for round := range r.n + 1 {
		for i := range r.trials {
			if err := ctx.Err(); err != nil {
				return err
			}
			ns, err := r.run(&r.trials[i])
			if err != nil {
				return fmt.Errorf("time %s: %w", r.name(), err)
			}
			if round > 0 {
				r.trials[i].ns = append(r.trials[i].ns, ns)
			}
		}
	}
	return nil
}

// fit determines how many of the operators run together on each route: only as many as fit into one submit,
// according to a measurement of the first operator. During a long submit, the system might reset the device.
func (r *routeRun) fit(ctx context.Context) error {
	for i := 0; i < len(r.trials) && len(r.ops) > 1; i++ {
		t := &r.trials[i]
		all := t.run
		t.run = all[:t.each]
		ns, err := r.run(t)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return fmt.Errorf("time %s: %w", r.name(), err)
		}
		n := min(max(1, int(submitNS/float64(max(ns, 1)))), len(r.ops))
		t.run = all[:n*t.each]
	}
	return nil
}

// take copies the operators' params, as planned in l, into the arena.
func (r *routeRun) take(l *graph.Live) {
	for _, o := range r.ops {
		r.x.arena.take(o, &l.Plans[o.ID])
	}
}

func (r *routeRun) run(t *trial) (ns int64, err error) {
	x := r.x
	x.live = t.live
	r.take(t.live)
	if _, err := x.arena.upload(x.dev); err != nil {
		return 0, err
	}
	if err := x.submit(&r.log, t.run, 0, len(t.run), &graph.StepInput{}); err != nil {
		return 0, err
	}
	if err := x.readTicks(&r.log); err != nil {
		return 0, err
	}
	ns, _ = x.clock.Scale.Duration(r.log.ticks[0], r.log.ticks[1]).NS()
	return ns, nil
}
