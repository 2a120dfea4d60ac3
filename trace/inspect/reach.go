package inspect

import (
	"fmt"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Reaches lists the operators that a change of a value can wake, in execution order.
func (x *Index) Reaches(v trace.ValueID) []trace.OpID {
	reached := make([]bool, len(x.Trace.Graph.Ops))
	values := []trace.ValueID{v}
	for len(values) > 0 {
		v, values = values[0], values[1:]
		for _, o := range x.graph.consumers[v] {
			if !reached[o] {
				reached[o] = true
				values = append(values, x.Trace.Graph.Ops[o].Outputs...)
			}
		}
	}
	var list []trace.OpID
	for o, on := range reached {
		if on {
			list = append(list, trace.OpID(o))
		}
	}
	return list
}

// ReachLines says which operators a change of a value can wake, those in the same place of several layers
// once.
func (x *Index) ReachLines(v trace.ValueID) []string {
	g := &x.Trace.Graph
	reached := x.Reaches(v)
	if len(reached) == 0 {
		return []string{g.Values[v].Name + " wakes no operator: none takes it."}
	}
	type place struct{ name, kind string }
	layers := map[place][]int{}
	var order []place
	var alone []string // by place, the whole name of its first operator
	for _, id := range reached {
		o := &g.Ops[id]
		p := place{placeOf(o), o.Kind}
		if _, seen := layers[p]; !seen {
			order, alone = append(order, p), append(alone, o.Name)
		}
		if layers[p] = append(layers[p], -1); o.Layer != nil {
			layers[p][len(layers[p])-1] = *o.Layer
		}
	}
	lines := []string{fmt.Sprintf("A change of %s can wake %s:", g.Values[v].Name,
		table.Plural(len(reached), "operator"))}
	for i, p := range order {
		if in := layers[p]; len(in) > 1 && in[0] >= 0 {
			lines = append(lines, fmt.Sprintf("  %s (%s) of layers %s", p.name, p.kind, numbers(in)))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %s (%s)", alone[i], p.kind))
	}
	return lines
}

// Explain answers why for what a person names: a dispatch by its number or name, of an operator the first
// that ran, where none did the first, or a value, of which it says what it reaches.
func (x *Index) Explain(step int, name string) ([]string, error) {
	g := &x.Trace.Graph
	number, err := strconv.Atoi(strings.TrimPrefix(name, "#"))
	if err == nil && (number < 0 || number >= len(g.Dispatches)) {
		return nil, fmt.Errorf("there is no dispatch %d; the trace has %d, from 0 on", number,
			len(g.Dispatches))
	}
	var gone *Why
	for i := range g.Dispatches {
		id := trace.DispatchID(i)
		named := x.Name(id) == name || g.Ops[g.Dispatches[i].Op].Name == name
		if err == nil && i != number || err != nil && !named {
			continue
		}
		w := x.Why(step, id)
		if w.Plan != nil {
			return w.Lines(""), nil
		}
		if gone == nil {
			gone = w
		}
	}
	if gone != nil {
		return gone.Lines(""), nil
	}
	for i := range g.Values {
		if g.Values[i].Name == name {
			return x.ReachLines(trace.ValueID(i)), nil
		}
	}
	return nil, fmt.Errorf(
		"there is no dispatch, operator or value %q; the tables dispatches and resize list them",
		printable.Short(name, 60))
}
