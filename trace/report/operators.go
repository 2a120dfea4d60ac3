package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

func init() {
	Register(Table{
		Name: "operators", Takes: NoSteps,
		Doc: "every operator of the graph, in execution order: kind, inputs and outputs",
		Of: func(_ context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			return Operators(x), nil
		},
	})
}

// Operators returns the table of the graph's operators.
func Operators(x *analyze.Index) *table.Table {
	g := &x.Trace.Graph
	of := table.ColumnsOf(g.Ops)
	return table.New("operators", []table.Column{
		of.Int(80, "operator", "operator", "id", "id of the operator, in execution order",
			func(o *trace.Op) int64 { return int64(o.ID) }).AlignLeft(),
		of.Text(80, "name", "name", "name of the operator, with its layer",
			func(o *trace.Op) string { return o.Name }),
		of.Text(80, "kind", "kind", "kind of operator", func(o *trace.Op) string { return o.Kind }),
		of.Words(80, "layer", "layer", "layer and block of the operator",
			func(o *trace.Op) table.Cell {
				if o.Layer == nil {
					return table.Text(o.Block)
				}
				return table.Text(strings.TrimSpace(fmt.Sprintf("%d %s", *o.Layer, o.Block)))
			}),
		of.Text(80, "parts", "made of", "operators that were fused into this operator",
			func(o *trace.Op) string { return strings.Join(o.Parts, " + ") }),
		of.Text(80, "reads", "reads", "ids of the values that the operator reads; values of its state come last",
			func(o *trace.Op) string { return analyze.IDList(slices.Concat(o.Inputs, o.State)) }),
		of.Words(80, "gives", "outputs",
			"ids of the output values with their largest dims; \"makes N\" means that this operator computes value N itself if "+
				"value N is fused away, which means that no kernel writes it",
			func(o *trace.Op) table.Cell {
				var words []string
				for _, id := range o.Outputs {
					words = append(words, fmt.Sprintf("%d (%s)", id, Bounds(x, &g.Values[id])))
				}
				for _, id := range o.Makes {
					words = append(words, fmt.Sprintf("makes %d", id))
				}
				return table.Text(strings.Join(words, ", "))
			}),
	}, table.Flat(len(g.Ops), func(row int) string { return fmt.Sprintf("op%d", row) }))
}
