package graph

import (
	"fmt"

	"gpuscope/trace"
)

// Work returns a text that describes the work of an operator at the current shapes: its kind, route, kernels,
// grids, bytes and FLOPs. If two operators have equal texts, they take the same time, so it is enough to time
// one of them. Work returns "" if no dispatch of the operator runs.
func (l *Live) Work(id OpID) string {
	o := &l.G.Ops[id]
	work := ""
	for _, d := range l.Launched(o) {
		launch, k := l.Launch(d)
		if work == "" {
			work = fmt.Sprintf("%s by route %d of %d", o.Spec.Kind, l.Plans[id].Route, len(o.Spec.Routes))
		}
		work += fmt.Sprintf(
			"; %s %v %d %d",
			l.G.KernelNames[k],
			launch.Grid.Counts(),
			launch.Bytes,
			launch.FLOPs,
		)
	}
	return work
}

// Launched returns the dispatches of an operator that run with the current plan.
func (l *Live) Launched(o *Op) (list []trace.DispatchID) {
	for slot, d := range o.Dispatches {
		if d >= 0 && l.Plans[o.ID].Launches[slot].Active {
			list = append(list, d)
		}
	}
	return list
}

// Reroute plans an operator on another route, makes this plan the current one, and returns true. If the live
// shape, the compiled kernels or the allocated memory do not support the route, Reroute returns false and
// changes nothing. The operator's outputs have the same shapes on every route.
func (l *Live) Reroute(id OpID, route int) bool {
	o, p := &l.G.Ops[id], l.G.Ops[id].newPlan()
	if err := l.planner.make(o, &p, routeRequest{route: route, must: true}, o.Aliased); err != nil {
		return false
	}
	if p.Route != route || l.check(o, &p) != nil {
		return false
	}
	l.Plans[id] = p
	l.planned = append(l.planned[:0], id)
	l.chooseLayout()
	l.planned, l.relist = l.planned[:0], true
	return true
}
