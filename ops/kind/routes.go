package kind

import (
	"math"

	"gpuscope/engine/graph"
)

// Route is one of the ways in which an operator does its work: a row of its table, which goes from the least
// live work to the most. What work is (rows of x, positions) is the operator's to say.
type Route struct {
	Name string
	// UpTo is the work up to which the route is preferred to those after it; 0 says that it is ruled out,
	// by the operator's sizes or by the device.
	UpTo int
	// Only says that it can do no more than what it is preferred up to; else it can do any work.
	Only bool
	// Aside says that work alone never prefers it: it is asked for, or what else the operator knows speaks
	// for it.
	Aside bool
	Why   Reason // it is preferred
}

// Always is the bound of a route without one.
const Always = math.MaxInt

// Routes is an operator's table. At least one route of it is not ruled out.
type Routes []Route

// Preferred is the route for some work: the first that reaches so far, else the last that there is.
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

// Has says whether a route is not ruled out.
func (t Routes) Has(i int) bool { return t[i].UpTo > 0 }

// Choose settles the route of a plan for some work, which reasons call of.
func (t Routes) Choose(p *graph.Planner, of string, work int) int {
	return t.Settle(p, t.Preferred(work), t.Allowed(work), of, work)
}

// Settle takes the route r, or of those that are able, by bit, the one that was asked for.
func (t Routes) Settle(p *graph.Planner, r int, able uint64, of string, work int) int {
	if asked := p.Asked(); asked >= 0 && t[asked].Only && work > t[asked].UpTo {
		p.Errorf("%w", &graph.RouteLimit{Route: t[asked].Name, Of: of, Most: t[asked].UpTo, Work: work})
	}
	return p.Choose(r, t[r].Why, able)
}

// Allowed are the routes, by bit, that can do some work.
func (t Routes) Allowed(work int) (allowed uint64) {
	for i := range t {
		if t.Has(i) && (!t[i].Only || work <= t[i].UpTo) {
			allowed |= 1 << i
		}
	}
	return allowed
}

// Most has, for each route that is ever preferred, the most work that it is preferred for, of at most all.
func (t Routes) Most(all int) []int {
	var list []int
	for i := range t {
		if work := min(t[i].UpTo, all); work > 0 && t.Preferred(work) == i {
			list = append(list, work)
		}
	}
	return list
}
