package graph

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine/graph/internal/linediff"
)

// DumpPass selects a pass by name. Finish then lists the graph before and after the pass in the PassReport.
// DumpPass returns an error if there is no such pass.
func (b *Builder) DumpPass(name string) error {
	var names []string
	for i := range passes {
		names = append(names, passes[i].name)
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("pass %q: no pass has this name; want one of %s", name, strings.Join(names, ", "))
	}
	b.dump = name
	return nil
}

// list returns a listing of the graph with a line for each operator, value, dispatch and kernel. The diff of
// two listings shows what a pass changed.
func (g *Graph) list() []string {
	var lines []string
	for i := range g.Ops {
		o := &g.Ops[i]
		line := fmt.Sprintf("op %s (%s): %s -> %s", o.Name, o.Spec.Kind, g.nameAll(o.Spec.Inputs),
			g.nameAll(o.Spec.Outputs))
		if len(o.Spec.Materializes) > 0 {
			line += ", materializes " + g.nameAll(o.Spec.Materializes)
		}
		lines = append(lines, line)
	}
	for i := range g.Values {
		if val := &g.Values[i]; val.Role == Intermediate || val.Role == Scratch || val.Role == Output {
			lines = append(lines, g.listValue(ValueID(i)))
		}
	}
	for i := range g.Dispatches {
		lines = append(lines, g.listDispatch(i))
	}
	for _, k := range g.Kernels {
		name := g.KernelNames[k]
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
		names[i] = g.Values[v].Name
	}
	return strings.Join(names, ", ")
}

func (g *Graph) listValue(v ValueID) string {
	val := &g.Values[v]
	line := fmt.Sprintf("value %s: %s", val.Name, val.Role)
	if val.Kind == Tensor {
		line += fmt.Sprintf(" %s %v", val.DType, val.MaxDims)
	}
	if val.Alias != None {
		line += ", alias of " + g.Values[val.Alias].Name
	}
	for i := range g.Layouts {
		if s := g.Layouts[i].slot[v]; s >= 0 {
			line += fmt.Sprintf(", slot %d", g.Layouts[i].Base+s)
		}
	}
	return line
}

func (g *Graph) listDispatch(i int) string {
	d := &g.Dispatches[i]
	line := fmt.Sprintf("dispatch %d %s: level %d", i, g.Ops[d.Op].named(d.Slot), d.Level)
	if len(g.Layouts) > 0 && len(g.Layouts[0].passes) > i {
		line += fmt.Sprintf(", compute pass %d", g.Layouts[0].passes[i])
	}
	return line
}

// Changes returns the diff of the listings before and after the pass. Removed lines start with "- ", and
// added lines start with "+ ".
func (r *PassReport) Changes() []string { return linediff.Of(r.Before, r.After) }
