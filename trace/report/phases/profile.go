package phases

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tree"
)

func init() {
	report.Register(report.Table{
		Name: "profile", Takes: report.WholeRun,
		Doc: "GPU time, share and cost of each kernel in each phase, and tokens per second",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			p, err := rates.Of(ctx, x, o.Selection)
			if err != nil {
				return nil, err
			}
			return Table(p), nil
		},
	})
}

// Lines describes the rates and the overhead of timing in words.
func Lines(p *rates.Profile) []string {
	var lines []string
	for i := range p.Rates {
		lines = append(lines, line(&p.Rates[i]))
	}
	return slices.Concat(lines, notes(p), costSteps(p))
}

// observed names the step that was repeated to measure the overhead of timing. Its times can differ from the
// medians of the steps of the run.
func observed(p *rates.Profile) string {
	is := func(r rates.Rate) bool { return r.Phase == trace.Execute }
	what, step := "decode step", p.Trace.Observer.Step
	if slices.ContainsFunc(p.Rates, is) {
		what = "execution"
	}
	if step == nil {
		return "a repeated " + what
	}
	return fmt.Sprintf("%s s%d", what, *step)
}

func line(r *rates.Rate) string {
	what := fmt.Sprintf("%s: %s", r.Phase, table.Plural(r.Steps, "step"))
	if r.Tokens > 0 {
		what = fmt.Sprintf(
			"%s: %s in %s",
			r.Phase,
			table.Plural(r.Tokens, "token"),
			table.Plural(r.Steps, "step"),
		)
	}
	parts := []string{what}
	if r.TokensPerS > 0 {
		rate := fmt.Sprintf("%.1f tokens/s", r.TokensPerS)
		if r.Timed > 1 { // untimed rates, and the rates of the headline, are of the median
			rate = "mean " + rate
		}
		if r.Timing.InDetail() {
			rate += " with timing on"
		}
		if r.Untimed > 0 {
			rate += fmt.Sprintf(", median %s untimed", report.TokensPerS(r.Untimed))
		}
		parts = append(parts, rate+", "+r.Mode)
	}
	parts = append(parts, "timing "+string(r.Timing))
	if r.Timed > 0 {
		mean := fmt.Sprintf("%.2f ms a step", float64(r.WallNS)/float64(r.Timed)/1e6)
		if r.Timed > 1 {
			mean = fmt.Sprintf("mean %s, median %.2f (%.2f–%.2f)", mean, float64(r.MedianNS)/1e6,
				float64(r.LeastNS)/1e6, float64(r.MostNS)/1e6)
		}
		parts = append(parts, mean)
	}
	switch {
	case r.OnlyCold:
		parts = append(parts, "cold")
	case r.Cold > 0:
		parts = append(parts, fmt.Sprintf("%s excluded", table.Plural(r.Cold, "cold step")))
	}
	return strings.Join(parts, " · ")
}

// profileRow is a phase or a kernel of a phase.
type profileRow struct {
	tree.Row
	rates.KernelProfile
}

// Table returns the table of the kernels of each phase.
func Table(p *rates.Profile) *table.Table {
	var rows []profileRow
	phase := -1
	for _, k := range p.Kernels {
		if phase < 0 || rows[phase].Phase != k.Phase {
			phase = len(rows)
			rows = append(rows,
				profileRow{
					tree.Row{Key: string(k.Phase), Parent: -1, Group: true, Open: true},
					rates.KernelProfile{Phase: k.Phase},
				})
		}
		rows = append(rows, profileRow{tree.Row{
			Key: string(k.Phase) + "/" + k.Kernel, Parent: phase,
			Depth: 1,
		}, k})
		all := &rows[phase].KernelProfile
		all.Count += k.Count
		all.Timed += k.Timed
		all.TotalNS += k.TotalNS
		all.Share += k.Share
	}
	decimals := table.DecimalsOfUS(p.Trace.Clock.QuantumNS)
	measured := func(k *profileRow, ns float64) table.Cell {
		if k.Timed == 0 {
			return table.Missing()
		}
		return table.Microseconds(ns/1e3, decimals)
	}
	of := table.ColumnsOf(rows)
	// The screen shows the number of timed dispatches only if it differs from the number of all dispatches.
	partlyTimed := table.Unseen
	for i := range rows {
		if rows[i].Timed != rows[i].Count && rows[i].Timed > 0 {
			partlyTimed = 80
		}
	}
	columns := []table.Column{
		of.Text(80, "kernel", "kernel", "kernel (specialized shader), under its phase",
			func(k *profileRow) string { return cmp.Or(k.Kernel, string(k.Phase)) }).AsTree(),
		of.Int(80, "count", "count", "dispatches", "number of dispatches",
			func(k *profileRow) int64 { return int64(k.Count) }),
		of.Int(partlyTimed, "timed", "timed", "dispatches",
			"number of timed dispatches; total µs and mean µs cover only these",
			func(k *profileRow) int64 { return int64(k.Timed) }),
		of.Cell(80, table.Measured, "total_us", "total µs", "us", "GPU time of all timed dispatches",
			func(k *profileRow) table.Cell { return measured(k, k.TotalNS) }),
		of.Cell(80, table.Measured, "mean_us", "mean µs", "us", "mean GPU time of a timed dispatch",
			func(k *profileRow) table.Cell {
				if k.Group {
					return table.Cell{}
				}
				return measured(k, k.MeanNS())
			}),
		of.Cell(80, table.Measured, "share", "%", "%", "share of the phase's GPU time",
			func(k *profileRow) table.Cell {
				if k.Share == 0 {
					return table.Missing()
				}
				return table.Number(100*k.Share, 1)
			}),
	}
	columns = append(columns, costColumns(p, of)...)
	t := table.New("profile", columns, table.Tree(rows, func(r *profileRow) tree.Row { return r.Row }))
	for _, l := range Lines(p) {
		t.Title = append(t.Title, table.Title(table.Segment{Text: l}))
	}
	return t
}

// Kernels returns the table of the kernels of each phase with a title that leaves out the rates, for readers
// who also see Speed.
func Kernels(p *rates.Profile) *table.Table {
	t := Table(p)
	t.Title = nil
	for _, l := range append([]string{"kernels of each phase, by isolated time"}, costSteps(p)...) {
		t.Title = append(t.Title, table.Title(table.Segment{Text: l}))
	}
	return t
}

// costColumns returns the columns of the costs of kernels in a step. No screen shows these columns if there
// are no costs.
func costColumns(p *rates.Profile, of table.Columns[profileRow]) []table.Column {
	kernels := of.Where(func(k *profileRow) bool { return !k.Group })
	columns := report.CostColumns(p.Index, kernels, func(k *profileRow) *analyze.RowCost { return k.Cost })
	for i := range columns {
		if len(p.Costs) == 0 {
			columns[i].Width = table.Unseen
		}
	}
	return columns
}
