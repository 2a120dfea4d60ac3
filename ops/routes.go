package ops

import (
	"math"

	"gpuscope/engine/graph"
)

// route is one of the ways in which an operator does its work: a row of its table, which goes from the least
// live work to the most. What work is (rows of x, positions) is the operator's to say.
type route struct {
	name string
	// upTo is the work up to which the route is preferred to those after it; 0 says that it is ruled out,
	// by the operator's sizes or by the device.
	upTo int
	// only says that it can do no more than what it is preferred up to; else it can do any work.
	only bool
	// aside says that work alone never prefers it: it is asked for, or what else the operator knows speaks
	// for it.
	aside bool
	why   reason // it is preferred
}

// always is the bound of a route without one.
const always = math.MaxInt

// routes is an operator's table. At least one route of it is not ruled out.
type routes []route

// preferred is the route for some work: the first that reaches so far, else the last that there is.
func (t routes) preferred(work int) int {
	last := 0
	for i := range t {
		if t[i].upTo == 0 || t[i].aside {
			continue
		}
		if last = i; work <= t[i].upTo {
			break
		}
	}
	return last
}

// has says whether a route is not ruled out.
func (t routes) has(i int) bool { return t[i].upTo > 0 }

// choose settles the route of a plan for some work, which reasons call of.
func (t routes) choose(p *graph.Planner, of string, work int) int {
	return t.settle(p, t.preferred(work), t.allowed(work), of, work)
}

// settle takes the route r, or of those that are able, by bit, the one that was asked for.
func (t routes) settle(p *graph.Planner, r int, able uint64, of string, work int) int {
	if asked := p.Asked(); asked >= 0 && t[asked].only && work > t[asked].upTo {
		p.Errorf("%w", &graph.RouteLimit{Route: t[asked].name, Of: of, Most: t[asked].upTo, Work: work})
	}
	return p.Choose(r, t[r].why, able)
}

// allowed are the routes, by bit, that can do some work.
func (t routes) allowed(work int) (allowed uint64) {
	for i := range t {
		if t.has(i) && (!t[i].only || work <= t[i].upTo) {
			allowed |= 1 << i
		}
	}
	return allowed
}

// most has, for each route that is ever preferred, the most work that it is preferred for, of at most all.
func (t routes) most(all int) []int {
	var list []int
	for i := range t {
		if work := min(t[i].upTo, all); work > 0 && t.preferred(work) == i {
			list = append(list, work)
		}
	}
	return list
}
