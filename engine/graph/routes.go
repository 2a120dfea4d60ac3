package graph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Routes. An operator chooses between its implementations by live shape (Planner.Choose). The user can
// request one by name, for a kind or for one operator. If a shape does not support it the graph is rejected,
// because a request that applies only sometimes would measure something else.

// ErrRoute is wrapped by the error of a requested route that cannot be used.
var ErrRoute = errors.New("route")

// RouteLimit is the error of a requested route at a shape that exceeds its limit.
type RouteLimit struct {
	Route      string
	Of         string // the quantity that is limited: "M"
	Most, Work int    // the route's limit, and the shape's amount
}

func (e *RouteLimit) Error() string {
	return fmt.Sprintf("%v %s supports %s <= %d, got %s = %d", ErrRoute, e.Route, e.Of, e.Most, e.Of, e.Work)
}

func (e *RouteLimit) Unwrap() error { return ErrRoute }

// AskRoutes requests routes or kernels by name: for an operator kind, for one operator of all layers, or for
// a single operator ("linear_q4gsw", "linear_q4gsw@attn.q" or "linear_q4gsw@layers.0.attn.q"). Call it before
// adding operators. Adding an operator that does not support the route at all its corners is an error.
func (b *Builder) AskRoutes(routes map[string]string) {
	b.routes = routes
	b.asked = map[string]bool{}
}

// targets are the names by which a route can be requested for the operator, the more specific and stronger
// ones last.
func (o *Op) targets() []string {
	kind := o.Spec.Kind
	return []string{kind, kind + "@" + o.place(), kind + "@" + o.Name}
}

// place is the operator's name without its layer.
func (o *Op) place() string {
	d := o.describe()
	return d.Place()
}

// request is the route requested for one of the operator's targets.
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

// unasked is the error for a route requested for an operator that the graph does not have.
func (b *Builder) unasked() error {
	for target, want := range b.routes {
		if b.asked[target] {
			continue
		}
		there, names := "kinds with routes:", b.routedKinds()
		if kind, _, one := strings.Cut(target, "@"); one && slices.Contains(names, kind) {
			there, names = "of this kind:", b.placesOf(kind)
		}
		return fmt.Errorf("%w %s=%s: the graph has no such operator; %s %s", ErrRoute, target, want, there,
			cmp.Or(strings.Join(names, ", "), "none"))
	}
	return nil
}

// routedKinds are the operator kinds of the graph that have several routes.
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

// routeOf is the route with that name or with a kernel of that name, -1 if none.
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

// ownRoutes are the routes that the operator has kernels for. Other routes of its kind are ruled out by a
// size or the device, or come with a fusion rule.
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

// routeLabel names a route for messages, even if the operator has only one.
func (o *Op) routeLabel(route int) string {
	return cmp.Or(o.RouteName(route), strconv.Itoa(route))
}

// RouteName is the route's name, "" if the operator has only one.
func (o *Op) RouteName(route int) string {
	if route < len(o.Spec.Routes) {
		return o.Spec.Routes[route]
	}
	return ""
}
