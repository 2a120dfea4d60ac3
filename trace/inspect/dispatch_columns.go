package inspect

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

func (t *DispatchTable) columns() []table.Column {
	quantum := t.Index.Trace.Clock.QuantumNS
	decimals := table.DecimalsOfUS(quantum)
	_, one := t.Scope.One()
	// own is a text of the plan, for rows that are no headings.
	own := func(f func(*Launch) string) func(*DispatchRow) table.Cell {
		return func(r *DispatchRow) table.Cell {
			if r.Group {
				return table.Cell{}
			}
			s, _ := t.same(r, f)
			return table.Text(s)
		}
	}
	// grid is a workgroup count, or size, that all dispatches of the row agree on; as a number it is the
	// product.
	grid := func(f func(*Launch) [3]int) func(*DispatchRow) table.Cell {
		return func(r *DispatchRow) table.Cell {
			first := f(t.Launch(r))
			if r.Group || first == [3]int{} || !t.all(r, func(l *Launch) bool { return f(l) == first }) {
				return table.Cell{}
			}
			return table.Cell{Text: table.Grid(first), Number: float64(product(first)), Has: true}
		}
	}
	rate := func(perS func(Limit) float64) func(*DispatchRow) table.Cell {
		return func(r *DispatchRow) table.Cell {
			if v := perS(r.Limit); v > 0 {
				return table.Number(v/1e9, 0)
			}
			return table.Cell{}
		}
	}
	at := table.By(t.Folded)
	columns := []table.Column{
		{
			Name: "id", Title: "#", Unit: "id", Is: table.Exact, Right: true, Width: 80,
			Doc: "dispatch id, of a fold the first",
			Of:  at(func(r *DispatchRow) table.Cell { return table.Count(int(t.Launch(r).ID)) }),
		},
		{
			Name: "last", Title: "…#", Unit: "id", Is: table.Exact, Right: true, Width: 140,
			Doc: "last dispatch id of a fold",
			Of:  at(t.last),
		},
		{
			Name: "op", Title: "op", Width: 80, Tree: true, Doc: "operator and dispatch slot",
			Of: at(func(r *DispatchRow) table.Cell { return table.Text(r.Label) }),
		},
		{
			Name: "kernel", Title: "kernel", Width: 80, Doc: "specialised shader",
			Of: at(t.kernel),
		},
		{
			Name: "grid", Title: "grid", Unit: "workgroups", Is: table.Exact, Right: true, Width: 80,
			Doc: "workgroup count",
			Of:  at(t.grid),
		},
		{
			Name: "needed", Title: "needed", Unit: "workgroups", Is: table.Exact, Right: true, Width: 200,
			Doc: "workgroup count that the live shape needs",
			Of: at(grid(func(l *Launch) [3]int {
				if l.Varies {
					return [3]int{}
				}
				return l.Plan.NeededGrid
			})),
		},
		{
			Name: "max", Title: "max", Unit: "workgroups", Is: table.Exact, Right: true, Width: 200,
			Doc: "workgroup count at the largest shape",
			Of:  at(grid(func(l *Launch) [3]int { return l.Dispatch.MaxWorkgroups })),
		},
		{
			Name: "wg", Title: "wg", Unit: "lanes", Is: table.Exact, Right: true, Width: 140, Doc: "workgroup size",
			Of: at(grid(func(l *Launch) [3]int {
				if l.Kernel == nil {
					return [3]int{}
				}
				return l.Kernel.WorkgroupSize
			})),
		},
		{
			Name: "live", Title: "live", Width: 140,
			Doc: "live shape of the outputs, @ the position; of several steps in the last",
			Of:  at(own(func(l *Launch) string { return t.Index.Live(l) })),
		},
		{
			Name: "us", Title: "µs", Unit: "us", Is: table.Measured, Right: true, Width: 80,
			Doc: "GPU time of a dispatch, median of its repeats or of the steps; of a fold the median member",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.Group && len(r.Units) == 1 {
					return table.Cell{}
				}
				return microseconds(r.Time, quantum)
			}),
		},
		{
			Name: "n", Title: "n", Unit: "steps", Is: table.Exact, Right: true, Width: 80,
			Doc: "steps of a scope that the dispatch ran in",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.Group || one || !t.all(r, func(l *Launch) bool { return l.Runs == t.Launch(r).Runs }) {
					return table.Cell{}
				}
				return table.Count(t.Launch(r).Runs)
			}),
		},
		{
			Name: "layers", Title: "min–max", Right: true, Width: 140,
			Doc: "least and largest member of a fold; of a single dispatch least and largest step",
			Of: at(func(r *DispatchRow) table.Cell {
				if len(r.Units) < 2 && (one || r.Group) || !r.Time.Measured() {
					return table.Cell{}
				}
				return table.Text(fmt.Sprintf("%.*f–%.*f", decimals, r.Time.Min/1e3, decimals,
					r.Time.Max/1e3))
			}),
		},
		{
			Name: "iqr_us", Title: "IQR", Unit: "us", Is: table.Measured, Right: true, Width: 200,
			Doc: "between the quartiles of the repeats, or of the steps; from 4 of them on",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.Group || r.IQR == 0 {
					return table.Cell{}
				}
				return table.Number(r.IQR/1e3, decimals)
			}),
		},
		{
			Name: "sum_us", Title: "Σµs", Unit: "us", Is: table.Measured, Right: true, Width: 80,
			Doc: "GPU time of all dispatches of the row in a step",
			Of: at(func(r *DispatchRow) table.Cell {
				if !r.Summed {
					return table.Missing()
				}
				return table.Number(r.SumNS/1e3, decimals)
			}),
		},
		{
			Name: "share", Title: "%", Unit: "%", Is: table.Measured, Right: true, Width: 80,
			Doc: "part of the step by cost where costs were measured, else of Σgpu",
			Of:  at(t.share),
		},
		{
			Name: "gb_per_s", Title: "GB/s~", Unit: "GB/s", Is: table.Modelled, Right: true, Width: 140,
			Doc: "modelled bytes over the time without what timing adds",
			Of:  at(rate(func(l Limit) float64 { return l.BytesPerS })),
		},
		{
			Name: "gflop_per_s", Title: "GFLOP/s~", Unit: "GFLOP/s", Is: table.Modelled, Right: true,
			Width: 200,
			Doc:   "modelled FLOPs over the same",
			Of:    at(rate(func(l Limit) float64 { return l.FlopsPerS })),
		},
		{
			Name: "limit", Title: "limit", Width: 80,
			Doc: "modelled: what keeps it from being faster: mem and fp n% of the measured ceiling, N wg fewer " +
				"workgroups than fill the device, ≈floor like an empty timed pass, first of the step",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.Group {
					return table.Cell{}
				}
				return table.Text(r.Limit.String())
			}),
		},
	}
	columns = append(columns, t.costColumns()...)
	return append(columns, []table.Column{
		{
			Name: "delta", Title: "Δ", Width: 80,
			Doc: "against the base: + new, g grid, r route, p params, t µs of Σµs, = no difference in time",
			Of:  at(func(r *DispatchRow) table.Cell { return table.Text(r.Delta.text(decimals)) }),
		},
		{
			Name: "waste", Title: "waste", Width: 200,
			Doc: "exact: workgroups beyond the live shape / from folding the grid / idle lanes",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.Varies {
					return table.Cell{}
				}
				return table.Text(r.Waste.String())
			}),
		},
		{
			Name: "spark", Title: "layers", Width: 200, Doc: "time of each member of a fold",
			Of: at(func(r *DispatchRow) table.Cell { return table.Text(sparkline(r.Each)) }),
		},
		{
			Name: "reason", Title: "route", Width: 200, Doc: "route and why it was chosen",
			Of: at(own(func(l *Launch) string {
				return strings.TrimSuffix(strings.TrimPrefix(l.Plan.Route+": "+l.Plan.Reason, ": "), ": ")
			})),
		},
		{
			Name: "gap_db", Title: "gap dB", Unit: "dB", Is: table.Measured, Right: true, Width: 200,
			Doc: "signal to noise against the reference, the worst of the row",
			Of:  at(t.gap),
		},
		{
			Name: "level", Title: "level", Unit: "level", Is: table.Exact, Right: true, Width: 200,
			Doc: "run of dispatches between barriers",
			Of: at(func(r *DispatchRow) table.Cell {
				if l := t.Launch(r); l.Level >= 0 && !r.Group {
					return table.Count(l.Level)
				}
				return table.Cell{}
			}),
		},
		{
			Name: "name", Title: "name", Width: table.Unseen, Doc: "whole name of a dispatch, for filters and programs",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.Count() > 1 {
					return table.Cell{}
				}
				return table.Text(t.Index.Name(t.Launch(r).ID))
			}),
		},
	}...)
}

func (t *DispatchTable) last(r *DispatchRow) table.Cell {
	if r.Count() == 1 {
		return table.Cell{}
	}
	unit := r.Units[len(r.Units)-1]
	return table.Count(int(t.Launches[unit[len(unit)-1]].ID))
}

func (t *DispatchTable) kernel(r *DispatchRow) table.Cell {
	if !r.Group {
		if s, ok := t.same(r, func(l *Launch) string { return l.Plan.Kernel }); ok {
			if len(r.Units) > 1 {
				s = fmt.Sprintf("%s ×%d", s, len(r.Units))
			}
			return table.Text(s)
		}
		return table.Text(fmt.Sprintf("%d dispatches", r.Count()))
	}
	s := fmt.Sprint(len(r.Units[0]))
	switch {
	case len(r.Units) > 1 && r.Depth == 0:
		return table.Text(fmt.Sprintf("%s each, ×%d", s, len(r.Units)))
	case r.Depth == 0:
		s += " dispatches"
	}
	if r.Floors > 0 {
		s = fmt.Sprintf("%s, %d ≈floor", s, r.Floors)
	}
	return table.Text(s)
}

func (t *DispatchTable) grid(r *DispatchRow) table.Cell {
	if r.Group {
		return table.Cell{}
	}
	least, most := int64(math.MaxInt64), int64(0)
	for _, u := range r.Units {
		for _, i := range u {
			least = min(least, product(t.Launches[i].Least))
			most = max(most, product(t.Launches[i].Most))
		}
	}
	first := t.Launch(r).Most
	if t.all(r, func(l *Launch) bool { return l.Least == first && l.Most == first }) {
		return table.Cell{Text: table.Grid(first), Number: float64(most), Has: true}
	}
	return table.Cell{Text: fmt.Sprintf("%d–%d", least, most), Number: float64(most), Has: true}
}

func (t *DispatchTable) gap(r *DispatchRow) table.Cell {
	var worst *trace.NumericGap
	for _, u := range r.Units {
		for _, i := range u {
			worst = worse(worst, t.Launches[i].Gap)
		}
	}
	if worst == nil {
		return table.Cell{}
	}
	return table.Cell{Text: decibels(worst.SNRdB), Number: worst.SNRdB, Has: true}
}

// decibels writes a signal-to-noise ratio: ∞ where there is no difference at all.
func decibels(db float64) string {
	if math.IsInf(db, 1) {
		return "∞"
	}
	return fmt.Sprintf("%.1f", db)
}

// sparkline draws values from least to largest; nothing where there are fewer than three.
func sparkline(v []float64) string {
	if len(v) < 3 {
		return ""
	}
	lo, hi := slices.Min(v), slices.Max(v)
	bars := []rune("▁▂▃▄▅▆▇█")
	out := make([]rune, len(v))
	for i, x := range v {
		k := 0
		if hi > lo {
			k = int((x - lo) / (hi - lo) * float64(len(bars)-1))
		}
		out[i] = bars[k]
	}
	return string(out)
}
