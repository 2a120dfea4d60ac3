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
		Doc: "every kernel (specialized shader): its workgroup size, its params, and how many dispatches can use it",
		Of: func(_ context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			return Kernels(x), nil
		},
	})
}

// Kernels returns the table of the graph's kernels.
func Kernels(x *analyze.Index) *table.Table {
	g := &x.Trace.Graph
	slots := map[string]int{}
	for i := range g.Dispatches {
		for _, name := range g.Dispatches[i].Kernels {
			slots[name]++
		}
	}
	of := table.ColumnsOf(g.Kernels)
	return table.New("kernels", []table.Column{
		of.Text(80, "kernel", "kernel", "name of the specialized shader",
			func(k *trace.Kernel) string { return k.Name }),
		of.Int(80, "slots", "slots", "dispatches",
			"number of dispatches that can use the kernel on one of their routes; for an edited kernel, the number for the original kernel",
			func(k *trace.Kernel) int64 { return int64(slots[cmp.Or(k.Of, k.Name)]) }),
		of.Cell(80, table.Exact, "wg", "wg", "lanes", "workgroup size",
			func(k *trace.Kernel) table.Cell {
				lanes := float64(analyze.Product(k.WorkgroupSize))
				return table.Cell{Text: table.Grid(k.WorkgroupSize), Number: lanes, Has: true}
			}),
		of.Words(80, "params", "params", "fields of the kernel's params block, in order",
			func(k *trace.Kernel) table.Cell {
				names := make([]string, len(k.Params))
				for i := range k.Params {
					names[i] = k.Params[i].Name
				}
				return table.Text(strings.Join(names, " "))
			}),
		of.Text(140, "constants", "constants", "constants with which the shader was specialized",
			func(k *trace.Kernel) string { return k.Constants }),
		of.Text(140, "sha256", "source", "SHA-256 of the source",
			func(k *trace.Kernel) string { return k.SourceSHA256 }),
	}, table.Flat(len(g.Kernels), func(row int) string { return g.Kernels[row].Name }))
}
