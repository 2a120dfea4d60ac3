package slopes

import (
	"cmp"
	"context"
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func init() {
	report.Register(report.Table{
		Name: "forecast", Takes: report.NoSteps,
		Doc: "positions and prompt lengths at which the plan changes the grid or route of a dispatch",
		Of: func(_ context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			return ForecastTable(x), nil
		},
	})
}

// ForecastTable returns the table of all changes in the forecast. Dispatches with the same changes are one
// row.
func ForecastTable(x *analyze.Index) *table.Table {
	var rows []curves.ForecastRow
	lines := 0
	if f := x.Trace.Forecast; f != nil {
		lines = len(f.Lines)
		for i := range f.Lines {
			rows = append(rows, curves.ForecastRows(x, &f.Lines[i])...)
		}
	}
	of := table.ColumnsOf(rows)
	plan := func(of func(*curves.ForecastRow) *trace.Plan,
		say func(*trace.Plan) table.Cell,
	) func(*curves.ForecastRow) table.Cell {
		return func(r *curves.ForecastRow) table.Cell {
			if p := of(r); p != nil {
				return say(p)
			}
			return table.Text("not run")
		}
	}
	from := func(r *curves.ForecastRow) *trace.Plan { return r.Change.From }
	to := func(r *curves.ForecastRow) *trace.Plan { return r.Change.To }
	grid := func(p *trace.Plan) table.Cell {
		return table.Cell{
			Text: table.Grid(p.Workgroups), Number: float64(analyze.Product(p.Workgroups)),
			Has: true,
		}
	}
	route := func(p *trace.Plan) table.Cell { return table.Text(cmp.Or(p.Route, p.Kernel)) }
	t := table.New("forecast", []table.Column{
		of.Text(80, "along", "along", "axis along which the change happens: position, or number of tokens of a prompt",
			func(r *curves.ForecastRow) string { return curves.LineName(r.Line) }),
		of.Int(80, "dispatch", "#", "dispatch", "id of the first dispatch with this change",
			func(r *curves.ForecastRow) int64 { return int64(r.First) }),
		of.Text(80, "op", "op", "operator of the dispatch",
			func(r *curves.ForecastRow) string { return x.Name(r.First) }),
		of.Int(80, "alike", "×", "dispatches", "number of dispatches, in equal layers, that have this change",
			func(r *curves.ForecastRow) int64 { return int64(r.Others + 1) }),
		of.Int(80, "at", "at", "place", "position or number of tokens at which the change happens",
			func(r *curves.ForecastRow) int64 { return int64(r.Change.At) }),
		of.Int(80, "until", "until", "place",
			"end of a series of changes: the grid changes at every position or number of tokens from `at` to `until`",
			func(r *curves.ForecastRow) int64 { return int64(r.Change.Until) }),
		of.Cell(80, table.Exact, "from_grid", "grid", "workgroups", "grid before the change",
			plan(from, grid)),
		of.Cell(80, table.Exact, "to_grid", "to", "workgroups", "grid after the change", plan(to, grid)),
		of.Words(80, "from_route", "route",
			"route before the change; the kernel if the operator has no routes",
			plan(from, route)),
		of.Words(80, "to_route", "to route", "route after the change", plan(to, route)),
		of.Words(140, "reason", "why", "reason for the new route",
			plan(to, func(p *trace.Plan) table.Cell { return table.Text(p.Reason) })),
	}, table.Flat(len(rows), func(row int) string {
		r := &rows[row]
		return fmt.Sprintf("%s %d %d@%d", r.Line.Along, r.Line.At, r.First, r.Change.At)
	}))
	t.Title = []table.Line{table.Title(
		table.Say(
			0,
			"%s of %s",
			table.Plural(len(rows), "change"),
			table.Plural(len(x.Trace.Graph.Dispatches), "dispatch"),
		),
		table.Say(2, "planned along %s of positions or token counts", table.Plural(lines, "line")),
	)}
	if lines == 0 {
		t.Notes = append(
			t.Notes,
			"no forecast in this trace: it was recorded by an older version, or without a model",
		)
	}
	return t
}
