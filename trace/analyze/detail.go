package analyze

import (
	"context"
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze/join"
)

// Detail holds everything known about one dispatch in a step.
type Detail struct {
	Launch
	Index *Index
	Name  string
	// Baseline is the plan of the dispatch in the baseline step, or nil if there is none.
	Baseline *trace.Plan
	Params   []ParamValue // decoded params, with those of the baseline beside them
	Inputs   []ValueDetail
	Outputs  []ValueDetail
	Levels   int  // number of levels of the step
	Begins   bool // the dispatch is the first of a level
	// Waits lists what the barrier before the dispatch waits for. WaitsKnown is false if the trace does not
	// record this.
	Waits      []trace.Wait
	WaitsKnown bool
	Source     string // WGSL; "" if the trace does not include the source
}

// ValueDetail is a value with its live dims at a step.
type ValueDetail struct {
	*trace.Value
	Live []int // live dims; nil if the step does not compute the value
}

// Detail returns what is known about a dispatch in a step, or nil if the dispatch did not run there. `step`
// is an index into Trace.Steps. `baseline` may be nil.
func (x *Index) Detail(ctx context.Context, step int, id trace.DispatchID, baseline *Baseline) (*Detail,
	error,
) {
	i := x.Find(step, id)
	if i < 0 {
		return nil, nil
	}
	levels := x.levelsAt(step)
	d := &Detail{Launch: x.launchesAt(step, i)[0], Index: x, Name: x.Name(id)}
	if levels != nil {
		d.Levels, d.Waits, d.WaitsKnown = len(levels.of), levels.waits[id], levels.waits != nil
		_, d.Begins = levels.of[id]
	}
	if baseline != nil && baseline.SameEngine(x) {
		then, err := baseline.Index.sameSlot(ctx, baseline.Selection, &d.Launch)
		if err != nil {
			return nil, err
		}
		now, base := joinSide(x, []Launch{d.Launch}), joinSide(baseline.Index, then)
		if k := join.Find(&now, &base); k >= 0 {
			d.Baseline = then[k].Plan
			d.Delta = Delta{PlanDiff: trace.DiffPlans(d.Baseline, d.Plan), From: d.Baseline}
		}
	}
	d.Params = x.Params(d.Plan, d.Baseline)
	reads, writes := x.Touches(d.Plan)
	for _, v := range reads {
		d.Inputs = append(d.Inputs, ValueDetail{&x.Trace.Graph.Values[v], x.Dims(step, v)})
	}
	for _, v := range writes {
		d.Outputs = append(d.Outputs, ValueDetail{&x.Trace.Graph.Values[v], x.Dims(step, v)})
	}
	if d.Kernel != nil {
		d.Source = d.Kernel.Source
	}
	return d, nil
}

// DetailLabel is the number of terminal cells that a label occupies in a line of details.
const DetailLabel = 7

// Labelled returns a line of details: a label, padded to a fixed width, and a text.
func Labelled(label, text string) string { return fmt.Sprintf("%-*s%s", DetailLabel, label, text) }

// Tenant returns the value that makes the barrier necessary: the value that the dispatch w.For read or wrote.
// This is w.Value, or an earlier value in the same memory slot.
func (x *Index) Tenant(w trace.Wait) trace.ValueID {
	d := &x.Trace.Graph.Dispatches[w.For]
	used := slices.Concat(d.Writes, d.Reads)
	if slices.Contains(used, w.Value) {
		return w.Value
	}
	for _, v := range used {
		if x.Root(v) == x.Root(w.Value) {
			return w.Value
		}
	}
	for _, v := range used {
		a, b := x.Trace.Graph.Values[x.Root(v)].Slot, x.Trace.Graph.Values[x.Root(w.Value)].Slot
		if a != nil && b != nil && *a == *b {
			return v
		}
	}
	return w.Value
}

// maxAliases is the maximum number of aliases between a value and the value that owns the memory.
const maxAliases = 1000

// Root returns the value that owns the memory of v. This is v itself, or the value of which v is an alias.
func (x *Index) Root(v trace.ValueID) trace.ValueID {
	values := x.Trace.Graph.Values
	// If aliases form a cycle in a damaged file, this limit ends the loop.
	for hops := 0; values[v].AliasOf != nil && hops < maxAliases; hops++ {
		v = *values[v].AliasOf
	}
	return v
}
