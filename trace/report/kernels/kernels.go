package kernels

import (
	"cmp"
	"context"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func init() {
	report.Register(report.Table{
		Name: "kernels", Takes: report.NoSteps,
		Doc: "every specialised shader: its workgroup, its params, how many dispatch slots may run it",
		Of: func(_ context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			return Kernels(x), nil
		},
	})
}

// Kernels is the table of the graph's kernels.
func Kernels(x *analyze.Index) *table.Table {
	g := &x.Trace.Graph
	slots := map[string]int{}
	for i := range g.Dispatches {
		for _, name := range g.Dispatches[i].Kernels {
			slots[name]++
		}
	}
	at := table.By(g.Kernels)
	return table.New("kernels", []table.Column{
		{
			Name: "kernel", Title: "kernel", Width: 80,
			Doc: "name of the specialised shader",
			Of:  at(func(k *trace.Kernel) table.Cell { return table.Text(k.Name) }),
		},
		{
			Name: "slots", Title: "slots", Unit: "dispatches", Is: table.Exact, Right: true, Width: 80,
			Doc: "dispatch slots that have it among their routes; of another text of a kernel those of the kernel",
			Of: at(func(k *trace.Kernel) table.Cell {
				return table.Count(slots[cmp.Or(k.Of, k.Name)])
			}),
		},
		{
			Name: "wg", Title: "wg", Unit: "lanes", Is: table.Exact, Right: true, Width: 80,
			Doc: "workgroup size",
			Of: at(func(k *trace.Kernel) table.Cell {
				lanes := float64(analyze.Product(k.WorkgroupSize))
				return table.Cell{Text: table.Grid(k.WorkgroupSize), Number: lanes, Has: true}
			}),
		},
		{
			Name: "params", Title: "params", Width: 80, Doc: "fields of its params block, in order",
			Of: at(func(k *trace.Kernel) table.Cell {
				names := make([]string, len(k.Params))
				for i := range k.Params {
					names[i] = k.Params[i].Name
				}
				return table.Text(strings.Join(names, " "))
			}),
		},
		{
			Name: "constants", Title: "constants", Width: 140, Doc: "that it was specialised with",
			Of: at(func(k *trace.Kernel) table.Cell { return table.Text(k.Constants) }),
		},
		{
			Name: "sha256", Title: "source", Width: 140, Doc: "the source's hash",
			Of: at(func(k *trace.Kernel) table.Cell { return table.Text(k.SourceSHA256) }),
		},
	}, table.Flat(len(g.Kernels), func(row int) string { return g.Kernels[row].Name }))
}
