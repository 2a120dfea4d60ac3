package engine

import (
	"fmt"

	"gpuscope/trace"
)

// Work says what an operator does at the shapes in force: its kind, route, kernels, grids, bytes and FLOPs.
// Operators of the same work are alike. It is "" where nothing runs.
func (l *Live) Work(id OpID) string {
	o := &l.g.ops[id]
	work := ""
	for _, d := range l.launched(o) {
		launch, k := l.Launch(d)
		if work == "" {
			work = fmt.Sprintf("%s by route %d of %d", o.spec.Kind, l.plans[id].route, len(o.spec.Routes))
		}
		work += fmt.Sprintf("; %s %v %d %d", l.g.names[k], launch.Grid.counts(), launch.Bytes, launch.FLOPs)
	}
	return work
}

// launched are the dispatches of an operator that run.
func (l *Live) launched(o *op) (list []trace.DispatchID) {
	for slot, d := range o.dispatches {
		if d >= 0 && l.plans[o.id].launches[slot].active {
			list = append(list, d)
		}
	}
	return list
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
