package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff/settings"
	"gpuscope/trace/table"
)

// deltaPercent formats the difference in time relative to the baseline: "-12%".
func deltaPercent(d analyze.Delta) string {
	share := 100 * d.TimeNS / d.BaselineNS
	if math.Abs(share) < 9.95 {
		return fmt.Sprintf("%+.1f%%", share)
	}
	return fmt.Sprintf("%+.0f%%", share)
}

// Decimals returns how many decimals to show for a difference in µs. A difference has as many decimals as the
// larger of the two times that are subtracted.
func Decimals(d analyze.Delta, most int) int {
	return table.MicrosDecimals(max(d.BaselineNS, d.BaselineNS+d.TimeNS)/1e3, most)
}

// DifferenceCell returns the cell of a difference in ns, shown in µs. It shows "=" if the difference is not
// significant.
func DifferenceCell(ns float64, decimals int, equal bool) table.Cell {
	cell := table.Cell{Text: fmt.Sprintf("%+.*f", decimals, ns/1e3), Number: ns / 1e3, Has: true}
	if equal {
		cell.Text, cell.Mark = analyze.MarkNone, analyze.MarkNone
	}
	return cell
}

// DeltaCell returns the cell of the difference in time from baseline b, in µs, with at most `most`
// decimals. A difference that is not significant has the mark "=". If there are too few repeats to know
// whether it is significant, it has the mark "?".
func DeltaCell(b *analyze.Baseline, d analyze.Delta, most int) table.Cell {
	switch {
	case !d.Measured || !b.Shows(&d):
		return table.Cell{}
	case d.OneSided():
		return MarkedDifference(d.TimeNS, Decimals(d, most), "")
	case !d.Timed:
		return MarkedDifference(d.TimeNS, Decimals(d, most), analyze.MarkUnknown)
	case d.Equal:
		return MarkedDifference(d.TimeNS, Decimals(d, most), analyze.MarkNone)
	}
	return MarkedDifference(d.TimeNS, Decimals(d, most), "")
}

// MarkedDifference returns the cell of a difference in ns. The cell shows the mark, and then the difference
// in µs with its sign: "= -12.5".
func MarkedDifference(ns float64, decimals int, mark string) table.Cell {
	text := fmt.Sprintf("%+.*f", decimals, ns/1e3)
	if strings.Trim(text, "+-0.") == "" {
		text = text[1:] // no sign before a zero
	}
	return table.Cell{Text: strings.TrimSpace(mark + " " + text), Number: ns / 1e3, Has: true, Mark: mark}
}

// deltaCell returns the Δ cell of a row. It shows how the plans differ: "48→96" for grids, "r batch8→gemv"
// for routes, "k own→3fa21b07" for edited kernels, and "p" if only params differ. If the dispatches of the
// row differ in several ways, it shows one letter for each way. It also shows the difference in time. A
// change of the grid is shown in full even in a narrow column.
func (t *DispatchTable) deltaCell(r *analyze.DispatchRow) table.Cell {
	d := r.Delta
	plan, same := t.Same(r, func(l *analyze.Launch) string {
		return planDiffText(l.Delta.PlanDiff, l.Delta.From, l.Plan)
	})
	short := ""
	switch {
	case r.Missing != nil:
		return table.Text("-")
	case !same || r.Group && d.Regrids():
		plan = d.PlanDiff.String()
		short = plan
	case plan == "" && d.Params:
		plan, short = "p", "p"
	case d.Grid && !d.New:
		if l := t.Launch(r); d.Route {
			short = gridDiffText(l.Delta.From, l.Plan) + " r"
		} else {
			short = gridDiffText(l.Delta.From, l.Plan)
		}
	case d.Route && !d.New:
		short = "r"
	case d.Text:
		short = "k"
	}
	switch {
	case !d.Timed:
	case d.Equal:
		plan = strings.TrimSpace(plan + " =")
	case plan == "":
		plan, short = deltaPercent(d), deltaPercent(d)
	default:
		plan += " " + deltaPercent(d)
	}
	return table.Cell{Text: plan, Short: short}
}

// deltaColumns returns the columns that compare the rows with the baseline.
func (t *DispatchTable) deltaColumns() (delta table.Column, deltaCost, baseline []table.Column) {
	decimals := table.DecimalsOfUS(t.Index.Trace.Clock.QuantumNS)
	of, beside, plans := table.ColumnsOf(t.Grouped), 200, 80
	if t.Baseline.Chosen() {
		beside, plans = table.Kept, table.Kept
	}
	difference := of.Cell(beside, table.Measured, "delta_us", "Δµs", "us",
		"total minus baseline; = before a number means that the difference is not significant, ? means that there are too "+
			"few times to know",
		func(r *analyze.DispatchRow) table.Cell { return DeltaCell(t.Baseline, r.Delta, decimals) })
	cost := DeltaCostColumn(of, 200, t.Baseline.CostsBeside(t.Costs),
		func(r *analyze.DispatchRow) *analyze.RowCost { return r.Cost })
	delta = of.Words(plans, "delta", "Δ",
		"changes since the baseline: + new dispatch, - removed dispatch, 48→96 changed grid, r changed route, k edited "+
			"kernel source, p only changed params (a group shows only letters); % is the change of the total, = a change within the noise",
		t.deltaCell)
	return delta, []table.Column{cost, table.Marks(cost)}, []table.Column{
		of.Cell(beside, table.Measured, "base_us", "baseline", "us",
			"GPU time of the same dispatches in the baseline, per step; for a fused dispatch, the sum over the dispatches of its parts",
			t.baselineCell),
		difference, table.Marks(difference),
	}
}

// baselineCell returns the cell of a row's time at the baseline.
func (t *DispatchTable) baselineCell(r *analyze.DispatchRow) table.Cell {
	if !r.Delta.HasBaseline || !t.Baseline.Shows(&r.Delta) {
		return table.Cell{}
	}
	return table.Microseconds(r.Delta.BaselineNS/1e3, table.DecimalsOfUS(t.Index.Trace.Clock.QuantumNS))
}

// OtherTrace returns the title segment that warns of a baseline with a different model or device, or with a
// model that is unknown on one side. Differences from such a baseline do not show the effect of a change. The
// segment is empty if both traces have the same model and device.
func OtherTrace(x *analyze.Index, baseline *analyze.Index) table.Segment {
	var what, which []string
	now, then := x.Trace, baseline.Trace
	is, was := &now.Model, &then.Model
	name, perhaps := strings.TrimSpace(was.Name+" "+was.Quantization), ""
	switch sizes := settings.ModelSizes(is, was); {
	case was.Name == "" && is.Name != "":
		perhaps = "an unnamed model"
	case was.Name == "" && now != then && len(sizes) == 0:
		perhaps = "a possibly different model: neither trace names it"
	case was.Name != "" && is.Name == "":
		perhaps = "a possibly different model: " + name
	case was.Name == is.Name && (was.Quantization != is.Quantization || sizes != nil):
		if was.Quantization != "" && is.Quantization != "" && was.Quantization != is.Quantization {
			name += " instead of " + is.Quantization
		}
		for _, s := range sizes {
			name += ", " + SizeInstead(s)
		}
		fallthrough
	case was.Name != is.Name:
		what, which = append(what, "model"), append(which, name)
	}
	if then.Engine != now.Engine {
		what, which = append(what, "engine"), append(which, cmp.Or(then.Engine, then.Producer.Name))
	} else if is, was := &now.Device, &then.Device; was.Name != is.Name || was.Backend != is.Backend {
		what, which = append(what, "device"), append(which, was.Name)
	}
	if what == nil {
		return table.Segment{Text: perhaps}
	} else if perhaps != "" {
		which[0] += ", and " + perhaps // there is only the engine or the device
	}
	return table.Segment{
		Text:  "another " + strings.Join(what, " and ") + ": " + strings.Join(which, " on "),
		Short: "other " + strings.Join(what, ", "),
	}
}

// SizeInstead names a size in which two models differ: "4 layers instead of 16", "ffn 8,192 instead of
// 14,336".
func SizeInstead(s settings.ModelSize) string {
	if s.Name == "layers" || s.Name == "parameters" {
		return fmt.Sprintf("%s instead of %s",
			table.Plural(s.Now, strings.TrimSuffix(s.Name, "s")), table.Integer(s.Was))
	}
	return fmt.Sprintf("%s %s instead of %s",
		strings.ReplaceAll(s.Name, "_", " "), table.Integer(s.Now), table.Integer(s.Was))
}

// Delta returns the cell of a cost minus the cost of the same dispatches at the baseline. It shows "=" if the
// difference is not significant, and "?" if the error of either cost is not known. The cell is empty if the
// baseline has no such cost.
func Delta(c *analyze.BaselineCosts, now *analyze.RowCost) table.Cell {
	if c == nil || now == nil {
		return table.Cell{}
	}
	then := c.Of(now.Dispatches)
	if then == nil || c.Baseline.Index != c.X && !c.Same(now.Dispatches) {
		return table.Cell{}
	}
	by := float64(now.NS - then.NS)
	cell := DifferenceCell(by, 1,
		math.Abs(by) <= max(c.Baseline.ResolutionNS(c.X), 2*now.ErrorNS, 2*then.ErrorNS))
	if !now.ErrorKnown || !then.ErrorKnown {
		cell.Text, cell.Mark = analyze.MarkUnknown, analyze.MarkUnknown
	}
	return cell
}

// DeltaCostColumn returns the column of cost differences for a table whose rows have costs. The last argument
// is a function that returns the cost of a row, or nil if it was not measured.
func DeltaCostColumn[R any](of table.Columns[R], width int, c *analyze.BaselineCosts,
	cost func(*R) *analyze.RowCost,
) table.Column {
	return of.Cell(width, table.Measured, "delta_cost_us", "Δcost", "us",
		"cost minus the cost in the baseline, if both were measured; = means that the difference is not significant, "+
			"? means that the error of one of the costs is not known",
		func(r *R) table.Cell { return Delta(c, cost(r)) })
}
