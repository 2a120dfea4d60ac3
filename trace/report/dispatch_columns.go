package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report/expertload"
	"gpuscope/trace/table"
)

// ran returns a builder of columns whose cells are empty in rows of dispatches that ran only in the baseline.
func (t *DispatchTable) ran() table.Columns[analyze.DispatchRow] {
	return table.ColumnsOf(t.Grouped).Where(func(r *analyze.DispatchRow) bool { return !r.Gone() })
}

// columns returns all columns of the table. Columns for narrow screens come first.
func (t *DispatchTable) columns() []table.Column {
	cost, lost := t.costColumns()
	over, idle := t.wasteColumns()
	delta, deltaCost, baseline := t.deltaColumns()
	quantum := t.Index.Trace.Clock.QuantumNS
	decimals := table.DecimalsOfUS(quantum)
	_, one := t.Selection.One()
	// own returns a function that computes cells. A cell holds the text that f returns for the dispatches of
	// the row. Headings have an empty cell.
	own := func(f func(*analyze.Launch) string) func(*analyze.DispatchRow) table.Cell {
		return func(r *analyze.DispatchRow) table.Cell {
			if r.Group {
				return table.Cell{}
			}
			s, _ := t.Same(r, f)
			return table.Text(s)
		}
	}
	// grid returns a function that computes cells with a grid or a workgroup size. A cell is empty unless f
	// returns the same for all dispatches of the row. The number of a cell is the product of the three
	// dimensions.
	grid := func(f func(*analyze.Launch) [3]int) func(*analyze.DispatchRow) table.Cell {
		return func(r *analyze.DispatchRow) table.Cell {
			if r.Group || r.Joint {
				return table.Cell{}
			}
			first := f(t.Launch(r))
			if first == [3]int{} || !t.All(r, func(l *analyze.Launch) bool { return f(l) == first }) {
				return table.Cell{}
			}
			return table.Cell{Text: table.Grid(first), Number: float64(analyze.Product(first)), Has: true}
		}
	}
	rate := func(perS func(analyze.Bound) float64) func(*analyze.DispatchRow) table.Cell {
		return func(r *analyze.DispatchRow) table.Cell {
			if v := perS(r.Bound); v > 0 {
				return table.Number(v/1e9, 0)
			}
			return table.Cell{}
		}
	}
	of, ran := table.ColumnsOf(t.Grouped), t.ran()
	each := 80
	if t.AnyCost { // a cost covers all dispatches of a row, so show the time of all dispatches next to it
		each = 200
	}
	kernel, serves := 80, table.Unseen
	if t.Grouping == analyze.GroupKernel { // the rows are kernels, so show the operators that use them
		kernel, serves = table.Unseen, 80
	}
	judged := 80
	if t.AnyCost {
		judged = 200
	}
	if t.Baseline.Chosen() { // make room for the times of the baseline
		each, judged = max(each, 110), max(judged, 110)
	}
	return slices.Concat([]table.Column{
		of.Int(80, "id", "#", "id", "id of the dispatch; for a group, of its first dispatch",
			func(r *analyze.DispatchRow) int64 { return int64(t.Launch(r).ID) }),
		of.Words(80, "op", "op", "operator, followed by the name of the dispatch if the operator has several dispatches",
			func(r *analyze.DispatchRow) table.Cell { return RowName(r.Label) }).AsTree(),
		of.Words(kernel, "kernel", "kernel", "kernel (specialized shader)", t.kernel),
		of.Words(serves, "serves", "serves", "number of dispatches that use the kernel, and the operators of these dispatches",
			t.serves),
		of.Cell(80, table.Exact, "grid", "grid", "workgroups",
			"number of workgroups launched; if the dispatches differ, the largest grid",
			t.grid),
		ran.Cell(table.Unseen, table.Exact, "grid_min", "smallest grid", "workgroups",
			"smallest grid, if the grids of the dispatches or steps differ; the screen shows a range such as 136–144",
			func(r *analyze.DispatchRow) table.Cell {
				if least, most := t.Grids(r); !r.Group && !r.Joint && least < most {
					return table.Count(least)
				}
				return table.Cell{}
			}),
		over,
		ran.Cell(each, table.Measured, "us", "µs", "us",
			"GPU time of one dispatch: median over its repeats, over the steps or over equal layers",
			func(r *analyze.DispatchRow) table.Cell {
				if r.Group || r.Joint {
					return table.Cell{}
				}
				return microseconds(r.Time, quantum)
			}),
		ran.Cell(80, table.Exact, "n", "n", "steps",
			"number of selected steps in which this dispatch ran; the screen shows this number only if the dispatch did not run in all of them",
			func(r *analyze.DispatchRow) table.Cell {
				if r.Group || one ||
					!t.All(r, func(l *analyze.Launch) bool { return l.Runs == t.Launch(r).Runs }) {
					return table.Cell{}
				}
				n := table.Count(t.Launch(r).Runs)
				if t.Launch(r).Runs == len(t.Selection.Steps) {
					n.Text = ""
				}
				return n
			}),
		ran.Cell(80, table.Measured, "sum_us", "total", "us", "GPU time per step of all dispatches in this row, in µs",
			func(r *analyze.DispatchRow) table.Cell {
				if !r.Summed {
					return table.Missing()
				}
				return table.Microseconds(r.SumNS/1e3, decimals)
			}),
		ShareColumn(ran, t.CostOrder, func(r *analyze.DispatchRow) (*analyze.RowCost, float64) {
			return r.Cost, r.Share
		}),
	}, cost, []table.Column{
		ran.Words(judged, "limit", "bound",
			"modelled: what limits the dispatch. mem n% or fp n%: memory or arithmetic, at n% of the measured ceiling; N wg: "+
				"N workgroups are too few to fill the device; ≈floor: takes about as long as an empty timed pass; "+
				"first: first dispatch of the step, whose time includes waiting for earlier work",
			func(r *analyze.DispatchRow) table.Cell {
				if r.Group {
					return table.Cell{}
				}
				return table.Text(r.Bound.String())
			}),
		lost,
		delta,
		ran.Cell(110, table.Measured, "gap_db", "SNR dB", "dB",
			"signal-to-noise ratio against the float64 reference; the lowest of the row's dispatches",
			t.gap),
	}, deltaCost, []table.Column{
		ran.Words(140, "layers", "min–max",
			"times of the fastest and slowest member of a group; for a single dispatch, of the fastest and slowest step",
			func(r *analyze.DispatchRow) table.Cell {
				if len(r.Units) < 2 && (one || r.Group) || !r.Time.Measured() {
					return table.Cell{}
				}
				return table.Text(microsRange(r.Time, decimals))
			}).AlignRight(),
		ran.Words(200, "spark", t.Each(),
			"time of each member of a group as a bar; then an outlier's distance from the group's median",
			func(r *analyze.DispatchRow) table.Cell {
				return table.Text(strings.TrimSpace(sparkline(r.Each) + " " + t.standsOut(r)))
			}),
		ran.Cell(200, table.Measured, "iqr_us", "IQR", "us",
			"interquartile range of the times over the repeats or the steps; needs at least 4 times",
			func(r *analyze.DispatchRow) table.Cell {
				if r.Group || r.IQR == 0 {
					return table.Cell{}
				}
				return table.Microseconds(r.IQR/1e3, decimals)
			}),
		ran.Cell(140, table.Modelled, "gb_per_s", "GB/s~", "GB/s",
			"modelled bytes per second, with timing overhead subtracted",
			rate(func(l analyze.Bound) float64 { return l.BytesPerS })),
		ran.Cell(200, table.Modelled, "gflop_per_s", "GFLOP/s~", "GFLOP/s",
			"modelled FLOPs per second, with timing overhead subtracted",
			rate(func(l analyze.Bound) float64 { return l.FlopsPerS })),
	}, []table.Column{
		ran.Cell(200, table.Exact, "needed", "needed", "workgroups", "number of workgroups that the shape of this step needs",
			grid(func(l *analyze.Launch) [3]int {
				if l.Varies || t.Index.Trace.Engine != "" { // not in a profile of another engine
					return [3]int{}
				}
				return l.Plan.NeededGrid
			})),
		ran.Cell(200, table.Exact, "max", "max", "workgroups", "number of workgroups at the largest shape",
			grid(func(l *analyze.Launch) [3]int { return l.Dispatch.MaxWorkgroups })),
		ran.Cell(140, table.Exact, "wg", "wg", "lanes", "workgroup size",
			grid(func(l *analyze.Launch) [3]int {
				if l.Kernel == nil {
					return [3]int{}
				}
				return l.Kernel.WorkgroupSize
			})),
	}, idle, []table.Column{
		ran.Words(140, "live", "live",
			"shape of the outputs in this step, followed by @ and the position; for several steps: shape and position of the last",
			own(func(l *analyze.Launch) string { return Live(t.Index, l) })),
		ran.Words(200, "reason", "route", "route, and why it was chosen",
			own(func(l *analyze.Launch) string {
				return strings.TrimSuffix(strings.TrimPrefix(l.Plan.Route+": "+l.Plan.Reason, ": "), ": ")
			})),
		ran.Cell(200, table.Exact, "level", "level", "level",
			"number of the level; dispatches between two barriers have the same level",
			func(r *analyze.DispatchRow) table.Cell {
				if l := t.Launch(r); l.Level >= 0 && !r.Group {
					return table.Count(l.Level)
				}
				return table.Cell{}
			}),
		ran.Words(140, "experts", "experts",
			"tokens of each expert as a bar, relative to the busiest expert; for several layers, the largest ratio of the "+
				"busiest expert to the mean, and its layer",
			t.expertCell),
		of.Cell(140, table.Exact, "last", "…#", "id", "id of the last dispatch of a group", t.last),
		ran.Words(table.Unseen, "name", "name", "full name of the dispatch, for filters and scripts",
			func(r *analyze.DispatchRow) table.Cell {
				if r.Count() > 1 {
					return table.Cell{}
				}
				return table.Text(t.Launch(r).Name())
			}),
	}, baseline)
}

// total returns the cell of a column in the line with the sums of all dispatches.
func (t *DispatchTable) total(column string) table.Cell {
	switch column {
	case "op":
		all := t.Sum.Label + ": " + table.Plural(t.Sum.Count(), "dispatch")
		return table.Cell{Text: all, Short: t.Sum.Label}
	case "sum_us":
		if t.Sum.Summed {
			return table.Microseconds(t.Sum.SumNS/1e3, table.DecimalsOfUS(t.Index.Trace.Clock.QuantumNS))
		}
	case "base_us":
		return t.baselineCell(t.Sum)
	case "delta_us":
		return DeltaCell(t.Baseline, t.Sum.Delta, table.DecimalsOfUS(t.Index.Trace.Clock.QuantumNS))
	case "delta":
		return t.deltaCell(t.Sum)
	}
	return table.Cell{}
}

func (t *DispatchTable) last(r *analyze.DispatchRow) table.Cell {
	switch {
	case r.Count() == 1:
		return table.Cell{}
	case r.Gone():
		return table.Count(int(r.Missing[len(r.Missing)-1].ID))
	}
	unit := r.Units[len(r.Units)-1]
	return table.Count(int(t.Launches[unit[len(unit)-1]].ID))
}

func (t *DispatchTable) kernel(r *analyze.DispatchRow) table.Cell {
	switch {
	case r.Gone() && r.Group:
		return table.Text(table.Plural(len(r.Missing), "dispatch"))
	case r.Gone() && len(r.Missing) > 1:
		return table.Text(fmt.Sprintf("%s ×%d", r.Missing[0].Plan.Kernel, len(r.Missing)))
	case r.Gone():
		return table.Text(r.Missing[0].Plan.Kernel)
	}
	if !r.Group && !r.Joint {
		if s, ok := t.Same(r, func(l *analyze.Launch) string { return l.Plan.Kernel }); ok {
			// The heading already shows the number of layers.
			inLayers := r.Parent >= 0 && len(t.Grouped[r.Parent].Units) == len(r.Units)
			if len(r.Units) > 1 && !inLayers {
				s = fmt.Sprintf("%s ×%d", s, len(r.Units))
			}
			return table.Text(s)
		}
		return table.Text(table.Plural(r.Count(), "dispatch"))
	}
	s := fmt.Sprint(len(r.Units[0]))
	switch {
	case r.Joint && len(r.Units) > 1:
		return table.Text(fmt.Sprintf("%s%s, ×%d", s, analyze.AtOnce, len(r.Units)))
	case r.Joint:
		return table.Text(s + analyze.AtOnce)
	case len(r.Units) > 1 && r.Depth == 0:
		return table.Text(fmt.Sprintf("%s each, ×%d", s, len(r.Units)))
	case r.Depth == 0:
		s = table.Plural(len(r.Units[0]), "dispatch")
	}
	if r.Floors > 0 {
		s = fmt.Sprintf("%s, %d ≈floor", s, r.Floors)
	}
	return table.Text(s)
}

// serves returns the cell that shows what uses a kernel: the number of dispatches, and their operators in
// order.
func (t *DispatchTable) serves(r *analyze.DispatchRow) table.Cell {
	switch {
	case t.Grouping != analyze.GroupKernel:
		return table.Cell{}
	case r.Gone():
		return t.kernel(r)
	case r.Parent >= 0:
		return table.Cell{}
	}
	var names []string
	for _, unit := range r.Units {
		l := &t.Launches[unit[0]]
		if name := analyze.Label(l.Op, l.Dispatch); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	text := strings.Join(names, ", ")
	if n := r.Count(); n > 1 {
		text = fmt.Sprintf("×%d %s", n, text)
	}
	return table.Text(text)
}

func (t *DispatchTable) grid(r *analyze.DispatchRow) table.Cell {
	switch {
	case r.Group, r.Joint:
		return table.Cell{}
	case r.Gone():
		return gridCell(r.Missing[0].Most)
	}
	least, most := t.Grids(r)
	first := t.Launch(r).Most
	if most == 0 {
		return gridCell(first)
	}
	if t.All(r, func(l *analyze.Launch) bool { return l.Least == first && l.Most == first }) {
		return table.Cell{Text: table.Grid(first), Number: float64(most), Has: true}
	}
	return table.Cell{Text: fmt.Sprintf("%d–%d", least, most), Number: float64(most), Has: true}
}

// gridCell returns a cell with a grid. It is empty for the grid of a profile that does not contain grids.
func gridCell(g [3]int) table.Cell {
	if g == [3]int{} {
		return table.Cell{}
	}
	return table.Cell{Text: table.Grid(g), Number: float64(analyze.Product(g)), Has: true}
}

func (t *DispatchTable) gap(r *analyze.DispatchRow) table.Cell {
	var worst *trace.NumericError
	for _, u := range r.Units {
		for _, i := range u {
			worst = analyze.Farther(worst, t.Launches[i].Gap)
		}
	}
	if worst == nil {
		return table.Cell{}
	}
	return table.Cell{Text: Decibels(float64(worst.SNRdB)), Number: float64(worst.SNRdB), Has: true}
}

// Decibels formats a signal-to-noise ratio. It returns ∞ if there is no error.
func Decibels(db float64) string {
	if math.IsInf(db, 1) {
		return "∞"
	}
	return fmt.Sprintf("%.1f", db)
}

// standsOut names the outlier among the members of a row and shows its deviation: "L15 +14 %". It returns
// "" if there is no outlier.
func (t *DispatchTable) standsOut(r *analyze.DispatchRow) string {
	if r.Outlier < 0 || r.Time.Median <= 0 {
		return ""
	}
	l := &t.Launches[r.Units[r.Outlier][0]]
	name := t.Index.Name(l.ID)
	if l.Op.Layer != nil {
		name = analyze.LayerName(*l.Op.Layer)
		if t.Grouping != analyze.GroupLayer { // a heading may contain several operators of a layer
			name += " " + analyze.Label(l.Op, l.Dispatch)
		}
	}
	by := 100 * (l.Time.Median/r.Time.Median - 1)
	if math.Abs(by) < 1 {
		return fmt.Sprintf("%s %+.1f %%", name, by)
	}
	return fmt.Sprintf("%s %+.0f %%", name, by)
}

// sparkScale is the relative deviation from the median that the lowest and the highest bar of a sparkline
// represent. All sparklines have the same scale, so that 3 % does not look like 300 %.
const sparkScale = 0.2

// mostBars is the maximum number of bars in a sparkline, because no column is wider. If there are more
// values, one bar represents several values.
const mostBars = 128

// sparkline draws values relative to their median. A bar for several values shows the one farthest from the
// median. It returns "" for fewer than three values.
func sparkline(v []float64) string {
	if len(v) < 3 {
		return ""
	}
	median := analyze.StatsOf(slices.Clone(v)).Median
	bars := []rune("▁▂▃▄▅▆▇█")
	var out []rune
	for several := range slices.Chunk(v, (len(v)+mostBars-1)/mostBars) {
		x := slices.MaxFunc(several, func(a, b float64) int {
			return cmp.Compare(math.Abs(a-median), math.Abs(b-median))
		})
		at := 0.5
		if median > 0 {
			at = (x/median - 1 + sparkScale) / (2 * sparkScale)
		}
		out = append(out, bars[min(len(bars)-1, max(0, int(at*float64(len(bars)))))])
	}
	return string(out)
}

// expertCell returns the load of the experts of a row: a strip with a bar for each expert if the row has one
// dispatch, otherwise the layer with the largest imbalance.
func (t *DispatchTable) expertCell(r *analyze.DispatchRow) table.Cell {
	var first, worst expertload.Load
	n := 0
	for _, unit := range r.Units {
		for _, i := range unit {
			load, ok := t.loads.Of(t.Launches[i].Plan)
			if !ok || load.Modelled {
				return table.Cell{}
			}
			if n == 0 {
				first = load
			}
			if n++; worst.Router == nil || load.Largest > worst.Largest {
				worst = load
			}
		}
	}
	switch {
	case n == 0 || r.Group:
		return table.Cell{}
	case n == 1:
		return table.Text(expertload.Strip(first.Tokens, 32))
	case worst.Op.Layer != nil:
		return table.Text(fmt.Sprintf("max/mean ≤ %.1f (%s)", worst.Largest,
			analyze.LayerName(*worst.Op.Layer)))
	}
	return table.Text(fmt.Sprintf("max/mean ≤ %.1f", worst.Largest))
}
