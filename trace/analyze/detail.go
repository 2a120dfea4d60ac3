package analyze

import (
	"context"
	"fmt"
	"slices"

	"gpuscope/trace"
)

// Detail holds everything known about one dispatch in a step.
type Detail struct {
	Launch
	Index *Index
	Name  string
	// Baseline is the plan in the baseline step. Baseline is nil if there is no baseline, or if the
	// dispatch did not run there.
	Baseline *trace.Plan
	Params   []ParamValue // decoded params, next to those of the baseline
	Inputs   []ValueDetail
	Outputs  []ValueDetail
	Levels   int  // number of levels of the step
	Begins   bool // the dispatch begins a level
	// Waits lists what the barrier before the dispatch waits for. WaitsKnown reports whether the trace
	// recorded waits.
	Waits      []trace.Wait
	WaitsKnown bool
	Source     string // WGSL; "" if the trace does not include the source
}

// ValueDetail is a value with its live dims at a step.
type ValueDetail struct {
	*trace.Value
	Live []int // live dims; nil if the step does not compute the value
}

// Detail describes a dispatch in a step. The argument step is an index into Trace.Steps. Detail returns nil
// if the dispatch did not run in the step. baseline may be nil.
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
	if baseline != nil {
		then, err := baseline.Index.sameSlot(ctx, baseline.Selection, &d.Launch)
		if err != nil {
			return nil, err
		}
		if of := newBaselineLaunches(then).find(&d.Launch); of != nil {
			d.Baseline = of.Plan
			d.Delta = deltaOf(&d.Launch, of, resolutionNS(x.Trace), true)
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

// DetailLabel is the width of the label in a detail line, in terminal cells.
const DetailLabel = 7

// Labelled returns a detail line: a label of fixed width, then the text.
func Labelled(label, text string) string { return fmt.Sprintf("%-*s%s", DetailLabel, label, text) }

// Tenant returns the value for which a barrier is needed: the one that the dispatch w.For accessed. It is the
// value of the wait itself, or an earlier value in the same memory slot.
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

// maxAliases limits how many aliases are followed. More aliases than this cannot share one piece of memory.
const maxAliases = 1000

// Root follows the aliases of a value to the value that owns the memory.
func (x *Index) Root(v trace.ValueID) trace.ValueID {
	values := x.Trace.Graph.Values
	// The limit ends the loop if the file has a cycle of aliases.
	for hops := 0; values[v].AliasOf != nil && hops < maxAliases; hops++ {
		v = *values[v].AliasOf
	}
	return v
}
