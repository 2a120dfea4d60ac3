package inspect

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/trace/table"
)

// DispatchTable is the dispatches of one step, folded into rows.
type DispatchTable struct {
	Index    *Index
	Step     int
	Base     *Base
	Fold     Fold
	Launches []Launch // every dispatch, in order of submission
	Rows     []DispatchRow
	Gone     []*Launch // of the base, that did not run in this step
	// ByOrder says that no dispatch is the base's by id, so they were compared in order. ClockMoved that the
	// canary kernel ran at another speed at the base, so times were not compared.
	ByOrder, ClockMoved bool
	table               *table.Table
}

// DispatchRow is one row: a dispatch, equal dispatches of several layers, or a heading over rows.
type DispatchRow struct {
	table.Row
	Label string
	// Units are the dispatches of each layer (of each member, where the fold is another), as indices into
	// Launches.
	Units [][]int
	// Time is that of a single dispatch with the spread of its repeats, or else over the units: the median
	// unit, the least and the largest.
	Time Spread
	IQR  float64 // of repeats; of several dispatches the median
	// SumNS is the sum of all dispatches of the row, Summed whether all were measured, Share their part of
	// all dispatches.
	SumNS   float64
	Summed  bool
	Share   float64
	Each    []float64 // time of each unit, in order; nil where one was not measured
	Equal   bool      // all dispatches of the row do the same work: kernel, grid, bytes, FLOPs
	Limit   Limit
	LostNS  float64 // of all dispatches of the row
	Floors  int     // rows in this heading that are at the floor
	Waste   Waste   // of all dispatches
	Delta   Delta   // TimeNS is of SumNS
	Outlier int     // unit that stands out, -1: none
}

// Count is the number of dispatches.
func (r *DispatchRow) Count() int {
	n := 0
	for _, u := range r.Units {
		n += len(u)
	}
	return n
}

// DispatchOptions say what to show.
type DispatchOptions struct {
	Fold Fold
	Base *Base // nil: compare with nothing
}

// Dispatches computes the dispatch table of a step, an index into Trace.Steps.
func (x *Index) Dispatches(step int, o DispatchOptions) *DispatchTable {
	t := &DispatchTable{Index: x, Step: step, Base: o.Base, Fold: o.Fold, Launches: x.launches(step)}
	var base []*Launch
	if o.Base != nil {
		base = t.compare()
	}
	f := folder{x: x, launches: t.Launches}
	total, all := 0.0, true
	for i := range t.Launches {
		total += t.Launches[i].Time.Median
		all = all && t.Launches[i].Time.Measured()
	}
	for _, p := range f.fold(o.Fold) {
		r := DispatchRow{Row: p.Row, Label: p.label, Units: p.units, Outlier: -1}
		t.measure(&r)
		if r.Summed && all && total > 0 {
			r.Share = r.SumNS / total
		}
		if o.Base != nil {
			t.delta(&r, base)
		}
		t.Rows = append(t.Rows, r)
	}
	// what headings have of their rows; the rows of a row that stands for them do not count twice
	for i := len(t.Rows) - 1; i >= 0; i-- {
		r := &t.Rows[i]
		if r.Parent < 0 || !t.Rows[r.Parent].heading() {
			continue
		}
		p := &t.Rows[r.Parent]
		p.LostNS += r.LostNS
		p.Floors += r.Floors
		if r.Limit.Kind == FloorLimit {
			p.Floors++
		}
	}
	return t
}

// heading says that a row's own numbers come from the rows in it.
func (r *DispatchRow) heading() bool { return r.Group || !r.Equal }

// compare sets every launch's Delta and returns the launch of the base for each.
func (t *DispatchTable) compare() []*Launch {
	b := t.Base
	now, then := &t.Index.Trace.Steps[t.Step], &b.Index.Trace.Steps[b.Step]
	t.ClockMoved = now.Canary > 0 && then.Canary > 0 && math.Abs(now.Canary/then.Canary-1) > clockMoved
	var of []*Launch
	of, t.Gone, t.ByOrder = join(t.Launches, b.Index.launches(b.Step))
	for i := range t.Launches {
		t.Launches[i].Delta = deltaOf(&t.Launches[i], of[i], t.resolutionNS(), !t.ClockMoved)
	}
	return of
}

func (t *DispatchTable) resolutionNS() float64 {
	r := resolutionNS(t.Index.Trace)
	if t.Base != nil {
		r = max(r, resolutionNS(t.Base.Index.Trace))
	}
	return r
}

// measure fills in what the row's own dispatches say.
func (t *DispatchTable) measure(r *DispatchRow) {
	first := &t.Launches[r.Units[0][0]]
	r.Summed, r.Equal = true, true
	var iqrs []float64
	for _, unit := range r.Units {
		sum := 0.0
		for _, i := range unit {
			l := &t.Launches[i]
			sum += l.Time.Median
			r.Summed = r.Summed && l.Time.Measured()
			p, q := l.Plan, first.Plan
			r.Equal = r.Equal && p.Kernel == q.Kernel && p.Workgroups == q.Workgroups && p.Bytes == q.Bytes &&
				p.FLOPs == q.FLOPs
			r.Waste = Waste{
				r.Waste.Shape + l.Waste.Shape, r.Waste.Fold + l.Waste.Fold,
				r.Waste.Tail + l.Waste.Tail,
			}
			iqrs = append(iqrs, l.Time.IQR)
		}
		r.Each = append(r.Each, sum)
		r.SumNS += sum
	}
	if !r.Summed {
		r.Each, r.SumNS = nil, 0
		return
	}
	r.IQR = spreadOf(iqrs).Median
	r.Time = spreadOf(slices.Clone(r.Each))
	if r.Count() == 1 {
		r.Time, r.Limit = first.Time, first.Limit
		r.LostNS = r.Limit.LostNS
		return
	}
	if r.Group {
		return
	}
	if r.Equal && t.Index.Trace.Steps[t.Step].Timing == "dispatch" {
		r.Limit = limitOf(&t.Index.Trace.Device, first.Plan, r.Time, false)
		r.LostNS = float64(len(r.Units)) * r.Limit.LostNS
	}
	if r.Equal {
		samples := make([][]int64, len(r.Units))
		for k, unit := range r.Units {
			samples[k] = t.Launches[unit[0]].Samples
		}
		r.Outlier = outlier(samples, t.resolutionNS())
	}
}

// delta compares the row's sum, repeat by repeat, with that of the base.
func (t *DispatchTable) delta(r *DispatchRow, base []*Launch) {
	var now, then []*Launch
	timed := true
	for _, unit := range r.Units {
		for _, i := range unit {
			l := &t.Launches[i]
			r.Delta.PlanDiff = r.Delta.PlanDiff.or(l.Delta.PlanDiff)
			timed = timed && l.Delta.Timed
			now, then = append(now, l), append(then, base[i])
		}
	}
	if !timed {
		return
	}
	a, b := sumOf(now), sumOf(then)
	r.Delta.Timed, r.Delta.TimeNS = true, a.Median-b.Median
	r.Delta.Equal = math.Abs(r.Delta.TimeNS) <= max(t.resolutionNS(), a.IQR, b.IQR)
}

// sumOf is the spread of the sum of several dispatches over the repeats that all of them have.
func sumOf(launches []*Launch) Spread {
	repeats := math.MaxInt
	for _, l := range launches {
		repeats = min(repeats, len(l.Samples))
	}
	sums := make([]int64, repeats)
	for _, l := range launches {
		for r := range sums {
			sums[r] += l.Samples[r]
		}
	}
	return spreadOf(sums)
}

// Row is the row of a key, or -1.
func (t *DispatchTable) Row(key string) int {
	return slices.IndexFunc(t.Rows, func(r DispatchRow) bool { return r.Key == key })
}

// Launch is a row's first dispatch.
func (t *DispatchTable) Launch(r *DispatchRow) *Launch { return &t.Launches[r.Units[0][0]] }

// Table gives the rows their columns.
func (t *DispatchTable) Table() *table.Table {
	if t.table != nil {
		return t.table
	}
	rows := make([]table.Row, len(t.Rows))
	for i := range rows {
		rows[i] = t.Rows[i].Row
	}
	t.table = table.New("dispatches", t.columns(), rows)
	t.table.Title, t.table.Notes = t.title(), t.notes()
	return t.table
}

// same is a text that all dispatches of a row agree on, else what differ makes of it.
func (t *DispatchTable) same(r *DispatchRow, text func(*Launch) string) (string, bool) {
	first := text(t.Launch(r))
	for _, u := range r.Units {
		for _, i := range u {
			if text(&t.Launches[i]) != first {
				return "", false
			}
		}
	}
	return first, true
}

func (t *DispatchTable) columns() []table.Column {
	quantum := t.Index.Trace.Clock.QuantumNS
	decimals := table.DecimalsOfUS(quantum)
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
			s, ok := t.same(r, func(l *Launch) string { return table.Grid(f(l)) })
			if r.Group || !ok || first == [3]int{} {
				return table.Cell{}
			}
			return table.Cell{Text: s, Number: float64(product(first)), Has: true}
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
	at := table.By(t.Rows)
	return []table.Column{
		{
			Name: "id", Title: "#", Unit: "id", Right: true, Width: 80,
			Doc: "dispatch id, of a fold the first",
			Of:  at(func(r *DispatchRow) table.Cell { return table.Count(int(t.Launch(r).ID)) }),
		},
		{
			Name: "last", Title: "…#", Unit: "id", Right: true, Width: 140,
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
			Name: "grid", Title: "grid", Unit: "workgroups", Right: true, Width: 80,
			Doc: "workgroup count",
			Of:  at(t.grid),
		},
		{
			Name: "needed", Title: "needed", Unit: "workgroups", Right: true, Width: 200,
			Doc: "workgroup count that the live shape needs",
			Of:  at(grid(func(l *Launch) [3]int { return l.Plan.NeededGrid })),
		},
		{
			Name: "max", Title: "max", Unit: "workgroups", Right: true, Width: 200,
			Doc: "workgroup count at the largest shape",
			Of:  at(grid(func(l *Launch) [3]int { return l.Dispatch.MaxWorkgroups })),
		},
		{
			Name: "wg", Title: "wg", Unit: "lanes", Right: true, Width: 140, Doc: "workgroup size",
			Of: at(grid(func(l *Launch) [3]int {
				if l.Kernel == nil {
					return [3]int{}
				}
				return l.Kernel.WorkgroupSize
			})),
		},
		{
			Name: "live", Title: "live", Width: 140, Doc: "live shape of the outputs, @ the position",
			Of: at(own(func(l *Launch) string { return t.Index.Live(t.Step, l) })),
		},
		{
			Name: "us", Title: "µs", Unit: "us", Right: true, Width: 80,
			Doc: "GPU time of a dispatch, median of its repeats; of a fold the median member",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.Group && len(r.Units) == 1 {
					return table.Cell{}
				}
				return microseconds(r.Time, quantum)
			}),
		},
		{
			Name: "layers", Title: "min–max", Right: true, Width: 140,
			Doc: "least and largest member of a fold",
			Of: at(func(r *DispatchRow) table.Cell {
				if len(r.Units) < 2 || !r.Time.Measured() {
					return table.Cell{}
				}
				return table.Text(fmt.Sprintf("%.*f–%.*f", decimals, r.Time.Min/1e3, decimals,
					r.Time.Max/1e3))
			}),
		},
		{
			Name: "iqr_us", Title: "IQR", Unit: "us", Right: true, Width: 200,
			Doc: "between the quartiles of the repeats",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.Group || r.IQR == 0 {
					return table.Cell{}
				}
				return table.Number(r.IQR/1e3, decimals)
			}),
		},
		{
			Name: "sum_us", Title: "Σµs", Unit: "us", Right: true, Width: 80,
			Doc: "GPU time of all dispatches of the row",
			Of: at(func(r *DispatchRow) table.Cell {
				if !r.Summed {
					return table.Cell{Text: table.Unmeasured}
				}
				return table.Number(r.SumNS/1e3, decimals)
			}),
		},
		{
			Name: "share", Title: "%", Unit: "%", Right: true, Width: 80, Doc: "part of Σgpu",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.Share == 0 {
					return table.Cell{}
				}
				return table.Number(100*r.Share, 1)
			}),
		},
		{
			Name: "gb_per_s", Title: "GB/s~", Unit: "GB/s", Right: true, Width: 140,
			Doc: "modelled bytes over the time without what timing adds",
			Of:  at(rate(func(l Limit) float64 { return l.BytesPerS })),
		},
		{
			Name: "gflop_per_s", Title: "GFLOP/s~", Unit: "GFLOP/s", Right: true, Width: 200,
			Doc: "modelled FLOPs over the same",
			Of:  at(rate(func(l Limit) float64 { return l.FlopsPerS })),
		},
		{
			Name: "limit", Title: "limit", Width: 80,
			Doc: "what keeps it from being faster: mem and fp n% of the measured ceiling, N wg fewer workgroups than fill the device, ≈floor like an empty timed pass, first of the step",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.Group {
					return table.Cell{}
				}
				return table.Text(r.Limit.String())
			}),
		},
		{
			Name: "lost_us", Title: "~lost", Unit: "us", Right: true, Width: 80,
			Doc: "modelled: time over what the device could do the row in",
			Of: at(func(r *DispatchRow) table.Cell {
				if r.LostNS == 0 {
					return table.Cell{}
				}
				return table.Number(r.LostNS/1e3, 0)
			}),
		},
		{
			Name: "delta", Title: "Δ", Width: 80,
			Doc: "against the base: + new, g grid, r route, p params, t µs of Σµs, = no difference in time",
			Of:  at(func(r *DispatchRow) table.Cell { return table.Text(r.Delta.text(decimals)) }),
		},
		{
			Name: "waste", Title: "waste", Width: 200,
			Doc: "exact: workgroups beyond the live shape / from folding the grid / idle lanes",
			Of:  at(func(r *DispatchRow) table.Cell { return table.Text(r.Waste.String()) }),
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
			Name: "gap_db", Title: "gap dB", Unit: "dB", Right: true, Width: 200,
			Doc: "signal to noise against the reference, the worst of the row",
			Of:  at(t.gap),
		},
		{
			Name: "level", Title: "level", Unit: "level", Right: true, Width: 200,
			Doc: "run of dispatches between barriers",
			Of: at(func(r *DispatchRow) table.Cell {
				if l := t.Launch(r); l.Level >= 0 && !r.Group {
					return table.Count(l.Level)
				}
				return table.Cell{}
			}),
		},
	}
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
			n := product(t.Launches[i].Plan.Workgroups)
			least, most = min(least, n), max(most, n)
		}
	}
	if s, ok := t.same(r, func(l *Launch) string { return table.Grid(l.Plan.Workgroups) }); ok {
		return table.Cell{Text: s, Number: float64(most), Has: true}
	}
	return table.Cell{Text: fmt.Sprintf("%d–%d", least, most), Number: float64(most), Has: true}
}

func (t *DispatchTable) gap(r *DispatchRow) table.Cell {
	worst := math.Inf(1)
	for _, u := range r.Units {
		for _, i := range u {
			if g := t.Launches[i].Gap; g != nil {
				worst = min(worst, g.SNRdB)
			}
		}
	}
	if math.IsInf(worst, 1) {
		return table.Cell{}
	}
	return table.Number(worst, 1)
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
