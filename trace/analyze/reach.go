package analyze

import (
	"fmt"
	"slices"
	"strconv"

	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// Reaches returns the operators that a change of a value may cause to be re-planned, in execution order.
func (x *Index) Reaches(v trace.ValueID) []trace.OpID {
	reached := make([]bool, len(x.Trace.Graph.Ops))
	values := []trace.ValueID{v}
	for len(values) > 0 {
		v, values = values[0], values[1:]
		for _, o := range x.Graph.consumers[v] {
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

// OpNamed returns the operator that a user means by a name. The name may be the number or the name of the
// operator. It may also be a name that a table shows for one of its dispatches ("attn.q", "#45"). If several
// operators match, OpNamed returns the first one, and a message that tells the user so. Dispatches of the
// given step are searched. `step` is -1 if there is no step yet.
func (x *Index) OpNamed(step int, name string) (op trace.OpID, said string, err error) {
	g := &x.Trace.Graph
	for i := range g.Ops {
		if g.Ops[i].Name == name || strconv.Itoa(i) == name {
			return trace.OpID(i), "", nil
		}
	}
	if _, err := strconv.Atoi(name); err == nil {
		return 0, "", fmt.Errorf("no operator %s; the trace has %d operators, numbered from 0. For dispatch %[1]s, write #%[1]s",
			name, len(g.Ops))
	}
	var ops []trace.OpID
	for _, id := range x.Meant(step, name) {
		ops = append(ops, g.Dispatches[id].Op)
	}
	slices.Sort(ops)
	switch ops = slices.Compact(ops); len(ops) {
	case 0:
		return 0, "", fmt.Errorf("no operator %q. The command \"d operators\" lists the operators",
			printable.Short(name, 40))
	case 1:
		return ops[0], "", nil
	}
	return ops[0], FirstCalled(name, g.Ops[ops[0]].Name, len(ops), "operators"), nil
}

// FirstCalled returns a message for the user: the name matches n things, and only the first of them is
// used. `what` is the plural noun for the things, such as "operators". `whole` is the full name of the
// first one.
func FirstCalled(name, whole string, n int, what string) string {
	return fmt.Sprintf("%s matches %d %s; only the first is used: %s", name, n, what, whole)
}

// Meant returns the dispatches that a user means by a name. The name can be of three kinds:
//
//   - the number or the full name of a dispatch, or the name of an operator
//   - the name within a layer ("attn.q", "q")
//   - the name of a block, an operator kind, a kernel, "prologue" or "epilogue"
//
// The first kind with a match is used. Meant returns the matching dispatches that run in the step, or all
// matching dispatches if none of them runs.
func (x *Index) Meant(step int, name string) []trace.DispatchID {
	if name == "" { // "" would match every dispatch without a block or a label
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
			return []string{o.Place(), d.Named(o.Place()), o.ShortName(), Label(o, d)}
		},
		func(o *trace.Op, id trace.DispatchID) []string {
			groups := []string{o.Block, o.Kind, x.Graph.Layers.Part(o)}
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
