package inspect

import (
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Detail is all that is known of one dispatch in a step.
type Detail struct {
	Launch
	Index   *Index
	Name    string
	Base    *trace.Plan  // of the base step, nil where there is none or it did not run there
	Params  []ParamValue // decoded, against the base
	Inputs  []ValueDetail
	Outputs []ValueDetail
	// value that the barrier before it waits for; -1: it stands in one level with what is before it
	Barrier trace.ValueID
	Levels  int    // of the step
	Source  string // WGSL; "" where the trace does not carry it
}

// ValueDetail is a value at a step.
type ValueDetail struct {
	*trace.Value
	Live []int // dims
}

// Detail describes a dispatch in a step, an index into Trace.Steps; nil where it did not run. Base may be
// nil.
func (x *Index) Detail(step int, id trace.DispatchID, base *Base) *Detail {
	launches := x.launches(step)
	i := 0
	for i < len(launches) && launches[i].ID != id {
		i++
	}
	if i == len(launches) {
		return nil
	}
	d := &Detail{
		Launch: launches[i], Index: x, Name: x.Name(id), Levels: len(x.levelStarts(step)),
		Barrier: x.barrier(launches[:i+1]),
	}
	if base != nil {
		of, _, _ := join(launches[i:i+1], base.Index.launches(base.Step))
		if of[0] != nil && of[0].ID == id {
			d.Base = of[0].Plan
			d.Delta = deltaOf(&d.Launch, of[0], resolutionNS(x.Trace), true)
		}
	}
	d.Params = x.Params(d.Plan, d.Base)
	for _, v := range d.Dispatch.Reads {
		d.Inputs = append(d.Inputs, ValueDetail{&x.Trace.Graph.Values[v], x.Dims(step, v)})
	}
	for _, v := range d.Dispatch.Writes {
		d.Outputs = append(d.Outputs, ValueDetail{&x.Trace.Graph.Values[v], x.Dims(step, v)})
	}
	if d.Kernel != nil {
		d.Source = d.Kernel.Source
	}
	return d
}

// barrier replays the rule by which a barrier comes before the last of several dispatches, and says for which
// value: one that it touches and another since the last barrier wrote, or that it writes and another read.
func (x *Index) barrier(launches []Launch) trace.ValueID {
	read, written := map[int]bool{}, map[int]bool{}
	waitsFor := trace.ValueID(-1)
	for i := range launches {
		d := launches[i].Dispatch
		waitsFor = -1
		for _, v := range d.Reads {
			if written[x.memory(v)] {
				waitsFor = v
			}
		}
		for _, v := range d.Writes {
			if m := x.memory(v); written[m] || read[m] {
				waitsFor = v
			}
		}
		if waitsFor >= 0 {
			clear(read)
			clear(written)
		}
		for _, v := range d.Reads {
			read[x.memory(v)] = true
		}
		for _, v := range d.Writes {
			written[x.memory(v)] = true
		}
	}
	return waitsFor
}

// memory names what a value lives in: its allocation slot, or its own memory where it has none.
func (x *Index) memory(v trace.ValueID) int {
	values := x.Trace.Graph.Values
	for hops := 0; values[v].AliasOf != nil && hops < len(values); hops++ { // bounded: a file may hold a ring
		v = *values[v].AliasOf
	}
	if s := values[v].Slot; s != nil {
		return *s
	}
	return -1 - int(v)
}

// Lines says it in words.
func (d *Detail) Lines() []string {
	launch := []string{
		d.Name, fmt.Sprintf("op %d %s", d.Op.ID, d.Op.Kind), "kernel " + d.Plan.Kernel,
		fmt.Sprintf("grid %s, needed %s, max %s", table.Grid(d.Plan.Workgroups),
			table.Grid(d.Plan.NeededGrid),
			table.Grid(d.Dispatch.MaxWorkgroups)),
	}
	if d.Kernel != nil {
		launch = append(launch, "wg "+table.Grid(d.Kernel.WorkgroupSize))
	}
	lines := []string{strings.Join(launch, " · "), d.timeLine(), d.trafficLine(), d.wasteLine()}
	if s := paramsText(d.Params, false); s != "" {
		lines = append(lines, "params "+s)
	}
	if d.Plan.Route != "" || d.Plan.Reason != "" {
		lines = append(lines,
			"route "+strings.TrimSuffix(strings.TrimPrefix(d.Plan.Route+" because "+d.Plan.Reason,
				" because "), " because "))
	}
	if d.Level >= 0 {
		level := fmt.Sprintf("level %d of %d", d.Level, d.Levels)
		if d.Barrier >= 0 {
			level += ": its barrier waits for " + d.Index.Trace.Graph.Values[d.Barrier].Name
		} else {
			level += ": no barrier before it"
		}
		lines = append(lines, level)
	}
	if d.Gap != nil {
		lines = append(lines,
			fmt.Sprintf("numeric gap to %s: max abs %.3g, MSE %.3g, SNR %.1f dB", d.Gap.Reference,
				d.Gap.MaxAbs, d.Gap.MSE, d.Gap.SNRdB))
	}
	return append(lines, "in  "+valuesText(d.Inputs), "out "+valuesText(d.Outputs))
}

func (d *Detail) timeLine() string {
	if !d.Time.Measured() {
		return "time not measured"
	}
	quantum := d.Index.Trace.Clock.QuantumNS
	decimals := table.DecimalsOfUS(quantum)
	line := microseconds(d.Time, quantum).Text + " µs"
	if d.Time.N == 1 {
		line += ", 1 sample"
	} else {
		line += fmt.Sprintf(", median of %d (%.*f–%.*f, IQR %.*f)", d.Time.N, decimals, d.Time.Min/1e3,
			decimals, d.Time.Max/1e3, decimals, d.Time.IQR/1e3)
	}
	if timing := d.Index.Trace.Device.TimingNS(); timing > 0 && d.Limit.Kind > FirstLimit {
		line += fmt.Sprintf(" = ~%.*f work + ~%.*f timing", decimals, max(0, d.Time.Median-timing)/1e3,
			decimals, timing/1e3)
	}
	switch d.Limit.Kind {
	case FirstLimit:
		line += " · first of the step: it absorbs what came before"
	case FloorLimit:
		line += " · ≈floor: no longer than an empty timed pass"
	case FillLimit:
		line += fmt.Sprintf(" · %d workgroups cannot fill this device (knee ~%d)", d.Limit.Workgroups,
			d.Index.Trace.Device.Ceilings.FillWorkgroups)
	case MemLimit:
		line += fmt.Sprintf(" · %s of the copy rate", d.Limit)
	case FPLimit:
		line += fmt.Sprintf(" · %s of the FLOP rate", d.Limit)
	}
	return line
}

func (d *Detail) trafficLine() string {
	work := "no arithmetic"
	switch n := float64(d.Plan.FLOPs); {
	case n >= 1e6:
		work = fmt.Sprintf("~%.3g MFLOP", n/1e6)
	case n > 0:
		work = fmt.Sprintf("~%.3g kFLOP", n/1e3)
	}
	line := fmt.Sprintf("~%s, %s", table.Bytes(d.Plan.Bytes), work)
	if d.Plan.Bytes > 0 && d.Plan.FLOPs > 0 {
		line += fmt.Sprintf(", ~%.2g FLOP a byte", float64(d.Plan.FLOPs)/float64(d.Plan.Bytes))
	}
	if d.Limit.BytesPerS > 0 {
		line += fmt.Sprintf(" → ~%.0f GB/s, ~%.0f GFLOP/s", d.Limit.BytesPerS/1e9, d.Limit.FlopsPerS/1e9)
	}
	if d.Limit.LostNS > 0 {
		line += fmt.Sprintf(" · ~%.1f µs lost", d.Limit.LostNS/1e3)
	}
	return line
}

func (d *Detail) wasteLine() string {
	if d.Waste == (Waste{}) {
		return "no waste"
	}
	line := fmt.Sprintf("waste: %d workgroups beyond the live shape, %d by folding the grid, %d idle lanes",
		d.Waste.Shape, d.Waste.Fold, d.Waste.Tail)
	if d.Kernel != nil {
		if lanes := d.Plan.NeededGroups * product(d.Kernel.WorkgroupSize); lanes > 0 {
			line += fmt.Sprintf(" of %d (%.0f%%)", lanes, 100*float64(d.Waste.Tail)/float64(lanes))
		}
	}
	return line
}

func valuesText(list []ValueDetail) string {
	var parts []string
	for _, v := range list {
		s := fmt.Sprintf("%s %s %s", v.Name, table.Shape(v.Live), v.DType)
		if v.Role != "intermediate" {
			s += " " + v.Role
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " · ")
}
