package kernels

import (
	"context"
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func init() {
	report.Register(report.Table{
		Name: "trials", Takes: report.NoSteps,
		Doc: "operators that were timed alone, on each route that can do a length",
		Of: func(_ context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			return TrialTable(x), nil
		},
	})
}

// TrialTable is the table of the operators that were timed on their own, in the order in which they were.
func TrialTable(x *analyze.Index) *table.Table {
	trials := x.Trace.Trials
	type shape struct {
		op               trace.OpID
		tokens, position int
	}
	fastest := map[shape]int64{}
	for i := range trials {
		t := &trials[i]
		s := shape{t.Op, t.Tokens, t.Position}
		if ns, ok := fastest[s]; !ok || t.NS < ns {
			fastest[s] = t.NS
		}
	}
	at := table.By(trials)
	us := func(ns int64) table.Cell { return table.Number(float64(ns)/1e3, 1) }
	made := table.New("trials", []table.Column{
		{
			Name: "op", Title: "op", Width: 80, Doc: "the operator",
			Of: at(func(t *trace.Trial) table.Cell { return table.Text(x.Trace.Graph.Ops[t.Op].Name) }),
		},
		{
			Name: "tokens", Title: "M", Unit: "tokens", Is: table.Exact, Right: true, Width: 80,
			Doc: "tokens of the shape",
			Of:  at(func(t *trace.Trial) table.Cell { return table.Count(t.Tokens) }),
		},
		{
			Name: "position", Title: "pos", Unit: "position", Is: table.Exact, Right: true, Width: 140,
			Doc: "its position",
			Of:  at(func(t *trace.Trial) table.Cell { return table.Count(t.Position) }),
		},
		{
			Name: "route", Title: "route", Width: 80, Doc: "the route that it was made to take",
			Of: at(func(t *trace.Trial) table.Cell { return table.Text(t.Route) }),
		},
		{
			Name: "planned", Title: "plan", Width: 80, Doc: "plan: its plan takes that route there",
			Of: at(func(t *trace.Trial) table.Cell {
				if t.Planned {
					return table.Text("plan")
				}
				return table.Cell{}
			}),
		},
		{
			Name: "us", Title: "µs", Unit: "us", Is: table.Measured, Right: true, Width: 80,
			Doc: "of its dispatches, alone, the median of n runs in place",
			Of:  at(func(t *trace.Trial) table.Cell { return us(t.NS) }),
		},
		{
			Name: "q1_us", Title: "q1", Unit: "us", Is: table.Measured, Right: true, Width: 80,
			Doc: "first quartile",
			Of:  at(func(t *trace.Trial) table.Cell { return us(t.Q1NS) }),
		},
		{
			Name: "q3_us", Title: "q3", Unit: "us", Is: table.Measured, Right: true, Width: 80,
			Doc: "third quartile",
			Of:  at(func(t *trace.Trial) table.Cell { return us(t.Q3NS) }),
		},
		{
			Name: "n", Title: "n", Unit: "runs", Is: table.Exact, Right: true, Width: 80,
			Doc: "runs of each route",
			Of:  at(func(t *trace.Trial) table.Cell { return table.Count(t.N) }),
		},
		{
			Name: "times", Title: "× fastest", Unit: "times", Is: table.Measured, Right: true, Width: 80,
			Doc: "against the fastest route at that shape",
			Of: at(func(t *trace.Trial) table.Cell {
				best := fastest[shape{t.Op, t.Tokens, t.Position}]
				if best <= 0 {
					return table.Cell{}
				}
				return table.Number(float64(t.NS)/float64(best), 2)
			}),
		},
	}, table.Flat(len(trials), func(row int) string {
		t := &trials[row]
		return fmt.Sprintf("%d@%d,%d %s %d", t.Op, t.Tokens, t.Position, t.Route, row)
	}))
	if len(trials) == 0 {
		made.Notes = []string{"no operator was timed alone: t in Curves does that, and o in plain mode"}
	}
	return made
}
