package kind

import (
	"math"

	"gpuscope/engine/graph"
)

// Route is one of the alternative implementations of an operator. A table of routes (Routes) is ordered from
// the smallest to the largest amount of live work. Each operator defines its unit of work, such as rows of x
// or positions.
type Route struct {
	Name string
	// UpTo is the largest amount of work for which this route is preferred to the routes after it. 0 means
	// that the sizes of the operator, or the device, rule the route out.
	UpTo int
	// Only is true if the route cannot do more work than UpTo. Otherwise it can do any amount.
	Only bool
	// Aside is true if the amount of work alone never selects the route. Such a route is used if the user
	// asks for it, or if the operator selects it for another reason.
	Aside bool
	Why   Reason // reason for choosing the route
}

// Always is the UpTo of a route that is preferred for any amount of work.
const Always = math.MaxInt

// Routes is the table of an operator's routes. At least one route is not ruled out.
type Routes []Route

// Preferred returns the index of the route for an amount of work: the first route whose UpTo covers the work,
// else the last route. Routes that are ruled out or set Aside are skipped.
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

// Has reports whether route i is available, which means that it is not ruled out.
func (t Routes) Has(i int) bool { return t[i].UpTo > 0 }

// Choose sets the route of a plan to the preferred route for an amount of work, or to the route that the user
// asked for. In error messages, of is the name of the unit of work. Choose returns the index of the route.
func (t Routes) Choose(p *graph.Planner, of string, work int) int {
	return t.Settle(p, t.Preferred(work), t.Allowed(work), of, work)
}

// Settle sets the route of a plan and returns its index. The route is r, unless the user asked for another
// route whose bit is set in able. Settle records a graph.RouteLimit error if the requested route cannot do
// the work.
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

// Most returns, for each route that is preferred for some amount of work, the largest amount for which it is
// preferred. The parameter all is an upper limit for the returned amounts.
func (t Routes) Most(all int) []int {
	var list []int
	for i := range t {
		if work := min(t[i].UpTo, all); work > 0 && t.Preferred(work) == i {
			list = append(list, work)
		}
	}
	return list
}
