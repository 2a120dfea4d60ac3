package report

import (
	"context"
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/graphtree"
	"gpuscope/trace/analyze/memory"
	"gpuscope/trace/table"
)

func init() {
	Register(Table{
		Name: "values", Takes: OneStep, OfGraph: true,
		Doc: "every tensor and SymInt of the graph: its role, its dims in the step, its largest dims and its memory",
		Of: func(_ context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return Values(x, o.Selection), nil
		},
	})
}

// Values returns the table of the graph's values. It shows live shapes if the selection is one step.
func Values(x *analyze.Index, selection analyze.Selection) *table.Table {
	g := &x.Trace.Graph
	of := table.ColumnsOf(g.Values)
	step, live := selection.One()
	var mem *memory.Tenancy
	if live {
		mem = memory.Of(x, step)
	}
	return table.New("values", []table.Column{
		of.Int(80, "value", "value", "id", "id",
			func(v *trace.Value) int64 { return int64(v.ID) }).AlignLeft(),
		of.Text(80, "name", "name", "name of the value, with its layer",
			func(v *trace.Value) string { return v.Name }),
		of.Text(80, "role", "role",
			"role of the value: input, output, constant, state, intermediate, scratch, fused or symint",
			func(v *trace.Value) string { return string(v.Role) }),
		of.Text(80, "dtype", "dtype", "type of the elements, or quantization format of a weight matrix",
			func(v *trace.Value) string { return analyze.TypeOf(v) }),
		of.Words(80, "live", "live", "for a tensor: dims in the step, or \"fused away\" if no kernel writes it; for a SymInt: its integer in the step",
			func(v *trace.Value) table.Cell {
				if !live {
					return table.Cell{}
				}
				return Shapes(LiveText(mem, v.ID))
			}),
		of.Text(80, "max", "max dims", "largest dims; for a SymInt: its range",
			func(v *trace.Value) string { return Bounds(x, v) }),
		of.Cell(80, table.Exact, "bytes", "bytes", "bytes",
			"bytes of the value at its largest shape; empty for aliases and for values that are never in memory",
			func(v *trace.Value) table.Cell {
				if v.Kind == "symint" || v.AliasOf != nil || analyze.NotStored(v) != "" {
					return table.Cell{}
				}
				return table.Cell{Text: table.Memory(v.Bytes), Number: float64(v.Bytes), Has: true}
			}).AlignLeft(),
		of.Text(80, "memory", "memory",
			"memory slot that the value shares with other values; for an alias: the value whose memory it uses",
			func(v *trace.Value) string { return graphtree.MemoryOf(v) }),
	}, table.Flat(len(g.Values), func(row int) string { return fmt.Sprintf("v%d", row) }))
}

// Bounds returns a value's largest shape, or the range of a SymInt.
func Bounds(x *analyze.Index, v *trace.Value) string {
	if s := x.Graph.Symints[v.ID]; v.Kind == "symint" && s != nil {
		return fmt.Sprintf("%d to %d", s.Min, s.Max)
	}
	return shapeOf(x, v, analyze.Largest(v))
}

// shapeOf returns the shape of a value with the given dims. For a weight matrix it returns the rows and
// columns.
func shapeOf(x *analyze.Index, v *trace.Value, dims []int) string {
	if m := v.Matrix; m != nil {
		return table.Shape([]int{m.Rows, m.Cols})
	}
	return Shape(x, v.ID, dims)
}

// RowName returns the cell of a row's name. The short form of a name such as "layers 0–15" is "L0–15".
func RowName(name string) table.Cell {
	cell := table.Text(name)
	if of, ok := strings.CutPrefix(name, "layers "); ok {
		cell.Short = "L" + of
	}
	return cell
}

// Shapes returns a cell of comma-separated shapes. Its short form shows the first shape and the number of
// the others.
func Shapes(list string) table.Cell {
	cell := table.Text(list)
	first, more, _ := strings.Cut(cell.Text, ", ")
	if cell.Short = first; more != "" {
		cell.Short = fmt.Sprintf("%s +%d", first, 1+strings.Count(more, ", "))
	}
	return cell
}

// LiveText returns the live shape of a value, or the value of a SymInt. Without a step it returns the
// largest shape.
func LiveText(t *memory.Tenancy, id trace.ValueID) string {
	x, v := t.X, &t.X.Trace.Graph.Values[id]
	switch {
	case t.Step < 0:
		return Bounds(x, v)
	case t.Tenants[id].FusedAway:
		return memory.FusedAway
	case analyze.NotStored(v) != "":
		return table.Unmeasured
	case v.Kind != "symint":
		return shapeOf(x, v, x.Dims(t.Step, id))
	}
	if n, ok := x.SymInt(t.Step, id); ok {
		return fmt.Sprint(n)
	}
	return table.Unmeasured
}
