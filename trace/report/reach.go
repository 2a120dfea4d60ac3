package report

import (
	"fmt"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/table"
)

// ReachLines lists the operators that a change of a value can re-plan. Operators with the same name and
// kind in several layers share one line.
func ReachLines(x *analyze.Index, v trace.ValueID) []string {
	g := &x.Trace.Graph
	reached := x.Reaches(v)
	if len(reached) == 0 {
		return []string{g.Values[v].Name + " re-plans no operator, because no operator reads it."}
	}
	type place struct{ name, kind string }
	layers := map[place][]int{}
	var order []place
	var alone []string // full name of the first operator at each place in order
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
	lines := []string{fmt.Sprintf("A change of %s can re-plan %s:", g.Values[v].Name,
		table.Plural(len(reached), "operator"))}
	for i, p := range order {
		if in := layers[p]; len(in) > 1 && in[0] >= 0 {
			lines = append(lines, fmt.Sprintf("  %s (%s) in layers %s", p.name, p.kind, printable.Ranges(in)))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %s (%s)", alone[i], p.kind))
	}
	return lines
}

// Explain explains the grid of a dispatch, or which operators a change of a value can re-plan. `name` is a
// dispatch number, a name that a table shows, or the name of a value. If several dispatches have the name,
// Explain uses the first one.
func Explain(x *analyze.Index, step int, name string) ([]string, error) {
	g := &x.Trace.Graph
	if ids := x.Meant(step, name); len(ids) > 0 {
		lines := WhyLines(why.Of(x, step, ids[0]), "")
		if n := len(ids); n > 1 {
			lines = append([]string{analyze.FirstCalled(name, x.Name(ids[0]), n, "dispatches")}, lines...)
		}
		return lines, nil
	}
	if number, err := strconv.Atoi(strings.TrimPrefix(name, "#")); err == nil {
		return nil, fmt.Errorf("no dispatch %d; the trace has %d dispatches, numbered from 0", number,
			len(g.Dispatches))
	}
	for i := range g.Values {
		if g.Values[i].Name == name {
			return ReachLines(x, trace.ValueID(i)), nil
		}
	}
	return nil, fmt.Errorf(
		`no dispatch, operator or value %q; names are listed in the tables "dispatches" and "resize"`,
		printable.Short(name, 60))
}
