package inspect

import (
	"fmt"
	"slices"
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
		p := place{o.Place(), o.Kind}
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
			lines = append(lines, fmt.Sprintf("  %s (%s) of layers %s", p.name, p.kind, printable.Ranges(in)))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %s (%s)", alone[i], p.kind))
	}
	return lines
}

// Explain answers why for what a person names: a dispatch, by its number or as tables call it, of several the
// first, or a value, of which it says what it reaches.
func (x *Index) Explain(step int, name string) ([]string, error) {
	g := &x.Trace.Graph
	if ids := x.meant(step, name); len(ids) > 0 {
		lines := x.Why(step, ids[0]).Lines("")
		if n := len(ids); n > 1 {
			lines = append([]string{firstCalled(name, x.Name(ids[0]), n, "dispatches")}, lines...)
		}
		return lines, nil
	}
	if number, err := strconv.Atoi(strings.TrimPrefix(name, "#")); err == nil {
		return nil, fmt.Errorf("there is no dispatch %d; the trace has %d, from 0 on", number,
			len(g.Dispatches))
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

// OpNamed is the operator that a person names: by its number or its name, or as tables call what it launches
// in a step ("attn.q", "#45"), of several the first, as it says then. The step is -1 before the first.
func (x *Index) OpNamed(step int, name string) (op trace.OpID, said string, err error) {
	g := &x.Trace.Graph
	for i := range g.Ops {
		if g.Ops[i].Name == name || strconv.Itoa(i) == name {
			return trace.OpID(i), "", nil
		}
	}
	if _, err := strconv.Atoi(name); err == nil {
		return 0, "", fmt.Errorf("there is no operator %s; the trace has %d, from 0 on (a dispatch is #%s)",
			name, len(g.Ops), name)
	}
	var ops []trace.OpID
	for _, id := range x.meant(step, name) {
		ops = append(ops, g.Dispatches[id].Op)
	}
	slices.Sort(ops)
	switch ops = slices.Compact(ops); len(ops) {
	case 0:
		return 0, "", fmt.Errorf("there is no operator %q; d operators lists them", printable.Short(name, 40))
	case 1:
		return ops[0], "", nil
	}
	return ops[0], firstCalled(name, g.Ops[ops[0]].Name, len(ops), "operators"), nil
}

func firstCalled(name, whole string, n int, what string) string {
	return fmt.Sprintf("%s: the first of %d %s is %s", name, n, what, whole)
}

// meant are the dispatches that a person names: that of a number or a whole name, those of an operator, else
// of what equal layers have ("attn.q", "q"), else of a block, a kind of operators, a kernel or a part of the
// graph. Of these they are the ones that run in the step, where none does all.
func (x *Index) meant(step int, name string) []trace.DispatchID {
	if name == "" { // what is in no block and has no label is not called so
		return nil
	}
	g := &x.Trace.Graph
	for _, names := range []func(*trace.Op, trace.DispatchID) []string{
		func(o *trace.Op, id trace.DispatchID) []string {
			number := strconv.Itoa(int(id))
			return []string{number, "#" + number, x.Name(id), o.Name}
		},
		func(o *trace.Op, id trace.DispatchID) []string {
			d := &g.Dispatches[id]
			return []string{o.Place(), d.Named(o.Place()), o.ShortName(), label(o, d)}
		},
		func(o *trace.Op, id trace.DispatchID) []string {
			groups := []string{o.Block, o.Kind, x.graph.layers.part(o)}
			if step < 0 {
				return groups
			}
			if p := x.PlanOf(step, id); p != nil {
				groups = append(groups, p.Kernel)
			}
			return groups
		},
	} {
		var all, run []trace.DispatchID
		for i := range g.Dispatches {
			id := trace.DispatchID(i)
			if !slices.Contains(names(&g.Ops[g.Dispatches[i].Op], id), name) {
				continue
			}
			if all = append(all, id); step >= 0 && x.PlanOf(step, id) != nil {
				run = append(run, id)
			}
		}
		if len(run) > 0 {
			return run
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}
