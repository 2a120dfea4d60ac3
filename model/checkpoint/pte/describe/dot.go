package describe

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
)

// DOT writes programs to w as a graph in the DOT language of Graphviz. Each method with instructions is a
// cluster. A cluster has a box for each instruction, and a nested cluster for each delegate whose graph is
// known. A nested cluster has a box for each operator of the graph. An edge stands for a tensor or a SymInt.
// It starts at the box of the operator or instruction that was the last to write this value. The box of an
// operator lists the constants that the operator reads.
func DOT(w io.Writer, programs ...*Info) error {
	var b bytes.Buffer
	b.WriteString("digraph gpuscope {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n" +
		"  edge [fontname=\"monospace\", fontsize=8];\n")
	for i, p := range programs {
		for j := range p.Methods {
			m := &p.Methods[j]
			if len(m.Instructions) == 0 {
				continue
			}
			d := drawing{&b, fmt.Sprintf("p%dm%d", i, j)}
			label := m.Name
			if len(programs) > 1 {
				label = p.File + ": " + label
			}
			fmt.Fprintf(&b, "  subgraph cluster_%s {\n    label=%s;\n", d.prefix, quote(label))
			d.method(m)
			b.WriteString("  }\n")
		}
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// quote quotes a text from the file for use as a label, and truncates long lines.
func quote(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = printable.Short(lines[i], 120)
	}
	return strconv.Quote(strings.Join(lines, "\n"))
}

type drawing struct {
	b      *bytes.Buffer
	prefix string // prefix of the names of all nodes in the cluster
}

// method draws the instructions of a method in order, and then the graphs of its delegates.
func (d drawing) method(m *Method) {
	for i := range m.Instructions {
		in := &m.Instructions[i]
		if i > 0 {
			fmt.Fprintf(d.b, "    %si%d -> %[1]si%[3]d [style=bold];\n", d.prefix, i-1, i)
		}
		label := fmt.Sprintf("%d %s", i, in.Op)
		if in.Target != "" {
			label += "\n" + printable.Clean(in.Target)
		}
		fmt.Fprintf(d.b, "    %si%d [label=%s];\n", d.prefix, i, quote(label))
	}
	for i := range m.Delegates {
		if g := m.Delegates[i].Graph; g != nil {
			inner := drawing{d.b, d.prefix + "d" + strconv.Itoa(i)}
			fmt.Fprintf(d.b, "    subgraph cluster_%s {\n      label=%s;\n", inner.prefix,
				quote(fmt.Sprintf("delegate %d", i)))
			inner.graph(g)
			d.b.WriteString("    }\n")
		}
	}
}

func (d drawing) graph(g *Graph) {
	for i := range g.Values {
		v := &g.Values[i]
		if v.Role == Input || v.Role == State {
			fmt.Fprintf(d.b, "      %sv%d [label=%s, shape=ellipse];\n", d.prefix, v.ID,
				quote(fmt.Sprintf("%%%d %s\n%s %s", v.ID, v.Role, v.Type, dims(v.Dims))))
		}
	}
	reads := make([][]*Value, len(g.Operators))
	for i := range g.Values {
		for _, op := range g.Values[i].Readers {
			reads[op] = append(reads[op], &g.Values[i])
		}
	}
	for i := range g.Operators {
		op := &g.Operators[i]
		const most = 16 // maximum number of weights in a box
		label := []string{strconv.Itoa(i) + " " + plain(op.Name)}
		for _, v := range reads[i] {
			if v.Role == Weight && len(label) <= most {
				label = append(label, fmt.Sprintf("%%%d %s %s", v.ID, v.Type, dims(v.Dims)))
			}
		}
		fmt.Fprintf(d.b, "      %so%d [label=%s];\n", d.prefix, i, quote(strings.Join(label, "\n")))
		for _, v := range reads[i] {
			d.edge(i, v)
		}
	}
	for i := range g.SymInts {
		s := &g.SymInts[i]
		for _, op := range s.Readers {
			if s.Writer >= 0 && s.Writer != op {
				fmt.Fprintf(d.b, "      %so%d -> %[1]so%[3]d [label=\"%%%[4]d\", style=dotted];\n",
					d.prefix, s.Writer,
					op, s.ID)
			}
		}
	}
}

// edge draws an edge for a tensor that an operator reads. The edge starts at the operator that was the last
// to write the tensor before this read. If the tensor is a graph input that no operator has written yet, the
// edge starts at the tensor itself. This is always the case for a state. Constants have no edges.
func (d drawing) edge(op int, v *Value) {
	switch v.Role {
	case Weight:
		return
	case State:
		fmt.Fprintf(d.b, "      %sv%d -> %[1]so%[3]d [dir=both, style=dashed];\n", d.prefix, v.ID, op)
		return
	}
	before, _ := slices.BinarySearch(v.Writers, op)
	if before > 0 {
		fmt.Fprintf(d.b, "      %so%d -> %[1]so%[3]d [label=%[4]s];\n", d.prefix, v.Writers[before-1], op,
			quote(fmt.Sprintf("%%%d %s", v.ID, dims(v.Dims))))
	} else if v.Role == Input {
		fmt.Fprintf(d.b, "      %sv%d -> %[1]so%[3]d;\n", d.prefix, v.ID, op)
	}
}
