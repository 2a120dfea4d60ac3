package analyze

import (
	"context"
	"fmt"
	"slices"

	"gpuscope/trace"
)

// Detail is all that is known of one dispatch in a step.
type Detail struct {
	Launch
	Index    *Index
	Name     string
	Baseline *trace.Plan  // of the baseline step, nil if there is none or it did not run there
	Params   []ParamValue // decoded, against the baseline
	Inputs   []ValueDetail
	Outputs  []ValueDetail
	Levels   int  // of the step
	Begins   bool // a level
	// Waits are what the barrier before it waits for; WaitsKnown reports whether the trace has recorded that.
	Waits      []trace.Wait
	WaitsKnown bool
	Source     string // WGSL; "" where the trace does not carry it
}

// ValueDetail is a value at a step.
type ValueDetail struct {
	*trace.Value
	Live []int // dims
}

// Detail describes a dispatch in a step, an index into Trace.Steps; nil where it did not run. Base may be
// nil.
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

// DetailLabel is how many cells of a line of a detail its label takes.
const DetailLabel = 7

// Labelled is a line of a detail.
func Labelled(label, text string) string { return fmt.Sprintf("%-*s%s", DetailLabel, label, text) }

// Tenant is the value by which the dispatch that is waited for used the memory: the wait's own, or one that
// had the memory before.
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

// maxAliases is more than can share one piece of memory one after the other.
const maxAliases = 1000

// Root is the value whose memory a value is an alias of.
func (x *Index) Root(v trace.ValueID) trace.ValueID {
	values := x.Trace.Graph.Values
	for hops := 0; values[v].AliasOf != nil && hops < maxAliases; hops++ { // a file may hold a ring
		v = *values[v].AliasOf
	}
	return v
}
