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
		Doc: "every operator of the graph, in the order of execution: its kind, what it reads and gives",
		Of: func(_ context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			return Operators(x), nil
		},
	})
}

// Operators is the table of the graph's operators.
func Operators(x *analyze.Index) *table.Table {
	g := &x.Trace.Graph
	at := table.By(g.Ops)
	return table.New("operators", []table.Column{
		{
			Name: "operator", Title: "operator", Unit: "id", Is: table.Exact, Width: 80,
			Doc: "id, the place in the order of execution",
			Of:  at(func(o *trace.Op) table.Cell { return table.Count(int(o.ID)) }),
		},
		{
			Name: "name", Title: "name", Width: 80,
			Doc: "where it stands",
			Of:  at(func(o *trace.Op) table.Cell { return table.Text(o.Name) }),
		},
		{
			Name: "kind", Title: "kind", Width: 80,
			Doc: "what it does",
			Of:  at(func(o *trace.Op) table.Cell { return table.Text(o.Kind) }),
		},
		{
			Name: "layer", Title: "layer", Width: 80, Doc: "with the block in it",
			Of: at(func(o *trace.Op) table.Cell {
				if o.Layer == nil {
					return table.Text(o.Block)
				}
				return table.Text(strings.TrimSpace(fmt.Sprintf("%d %s", *o.Layer, o.Block)))
			}),
		},
		{
			Name: "parts", Title: "made of", Width: 80, Doc: "operators that a fusion put together",
			Of: at(func(o *trace.Op) table.Cell { return table.Text(strings.Join(o.Parts, " + ")) }),
		},
		{
			Name: "reads", Title: "reads", Width: 80, Doc: "values, State last",
			Of: at(func(o *trace.Op) table.Cell {
				return table.Text(analyze.IDList(slices.Concat(o.Inputs, o.State)))
			}),
		},
		{
			Name: "gives", Title: "gives", Width: 80,
			Doc: "values, with their largest dims; makes: those of operators before it, where these leave them",
			Of: at(func(o *trace.Op) table.Cell {
				var words []string
				for _, id := range o.Outputs {
					words = append(words, fmt.Sprintf("%d (%s)", id, Bounds(x, &g.Values[id])))
				}
				for _, id := range o.Makes {
					words = append(words, fmt.Sprintf("makes %d", id))
				}
				return table.Text(strings.Join(words, ", "))
			}),
		},
	}, table.Flat(len(g.Ops), func(row int) string { return fmt.Sprintf("op%d", row) }))
}
