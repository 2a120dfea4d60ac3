package report

import (
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report/expertload"
	"gpuscope/trace/table"
)

// DetailLines describes a dispatch in words. Each line starts with a label.
func DetailLines(d *analyze.Detail) []string {
	var lines []string
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, analyze.Labelled(label, text))
		}
	}
	kernel := d.Plan.Kernel
	if d.Kernel != nil && d.Kernel.Constants != "" {
		kernel += " (" + d.Kernel.Constants + ")"
	}
	add("op", fmt.Sprintf("#%d %s · %s · operator %d", d.ID, d.Op.Kind, d.Name, d.Op.ID))
	grid := LaunchArithmetic(d.Plan)
	if grid == "" {
		grid = table.Grid(d.Plan.Workgroups)
	}
	add("grid", grid)
	sizes := "max " + table.Grid(d.Dispatch.MaxWorkgroups)
	own := d.Index.Trace.Engine == "" // profiles of other engines do not contain what is left out below
	if own {
		sizes = fmt.Sprintf("needed %s, %s", table.Grid(d.Plan.NeededGrid), sizes)
	}
	if d.Kernel != nil {
		sizes += ", wg " + table.Grid(d.Kernel.WorkgroupSize)
	}
	add("", sizes)
	add("next", NextChange(d.Index, d.Step, d.ID))
	add("route", RouteText(d.Plan))
	add("kernel", kernel)
	add("parts", strings.Join(d.Op.Parts, " + "))
	add("time", timeLine(d))
	if own {
		add("work", trafficLine(d))
		// The plan of a dispatch with experts has no waste: the waste depends on which experts the router
		// chooses.
		if d.Plan.Experts.Rows == 0 || !d.Waste.None() {
			add("waste", strings.TrimPrefix(WasteLine(d.Waste), "waste "))
		}
	}
	label := "router"
	for _, line := range expertload.Lines(d.Index, d.Step, d.Plan) {
		add(label, line)
		label = ""
	}
	if d.Level >= 0 {
		add("level", fmt.Sprintf("%d of %d", d.Level, d.Levels))
		for _, w := range barrier(d) {
			add("waits", w)
		}
	}
	add("params", detailParams(d))
	if g := d.Gap; g != nil {
		add("error", fmt.Sprintf("against %s: max abs error %.3g, MSE %.3g, SNR %s dB", g.Reference, g.MaxAbs,
			g.MSE, Decibels(float64(g.SNRdB))))
		if g.Tolerance != "" {
			add("", fmt.Sprintf("the largest error is %.3g %% of its tolerance (%s)", 100*float64(g.Share),
				g.Tolerance))
		}
		if g.Run != nil {
			add("", fmt.Sprintf("against the reference run: max abs error %.3g, MSE %.3g, SNR %s dB",
				g.Run.MaxAbs, g.Run.MSE, Decibels(float64(g.Run.SNRdB))))
		}
	}
	for _, v := range d.Inputs {
		add("in", text(&v, d.Index))
	}
	for _, v := range d.Outputs {
		add("out", text(&v, d.Index))
	}
	return lines
}

// detailParams formats the params and their changes.
func detailParams(d *analyze.Detail) string {
	said := paramsText(d.Params, false)
	switch {
	case said == "" || d.Baseline == nil:
		return said
	case trace.OwnKernel(d.Baseline.Kernel) != trace.OwnKernel(d.Plan.Kernel):
		return said + " (not compared: the baseline uses another kernel)"
	case paramsText(d.Params, true) == "":
		return said + " (same as the baseline)"
	}
	return said
}

// barrier describes what the barrier before the dispatch waits for.
func barrier(d *analyze.Detail) []string {
	switch {
	case !d.Begins:
		return []string{"nothing: no barrier before this dispatch"}
	case d.Level == 0:
		return []string{"nothing: this is the first dispatch of the step"}
	case !d.WaitsKnown:
		return []string{"unknown: waits were not recorded"}
	case len(d.Waits) == 0:
		return []string{"unknown: no wait of this barrier was recorded"}
	}
	var lines []string
	for _, w := range d.Waits {
		name, taken := d.Index.Trace.Graph.Values[w.Value].Name, ""
		if before := d.Index.Tenant(w); before != w.Value {
			taken = ", in memory shared with " + d.Index.Trace.Graph.Values[before].Name
		}
		lines = append(lines,
			fmt.Sprintf("%s (%s%s) of %s", name, waitWords[w.Kind], taken, d.Index.Name(w.For)))
	}
	return lines
}

// waitWords maps a kind of wait to the name of the data hazard that the barrier prevents.
var waitWords = map[string]string{
	"raw": "read after write", "war": "write after read", "waw": "write after write",
}

func timeLine(d *analyze.Detail) string {
	if !d.Time.Measured() {
		return "time not measured"
	}
	quantum := d.Index.Trace.Clock.QuantumNS
	decimals := table.DecimalsOfUS(quantum)
	line := microseconds(d.Time, quantum).Text + " µs"
	switch {
	case d.Time.N == 1:
		line += ", 1 sample"
	case !d.Time.Known():
		line += fmt.Sprintf(", median of %d (%s; %d samples are too few for an IQR)", d.Time.N,
			microsRange(d.Time, decimals), d.Time.N)
	default:
		line += fmt.Sprintf(", median of %d (%s, IQR %s)", d.Time.N, microsRange(d.Time, decimals),
			table.Micros(d.Time.IQR/1e3, decimals))
	}
	if timing := d.Index.Trace.Device.TimingNS(); timing > 0 && d.Limit.Kind > analyze.FirstBound {
		line += fmt.Sprintf(" = ~%.*f work + ~%.*f timing", decimals, max(0, d.Time.Median-timing)/1e3,
			decimals, timing/1e3)
	}
	switch d.Limit.Kind {
	case analyze.FirstBound:
		line += " · first dispatch of the step: its time includes work that was submitted earlier"
	case analyze.FloorBound:
		line += " · ≈floor: takes about as long as an empty timed pass"
	case analyze.FillBound:
		line += fmt.Sprintf(" · too few to fill this device: %s, but ~%d are needed",
			table.Plural(d.Limit.Workgroups, "workgroup"), d.Index.Trace.Device.Ceilings.FillWorkgroups)
	case analyze.MemoryBound:
		line += fmt.Sprintf(" · %s of the measured copy rate", d.Limit)
	case analyze.ComputeBound:
		line += fmt.Sprintf(" · %s of the measured FLOP rate", d.Limit)
	}
	return line
}

func trafficLine(d *analyze.Detail) string {
	work := "no arithmetic"
	if d.Plan.FLOPs > 0 {
		work = "~" + table.Scaled(float64(d.Plan.FLOPs), "FLOP")
	}
	line := fmt.Sprintf("~%s, %s", table.Bytes(d.Plan.Bytes), work)
	if d.Plan.Bytes > 0 && d.Plan.FLOPs > 0 {
		line += ", ~" + table.Scaled(float64(d.Plan.FLOPs)/float64(d.Plan.Bytes), "FLOP/byte")
	}
	if d.Limit.BytesPerS > 0 {
		line += fmt.Sprintf(" → ~%s, ~%s", table.Scaled(d.Limit.BytesPerS, "B/s"),
			table.Scaled(d.Limit.FlopsPerS, "FLOP/s"))
	}
	if d.Limit.ExcessNS > 0 {
		line += fmt.Sprintf(" · ~%.1f µs excess", d.Limit.ExcessNS/1e3)
	}
	return line
}

func text(v *analyze.ValueDetail, x *analyze.Index) string {
	s := fmt.Sprintf("%s %s %s", v.Name, shapeOf(x, v.Value, v.Live), analyze.TypeOf(v.Value))
	if v.Role != trace.RoleIntermediate {
		s += " " + string(v.Role)
	}
	return s
}
