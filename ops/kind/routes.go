package kind

import (
	"math"

	"gpuscope/engine/graph"
)

// Route is one of the alternative implementations of an operator. In a table of routes (Routes), routes for
// small amounts of work come before routes for large amounts. Each operator defines the unit in which it
// counts the work of a step, such as rows of x or positions.
type Route struct {
	Name string
	// UpTo is the largest amount of work for which this route is preferred to the routes after it. If UpTo is
	// 0, the route is ruled out by the operator's sizes or by the device.
	UpTo int
	// Only is true if the route cannot do more work than UpTo. If Only is false, the route can do any amount
	// of work.
	Only bool
	// Aside is true if the route is never chosen by the amount of work. It is used only if the user requests
	// it, or if the operator chooses it for another reason.
	Aside bool
	Why   Reason // the reason that is shown if this route is chosen
}

// Always is a value for UpTo: the route is preferred for any amount of work.
const Always = math.MaxInt

// Routes is the table of an operator's routes. At least one of them is available, which means that it is not
// ruled out.
type Routes []Route

// Preferred returns the index of the preferred route for an amount of work. This is the first route whose
// UpTo is at least this amount, or the last route if there is no such route. Preferred ignores routes that
// are ruled out, and routes with Aside.
func (t Routes) Preferred(work int) int {
	last := 0
	for i := range t {
		if t[i].UpTo == 0 || t[i].Aside {
			continue
		}
		if last = i; work <= t[i].UpTo {
			break
		}
	}
	return last
}

// Has(i) reports whether route i is available, which means that it is not ruled out.
func (t Routes) Has(i int) bool { return t[i].UpTo > 0 }

// Choose sets the route of a plan and returns its index. This is the route that the user requested, or else
// the preferred route for an amount of work. `of` names the unit of work in error messages.
func (t Routes) Choose(p *graph.Planner, of string, work int) int {
	return t.Settle(p, t.Preferred(work), t.Allowed(work), of, work)
}

// Settle sets the route of a plan and returns its index. The route is r, unless the user requested another
// route whose bit is set in `able`. If the requested route cannot do the work, Settle records a
// graph.RouteLimit error.
func (t Routes) Settle(p *graph.Planner, r int, able uint64, of string, work int) int {
	if asked := p.Asked(); asked >= 0 && t[asked].Only && work > t[asked].UpTo {
		p.Errorf("%w", &graph.RouteLimit{Route: t[asked].Name, Of: of, Most: t[asked].UpTo, Work: work})
	}
	return p.Choose(r, t[r].Why, able)
}

// Allowed returns a bit set of the routes that can do an amount of work: bit i stands for route i.
func (t Routes) Allowed(work int) (allowed uint64) {
	for i := range t {
		if t.Has(i) && (!t[i].Only || work <= t[i].UpTo) {
			allowed |= 1 << i
		}
	}
	return allowed
}

// Most returns a list of amounts of work: for each route, the largest amount for which this route is
// preferred. Routes that are never preferred have no entry. `all` is an upper limit for these amounts.
func (t Routes) Most(all int) []int {
	var list []int
	for i := range t {
		if work := min(t[i].UpTo, all); work > 0 && t.Preferred(work) == i {
			list = append(list, work)
		}
	}
	return list
}
