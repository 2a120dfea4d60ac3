package graph

import (
	"fmt"

	"gpuscope/trace"
)

// Work describes what an operator does at the shapes in force: its kind, route, kernels, grids, bytes and
// FLOPs. Operators with equal Work are interchangeable for timing. It is "" if nothing runs.
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

// Launched are the dispatches of an operator that run.
func (l *Live) Launched(o *Op) (list []trace.DispatchID) {
	for slot, d := range o.Dispatches {
		if d >= 0 && l.Plans[o.ID].Launches[slot].Active {
			list = append(list, d)
		}
	}
	return list
}

// Reroute puts a plan on another route in force, and reports whether the live shape and the compiled kernels
// and memory allow it. The outputs are the same on every route.
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
