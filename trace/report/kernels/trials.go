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
		Doc: "times of the operators that were timed in isolation, for each number of tokens and each possible route",
		Of: func(_ context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			return TrialTable(x), nil
		},
	})
}

// TrialTable returns the table of the operators that were timed in isolation, in the order of the
// measurements.
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
	of := table.ColumnsOf(trials)
	us := func(ns int64) table.Cell { return table.Number(float64(ns)/1e3, 1) }
	made := table.New("trials", []table.Column{
		of.Text(80, "op", "op", "the operator",
			func(t *trace.Trial) string { return x.Trace.Graph.Ops[t.Op].Name }),
		of.Int(80, "tokens", "tokens", "tokens", "number of tokens for which the operator was timed",
			func(t *trace.Trial) int64 { return int64(t.Tokens) }),
		of.Int(140, "position", "pos", "position", "position for which the operator was timed",
			func(t *trace.Trial) int64 { return int64(t.Position) }),
		of.Text(80, "route", "route", "route that was forced for this measurement",
			func(t *trace.Trial) string { return t.Route }),
		of.Words(80, "planned", "plan", "plan: the plan chooses this route for this number of tokens",
			func(t *trace.Trial) table.Cell {
				if t.Planned {
					return table.Text("plan")
				}
				return table.Cell{}
			}),
		of.Cell(80, table.Measured, "us", "µs", "us",
			"time of the operator's dispatches in isolation: median of n runs",
			func(t *trace.Trial) table.Cell { return us(t.NS) }),
		of.Cell(80, table.Measured, "q1_us", "q1", "us", "first quartile",
			func(t *trace.Trial) table.Cell { return us(t.Q1NS) }),
		of.Cell(80, table.Measured, "q3_us", "q3", "us", "third quartile",
			func(t *trace.Trial) table.Cell { return us(t.Q3NS) }),
		of.Int(80, "n", "n", "runs", "number of runs of each route",
			func(t *trace.Trial) int64 { return int64(t.N) }),
		of.Cell(80, table.Measured, "times", "× fastest", "times",
			"time relative to the fastest route at the same shape",
			func(t *trace.Trial) table.Cell {
				best := fastest[shape{t.Op, t.Tokens, t.Position}]
				if best <= 0 {
					return table.Cell{}
				}
				return table.Number(float64(t.NS)/float64(best), 2)
			}),
	}, table.Flat(len(trials), func(row int) string {
		t := &trials[row]
		return fmt.Sprintf("%d@%d,%d %s %d", t.Op, t.Tokens, t.Position, t.Route, row)
	}))
	if len(trials) == 0 {
		made.Notes = []string{"no operator was timed in isolation: press t in Curves, or use o in plain mode"}
	}
	return made
}
