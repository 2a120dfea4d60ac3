package graph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Routes. An operator chooses between its ways of doing the work by live shape (Planner.Choose). A person can
// ask for one by name, of a kind or of one operator; where a shape does not allow it the graph is refused,
// because a request that is taken only sometimes would measure something else than was meant.

// ErrRoute is wrapped by the error of a route that was asked for and cannot be taken.
var ErrRoute = errors.New("route")

// RouteLimit is the error of a route that was asked for where a shape has more work than it can do.
type RouteLimit struct {
	Route      string
	Of         string // what of the shape is its work: "M"
	Most, Work int    // that it can do, and that the shape has
}

func (e *RouteLimit) Error() string {
	return fmt.Sprintf("%v %s takes %s <= %d, and %s is %d", ErrRoute, e.Route, e.Of, e.Most, e.Of, e.Work)
}

func (e *RouteLimit) Unwrap() error { return ErrRoute }

// AskRoutes asks for routes or kernels by name, for an operator kind, for the operators of a place in all
// layers, or for one operator: "linear_q4gsw", "linear_q4gsw@attn.q" or "linear_q4gsw@layers.0.attn.q". It
// comes before the operators. An operator that cannot do all its corners so is refused.
func (b *Builder) AskRoutes(routes map[string]string) {
	b.routes = routes
	b.asked = map[string]bool{}
}

// targets are the words by which a route can be asked of the operator. What is said of fewer operators counts
// for more, so it comes later.
func (o *Op) targets() []string {
	kind := o.Spec.Kind
	return []string{kind, kind + "@" + o.place(), kind + "@" + o.Name}
}

// place is what tables call the operator in each layer.
func (o *Op) place() string {
	d := o.describe()
	return d.Place()
}

// request is the route that is asked of one of the operator's targets.
func (b *Builder) request(o *Op, targets []string) (routeRequest, error) {
	w := noRoute
	for _, target := range targets {
		want, ok := b.routes[target]
		if !ok {
			continue
		}
		b.asked[target] = true
		if w = (routeRequest{o.routeOf(want), true, target + "=" + want}); w.route < 0 {
			return w,
				fmt.Errorf("%w %s=%s: %s has %s", ErrRoute, target, want, o.Name,
					cmp.Or(strings.Join(o.ownRoutes(), ", "), "no choice of route"))
		}
	}
	return w, nil
}

// unasked is the error of a route that was asked of an operator which the graph does not have.
func (b *Builder) unasked() error {
	for target, want := range b.routes {
		if b.asked[target] {
			continue
		}
		there, names := "its kinds with routes are", b.routedKinds()
		if kind, _, one := strings.Cut(target, "@"); one && slices.Contains(names, kind) {
			there, names = "of its kind are", b.placesOf(kind)
		}
		return fmt.Errorf("%w %s=%s: the graph has no such operator; %s %s", ErrRoute, target, want, there,
			cmp.Or(strings.Join(names, ", "), "none"))
	}
	return nil
}

// routedKinds are the kinds of the graph's operators that have a choice of route.
func (b *Builder) routedKinds() (kinds []string) {
	for i := range b.ops {
		if s := &b.ops[i].Spec; len(s.Routes) > 1 && !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	return kinds
}

// placesOf are the places of the operators of a kind.
func (b *Builder) placesOf(kind string) (places []string) {
	for i := range b.ops {
		if o := &b.ops[i]; o.Spec.Kind == kind && !slices.Contains(places, o.place()) {
			places = append(places, o.place())
		}
	}
	return places
}

// routeOf is the route of that name or with a kernel of that name, -1 if there is none.
func (o *Op) routeOf(name string) int {
	if slices.Contains(o.ownRoutes(), name) {
		return slices.Index(o.Spec.Routes, name)
	}
	for r := range o.Spec.Routes {
		for s := range o.Spec.Slots {
			if k := o.Use(s, r).Kernel; k != nil && k.Name == name && len(o.Spec.Slots[s].Uses) > 1 {
				return r
			}
		}
	}
	return -1
}

// ownRoutes are the routes that the operator has kernels for. Others are those of its kind that a size or
// the device rules out, or that a fusion rule brings: it is asked for before that.
func (o *Op) ownRoutes() (names []string) {
	for r, name := range o.Spec.Routes {
		for s := range o.Spec.Slots {
			if o.Use(s, r).Kernel != nil {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// routeLabel names a route where one is to be named, though the operator may have no choice.
func (o *Op) routeLabel(route int) string {
	return cmp.Or(o.RouteName(route), strconv.Itoa(route))
}

// RouteName is "" where the operator has no choice.
func (o *Op) RouteName(route int) string {
	if route < len(o.Spec.Routes) {
		return o.Spec.Routes[route]
	}
	return ""
}
