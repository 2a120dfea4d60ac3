// Package roofs lists the kernels of a run beside the ceilings of the device: the points of a roofline.
package roofs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/roofline"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func init() {
	report.Register(report.Table{
		Name: "roofline", Takes: report.WholeRun,
		Doc: "FLOP/byte and rates of each kernel, and which measured ceiling of the device limits the kernel",
		Of: func(ctx context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			r, err := roofline.Of(ctx, x)
			refused := new(roofline.Refusal)
			if errors.As(err, &refused) {
				return without(refused), nil
			}
			if err != nil {
				return nil, err
			}
			return Table(r), nil
		},
	})
}

// Row is a kernel in the steps of a phase.
type Row struct {
	*roofline.Point
	Phase *roofline.Phase
	// Sign is the letter of the point in a chart: a capital letter for a prefill, a small one for other
	// phases. The kernel with the longest time in a phase has the first letter. Kernels after the 26th have
	// the sign +.
	Sign string
	// Share is the kernel's fraction of the time of all kernels of the phase.
	Share float64
}

// Large reports that the kernel takes at least a tenth of the time of its phase.
func (r *Row) Large() bool { return r.Share >= 0.1 }

// Roofs is a roofline and the rows of its table. If the trace has no roofline, Roofline is nil and Refused
// says why.
type Roofs struct {
	*roofline.Roofline
	Rows    []Row
	Refused string
}

// without returns a table without rows, whose title says why the trace has no roofline.
func without(why *roofline.Refusal) *table.Table {
	said := "there is no roofline: " + strings.TrimPrefix(why.Error(), "roofline: ")
	t := table.New("roofline", columns(nil), table.Flat(0, nil))
	t.Title, t.From = []table.Line{table.Title(table.Segment{Text: said})}, &Roofs{Refused: said}
	return t
}

// Table returns the table of a roofline. Its field From is a *Roofs.
func Table(r *roofline.Roofline) *table.Table {
	roofs := &Roofs{Roofline: r}
	for i := range r.Phases {
		p := &r.Phases[i]
		total, first := 0.0, 'a'
		if p.Phase == trace.Prefill {
			first = 'A'
		}
		for j := range p.Points {
			total += p.Points[j].NS
		}
		for j := range p.Points {
			row := Row{Point: &p.Points[j], Phase: p, Sign: "+"}
			if j < 26 {
				row.Sign = string(first + rune(j))
			}
			if total > 0 {
				row.Share = row.NS / total
			}
			roofs.Rows = append(roofs.Rows, row)
		}
	}
	t := table.New("roofline", columns(roofs.Rows), table.Flat(len(roofs.Rows), func(i int) string {
		return string(roofs.Rows[i].Phase.Phase) + " " + roofs.Rows[i].Kernel
	}))
	t.From = roofs
	for i := range r.Phases {
		t.Title = append(t.Title, table.Title(
			table.Say(0, "%s, %s: %s", r.Phases[i].Phase, table.Plural(r.Phases[i].Steps, "timed step"),
				Ceilings(r, &r.Phases[i]))))
	}
	return t
}

func columns(rows []Row) []table.Column {
	of := table.ColumnsOf(rows)
	rate := func(perS func(*Row) float64) func(*Row) table.Cell {
		return func(r *Row) table.Cell {
			if v := perS(r); v > 0 {
				return table.Number(v/1e9, 0)
			}
			return table.Missing()
		}
	}
	return []table.Column{
		of.Text(80, "sign", "",
			"letter of the kernel in the chart, a capital letter in prefill; + for kernels after the 26th",
			func(r *Row) string { return r.Sign }),
		of.Text(80, "phase", "phase", "phase of the steps",
			func(r *Row) string { return string(r.Phase.Phase) }),
		of.Text(80, "kernel", "kernel", "kernel (specialized shader)",
			func(r *Row) string { return r.Kernel }),
		of.Int(110, "dispatches", "n", "dispatches",
			"number of timed dispatches; the first dispatch of each step is not counted",
			func(r *Row) int64 { return int64(r.Dispatches) }),
		of.Cell(80, table.Measured, "share", "%", "%",
			"the kernel's share of the time of all kernels of the phase; the overhead of timing is subtracted from "+
				"each dispatch, unlike in the table profile",
			func(r *Row) table.Cell { return table.Number(100*r.Share, 1) }),
		of.Cell(80, table.Modelled, "intensity", "~FLOP/byte", "FLOP/byte",
			"modelled: arithmetic intensity, the FLOPs of the kernel divided by the bytes that it moves",
			func(r *Row) table.Cell {
				v, ok := r.Intensity()
				if !ok {
					return table.Missing()
				}
				return table.Cell{Text: Intensity(v), Number: v, Has: true}
			}),
		of.Cell(80, table.Modelled, "gbs", "~GB/s", "GB/s",
			"modelled bytes divided by the isolated time; – if a dispatch is about as short as the floor (an empty timed pass)",
			rate(func(r *Row) float64 { return r.BytesPerS })),
		of.Cell(80, table.Modelled, "gflops", "~GFLOP/s", "GFLOP/s",
			"modelled FLOPs divided by the isolated time; – if a dispatch is about as short as the floor (an empty timed pass)",
			rate(func(r *Row) float64 { return r.FlopsPerS })),
		of.Text(80, "bound", "bound", "the ceiling that limits a kernel with this FLOP/byte, and the share of the ceiling that the kernel reaches",
			func(r *Row) string { return analyze.Bound{Kind: r.Bound, Share: r.Point.Share}.String() }),
	}
}

// Ceilings names the measured ceilings that apply to a phase.
func Ceilings(r *roofline.Roofline, p *roofline.Phase) string {
	var known []string
	if p.BytesPerS > 0 {
		known = append(known, table.Scaled(p.BytesPerS, "B/s"))
	}
	if r.FlopsPerS > 0 {
		known = append(known, table.Scaled(r.FlopsPerS, "FLOP/s"))
	}
	return "measured ceilings " + strings.Join(known, " and ")
}

// Intensity formats an arithmetic intensity.
func Intensity(v float64) string {
	switch {
	case v > 0 && v < 0.01:
		return fmt.Sprintf("%.1g", v)
	case v < 1:
		return fmt.Sprintf("%.2g", v)
	}
	return table.Digits(v)
}
