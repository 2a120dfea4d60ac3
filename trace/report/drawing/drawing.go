// Package drawing draws the graph of a trace for Graphviz.
package drawing

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

// undrawn lists the roles of values that are not drawn as nodes.
var undrawn = []trace.Role{trace.RoleConstant, trace.RoleScratch, trace.RoleFused}

// DOT draws a graph in the language of Graphviz. Operators are boxes, clustered by layer. Each tensor or
// SymInt has an edge from the operator that writes it to the operators that read it. A value that is fused
// away has a dashed edge from the operator that would otherwise compute it. A constant is not a node: its
// name is in the boxes of the operators that read it. KV caches are nodes, because the access to a cache
// determines the order of its operators.
func DOT(w io.Writer, g *trace.Graph) error {
	var b bytes.Buffer
	b.WriteString("digraph gpuscope {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n  edge [fontname=\"monospace\", fontsize=8];\n")
	x := analyze.NewIndex(&trace.Trace{Graph: *g})
	layer := -1
	for i := range g.Ops {
		op := &g.Ops[i]
		if next := layerOf(op); next != layer {
			if layer >= 0 {
				b.WriteString("  }\n")
			}
			if next >= 0 {
				fmt.Fprintf(&b, "  subgraph cluster_%d_%d {\n    label=\"layer %d\";\n", next, op.ID, next)
			}
			layer = next
		}
		fmt.Fprintf(&b, "    op%d [label=%s];\n", op.ID, quote(box(g, op)...))
	}
	if layer >= 0 {
		b.WriteString("  }\n")
	}
	producer := map[trace.ValueID]trace.OpID{}
	for i := range g.Ops {
		for _, id := range g.Ops[i].Outputs {
			producer[id] = g.Ops[i].ID
		}
	}
	for i := range g.Values { // inputs from the CPU, and caches
		v := &g.Values[i]
		if _, made := producer[v.ID]; !made && !slices.Contains(undrawn, v.Role) {
			fmt.Fprintf(&b, "  v%d [label=%s, shape=ellipse];\n", v.ID,
				quote(v.Name, report.Bounds(x, v)))
		}
	}
	for i := range g.Ops {
		op := &g.Ops[i]
		for _, id := range op.Inputs {
			v := &g.Values[id]
			label := quote(v.Name + " " + report.Bounds(x, v))
			if from, ok := producer[id]; ok {
				fmt.Fprintf(&b, "  op%d -> op%d [label=%s];\n", from, op.ID, label)
			} else if v.Role != trace.RoleConstant {
				fmt.Fprintf(&b, "  v%d -> op%d;\n", id, op.ID)
			}
			for _, maker := range x.Makers(id) {
				if maker < op.ID {
					fmt.Fprintf(&b, "  op%d -> op%d [label=%s, style=dashed];\n", maker, op.ID, label)
				}
			}
		}
		for _, id := range op.State {
			fmt.Fprintf(&b, "  v%d -> op%d [dir=both, style=dashed];\n", id, op.ID)
		}
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

func layerOf(op *trace.Op) int {
	if op.Layer == nil {
		return -1
	}
	return *op.Layer
}

// The largest size of a label. Names come from files and have any length.
const (
	maxWidth     = 120 // characters of a line
	maxConstants = 16  // lines of constants
)

// quote returns the lines of a label as a quoted string. Each line is shortened to maxWidth characters.
func quote(lines ...string) string {
	for i := range lines {
		lines[i] = printable.Short(lines[i], maxWidth)
	}
	return strconv.Quote(strings.Join(lines, "\n"))
}

// box returns the lines in an operator's box: its name, its kind and the constants that it reads.
func box(g *trace.Graph, op *trace.Op) []string {
	lines := []string{op.Name, op.Kind}
	more := 0
	for _, id := range op.Inputs {
		switch v := &g.Values[id]; {
		case v.Role != trace.RoleConstant:
		case len(lines) == 2+maxConstants:
			more++
		default:
			lines = append(lines, v.Name+" "+table.Shape(v.MaxDims))
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}
