package graph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A route is one of an operator's implementations. The operator's plan chooses the route by live shape
// (Planner.Choose). The user can request a route by name, for a kind or for one operator. A shape that the
// requested route does not support is an error: a request that silently applied only to some shapes would
// falsify measurements.

// ErrRoute is wrapped by the errors that report that a requested route cannot be used.
var ErrRoute = errors.New("route")

// RouteLimit is the error that a plan returns if a shape exceeds the limit of the route that the user
// requested.
type RouteLimit struct {
	Route      string
	Of         string // name of the quantity that the route limits, such as "M"
	Most, Work int    // Most is the limit; Work is the quantity at this shape
}

func (e *RouteLimit) Error() string {
	return fmt.Sprintf("%v %s supports %s <= %d, got %s = %d", ErrRoute, e.Route, e.Of, e.Most, e.Of, e.Work)
}

func (e *RouteLimit) Unwrap() error { return ErrRoute }

// AskRoutes requests routes by name, or by the name of a kernel of the route. The keys of `routes` select
// operators by kind ("linear_q4gsw"), by place in every layer ("linear_q4gsw@attn.q") or by full name
// ("linear_q4gsw@layers.0.attn.q"). AskRoutes must be called before operators are added. Adding an operator
// fails if there is a corner at which the operator does not support the requested route.
func (b *Builder) AskRoutes(routes map[string]string) {
	b.routes = routes
	b.asked = map[string]bool{}
}

// targets returns the keys by which a route can be requested for the operator. Later keys are more specific,
// and take precedence.
func (o *Op) targets() []string {
	kind := o.Spec.Kind
	return []string{kind, kind + "@" + o.place(), kind + "@" + o.Name}
}

// place returns the operator's name without its layer.
func (o *Op) place() string {
	d := o.describe()
	return d.Place()
}

// request returns the route that the user requested for the operator. The request is looked up under the keys
// in targets. If several keys have a request, the last one takes precedence. If the operator does not have
// the requested route, request returns an error.
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
				fmt.Errorf("%w %s=%s: %s has no such route; its routes: %s", ErrRoute, target, want, o.Name,
					cmp.Or(strings.Join(o.ownRoutes(), ", "), "none"))
		}
	}
	return w, nil
}

// unasked returns an error if the user requested a route for an operator that is not in the graph.
func (b *Builder) unasked() error {
	for target, want := range b.routes {
		if b.asked[target] {
			continue
		}
		there, names := "kinds with routes:", b.routedKinds()
		if kind, _, one := strings.Cut(target, "@"); one && slices.Contains(names, kind) {
			there, names = "operators of this kind in the graph:", b.placesOf(kind)
		}
		return fmt.Errorf("%w %s=%s: the graph has no such operator; %s %s", ErrRoute, target, want, there,
			cmp.Or(strings.Join(names, ", "), "none"))
	}
	return nil
}

// routedKinds returns the operator kinds of the graph that have several routes.
func (b *Builder) routedKinds() (kinds []string) {
	for i := range b.ops {
		if s := &b.ops[i].Spec; len(s.Routes) > 1 && !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	return kinds
}

// placesOf returns the place (the name without the layer) of every operator of a kind.
func (b *Builder) placesOf(kind string) (places []string) {
	for i := range b.ops {
		if o := &b.ops[i]; o.Spec.Kind == kind && !slices.Contains(places, o.place()) {
			places = append(places, o.place())
		}
	}
	return places
}

// routeOf returns the index of the route with the given name, or of the route that has a kernel with this
// name. It returns -1 if there is none.
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

// ownRoutes returns the names of the routes for which the operator has kernels. Spec.Routes may list more
// routes, because other operators of the same kind have kernels for them. Such routes need, for example,
// tensors of another size, another device or a fusion rule.
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

// routeLabel returns the route's name, or its index if the route has no name.
func (o *Op) routeLabel(route int) string {
	return cmp.Or(o.RouteName(route), strconv.Itoa(route))
}

// RouteName returns the route's name, or "" if the operator has only one route.
func (o *Op) RouteName(route int) string {
	if route < len(o.Spec.Routes) {
		return o.Spec.Routes[route]
	}
	return ""
}
