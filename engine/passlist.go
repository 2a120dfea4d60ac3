package engine

import (
	"fmt"
	"slices"
	"strings"
)

// DumpPass asks that a pass of Finish lists the graph before and after it, in its report. The error names the
// passes.
func (b *Builder) DumpPass(name string) error {
	var names []string
	for i := range passes {
		names = append(names, passes[i].name)
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("pass %q: the passes are %s", name, strings.Join(names, ", "))
	}
	b.dump = name
	return nil
}

// list is the graph as far as it has come, a line for each operator, value and dispatch: what a pass changes
// shows as other lines.
func (g *Graph) list() []string {
	var lines []string
	for i := range g.ops {
		o := &g.ops[i]
		line := fmt.Sprintf("op %s (%s): %s -> %s", o.name, o.spec.Kind, g.nameAll(o.spec.Inputs),
			g.nameAll(o.spec.Outputs))
		if len(o.spec.Makes) > 0 {
			line += ", makes " + g.nameAll(o.spec.Makes)
		}
		lines = append(lines, line)
	}
	for i := range g.values {
		if val := &g.values[i]; val.role == Intermediate || val.role == Scratch || val.role == Output {
			lines = append(lines, g.listValue(ValueID(i)))
		}
	}
	for i := range g.dispatches {
		lines = append(lines, g.listDispatch(i))
	}
	for _, k := range g.kernels {
		name := g.names[k]
		if name == "" {
			name = k.Name
		}
		lines = append(lines, fmt.Sprintf("kernel %s: %s", name, k.Constants))
	}
	return lines
}

func (g *Graph) nameAll(values []ValueID) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = g.values[v].name
	}
	return strings.Join(names, ", ")
}

func (g *Graph) listValue(v ValueID) string {
	val := &g.values[v]
	line := fmt.Sprintf("value %s: %s", val.name, val.role)
	if val.kind == tensor {
		line += fmt.Sprintf(" %s %v", val.dtype, val.maxDims)
	}
	if val.alias != None {
		line += ", is " + g.values[val.alias].name
	}
	for i := range g.layouts {
		if s := g.layouts[i].slot[v]; s >= 0 {
			line += fmt.Sprintf(", slot %d", g.layouts[i].base+s)
		}
	}
	return line
}

func (g *Graph) listDispatch(i int) string {
	d := &g.dispatches[i]
	line := fmt.Sprintf("dispatch %d %s: level %d", i, g.ops[d.op].named(d.slot), d.level)
	if len(g.layouts) > 0 && len(g.layouts[0].passes) > i {
		line += fmt.Sprintf(", compute pass %d", g.layouts[0].passes[i])
	}
	return line
}

// Changes are the lines that a listing lost, after "- ", and got, after "+ ", in their order.
func (r *PassReport) Changes() []string {
	had, has := map[string]int{}, map[string]bool{}
	for i, l := range r.Before {
		had[l] = i
	}
	for _, l := range r.After {
		has[l] = true
	}
	var lines []string
	at := 0
	lose := func(until string) {
		for ; at < len(r.Before) && r.Before[at] != until; at++ {
			if !has[r.Before[at]] {
				lines = append(lines, "- "+r.Before[at])
			}
		}
	}
	for _, l := range r.After {
		if i, ok := had[l]; ok && i >= at {
			lose(l)
			at++
		} else if !ok {
			for ; at < len(r.Before) && !has[r.Before[at]]; at++ {
				lines = append(lines, "- "+r.Before[at])
			}
			lines = append(lines, "+ "+l)
		}
	}
	lose("")
	return lines
}
