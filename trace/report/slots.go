package report

import (
	"context"
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

func init() {
	Register(Table{
		Name: "slots", Takes: OneStep,
		Doc: "every dispatch of the graph, also those that the step does not run: level, largest grid, values, kernels",
		Of: func(_ context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			levels := map[trace.DispatchID]int{}
			for _, l := range x.Planned(o.Selection.Last()) {
				levels[l.ID] = l.Level
			}
			return Slots(x, levels), nil
		},
	})
}

// Slots returns the table of the graph's dispatch slots. The map `levels` holds the level of each slot that
// runs; -1 means that the level is not known.
func Slots(x *analyze.Index, levels map[trace.DispatchID]int) *table.Table {
	g := &x.Trace.Graph
	of := table.ColumnsOf(g.Dispatches)
	return table.New("slots", []table.Column{
		of.Int(80, "dispatch", "dispatch", "id", "id",
			func(d *trace.Dispatch) int64 { return int64(d.ID) }).AlignLeft(),
		of.Cell(80, table.Exact, "level", "level", "level",
			"number of the level (a group of dispatches between two barriers) in which the dispatch runs; "+
				"– if it does not run",
			func(d *trace.Dispatch) table.Cell {
				switch n, runs := levels[d.ID]; {
				case !runs:
					return table.Missing()
				case n < 0:
					return table.Cell{}
				default:
					return table.Count(n)
				}
			}).AlignLeft(),
		of.Text(80, "op", "operator", "operator, followed by the name of the dispatch if the operator has several dispatches",
			func(d *trace.Dispatch) string { return d.Named(g.Ops[d.Op].Name) }),
		of.Cell(80, table.Exact, "max", "largest grid", "workgroups",
			"grid, in workgroups, at the largest shapes",
			func(d *trace.Dispatch) table.Cell {
				n := analyze.Product(d.MaxWorkgroups)
				return table.Cell{Text: table.Grid(d.MaxWorkgroups), Number: float64(n), Has: true}
			}).AlignLeft(),
		of.Text(80, "reads", "reads", "ids of the values that the dispatch reads on any of its routes",
			func(d *trace.Dispatch) string { return analyze.IDList(d.Reads) }),
		of.Text(80, "writes", "writes", "ids of the values that the dispatch writes on any of its routes",
			func(d *trace.Dispatch) string { return analyze.IDList(d.Writes) }),
		of.Text(80, "kernels", "kernels", "kernels of all routes of the dispatch",
			func(d *trace.Dispatch) string { return strings.Join(d.Kernels, " ") }),
	}, table.Flat(len(g.Dispatches), func(row int) string { return fmt.Sprintf("d%d", row) }))
}
