package timeline_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/tracetest"
)

func overview(t interface{ Fatal(...any) }, tr *trace.Trace) *timeline.Overview {
	o, err := timeline.NewOverview(context.Background(), analyze.NewIndex(tr))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// within returns the length of the part of an item that is between two instants.
func within(it timeline.Item, from, to int64) int64 {
	return max(0, min(it.To, to)-max(it.From, from))
}

// However a run is divided into cells, the cells of a track add up to the items of the track.
func TestCellsAddUpToTheItems(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tr := tracetest.Random(r)
		if rapid.Bool().Draw(r, "short") {
			shorten(tr, rapid.Int64Range(1, 50).Draw(r, "longest"))
		}
		o := overview(r, tr)
		from := rapid.Int64Range(0, max(0, o.End)).Draw(r, "from")
		to := rapid.Int64Range(from, o.End+1).Draw(r, "to")
		w := o.Window(from, to, rapid.IntRange(1, 300).Draw(r, "cells"))
		var busy, unmeasured [timeline.Tracks]int64
		for step := range o.Steps() {
			for track := range timeline.Tracks {
				for _, it := range o.Items(step, track) {
					ns := within(it, w.From, w.To)
					switch {
					case it.Unmeasured:
						unmeasured[track] += ns
					case track != timeline.GPULayers || tr.Steps[step].Timing == trace.TimingBlock &&
						len(tr.Steps[step].Blocks) > 0:
						busy[track] += ns
					}
					if track == timeline.GPUDispatches && !it.Unmeasured {
						busy[timeline.GPULayers] += ns // a layer is the sum of its dispatches
					}
				}
			}
		}
		var haveBusy, haveUnmeasured [timeline.Tracks]int64
		for i := range w.Rows {
			b, u := w.Rows[i].Total()
			haveBusy[w.Rows[i].Track] += b
			haveUnmeasured[w.Rows[i].Track] += u
		}
		if haveBusy != busy || haveUnmeasured != unmeasured {
			r.Fatalf("the cells from %d to %d have %v (unmeasured %v), the items %v (%v)", w.From, w.To,
				haveBusy, haveUnmeasured, busy, unmeasured)
		}
		byKernel := int64(0)
		for _, k := range w.Kernels {
			byKernel += k.NS
		}
		if byKernel != busy[timeline.GPUDispatches] {
			r.Fatalf("the kernels have %d ns, want %d", byKernel, busy[timeline.GPUDispatches])
		}
	})
}

// The first block of the last step touches another one, so it is drawn 1 ns shorter. This must not depend on
// the earlier step, whose block ends where the last step begins.
func TestCellsDoNotDependOnEarlierSteps(t *testing.T) {
	t.Parallel()
	block := func(ns int64) trace.Block { return trace.Block{GPUNS: trace.Measured(ns)} }
	tr := tracetest.Llama(1, 2)
	tr.Steps = tr.Steps[:2]
	for i := range tr.Steps {
		s := &tr.Steps[i]
		s.Timing, s.Dispatches, s.CPU, s.GPU = trace.TimingBlock, nil, trace.CPU{}, nil
	}
	tr.Steps[0].Blocks = []trace.Block{block(1)}
	tr.Steps[1].Blocks = []trace.Block{block(2), block(1)}
	tr.Steps[1].Blocks[0].StartNS = trace.Measured(0)
	o := overview(t, tr)
	w, sum := o.Window(0, o.End, 1), int64(0)
	for step := range o.Steps() {
		for _, it := range o.Items(step, timeline.GPULayers) {
			sum += within(it, w.From, w.To)
		}
	}
	if busy, _ := w.Rows[timeline.GPULayers].Total(); busy != sum || sum == 0 {
		t.Errorf("the cell has %d ns, the items %d ns", busy, sum)
	}
}

// A cell's groups add up to the cell.
func TestLayersOfACellAddUp(t *testing.T) {
	t.Parallel()
	o := overview(t, tracetest.Llama(16, 30))
	w := o.Window(0, o.End, 77)
	for c := range w.Rows[timeline.GPULayers].Cells {
		sum := int64(0)
		for _, s := range w.Sums(timeline.GPULayers, c, c+1) {
			sum += s.NS
		}
		if cell := &w.Rows[timeline.GPULayers].Cells[c]; sum != cell.BusyNS || cell.GroupNS > cell.BusyNS {
			t.Errorf("cell %d: layers %d ns, cell %+v", c, sum, *cell)
		}
	}
}

func names(list []timeline.Item) (out []string) {
	for _, it := range list {
		out = append(out, it.Name)
	}
	return out
}

// If only the step was timed on the GPU, it is one block, and nothing is known of its dispatches.
func TestUntimedDispatchesAreNotPlaced(t *testing.T) {
	t.Parallel()
	for _, isolated := range []bool{false, true} {
		tr := tracetest.Llama(2, 3)
		for i := range tr.Steps {
			s := &tr.Steps[i]
			s.Timing = trace.TimingStep
			for k := range s.Dispatches {
				s.Dispatches[k].StartNS = trace.Time{}
				if !isolated {
					s.Dispatches[k].GPUNS = trace.Time{}
				}
			}
		}
		o := overview(t, tr)
		span, _ := tr.Steps[1].GPU.SpanNS.NS()
		step := o.Items(1, timeline.GPUSteps)
		if len(step) != 1 || step[0].Unmeasured || step[0].To-step[0].From < span-1 || step[0].NS < span-1 {
			t.Fatalf("the step is %+v, want one block of %d ns", step, span)
		}
		for _, track := range []timeline.Track{timeline.GPULayers, timeline.GPUDispatches} {
			list := o.Items(1, track)
			if len(list) != 1 || !list[0].Unmeasured || list[0].From != step[0].From ||
				list[0].To != step[0].To {
				t.Errorf("track %d has %+v, want one unmeasured item as long as the step", track, list)
			}
		}
		w := o.Window(0, o.End, 100)
		busy, unmeasured := w.Rows[timeline.GPUDispatches].Total()
		if busy != 0 || unmeasured == 0 || o.Timed {
			t.Errorf("busy %d, unmeasured %d ns", busy, unmeasured)
		}
	}
}

// A step without any GPU time is neither busy nor idle after its submit.
func TestUnmeasuredStepIsNotIdle(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 3)
	s := &tr.Steps[1]
	s.Timing, s.GPU = trace.TimingOff, nil
	for k := range s.Dispatches {
		s.Dispatches[k].StartNS, s.Dispatches[k].GPUNS = trace.Time{}, trace.Time{}
	}
	o := overview(t, tr)
	list := o.Items(1, timeline.GPUSteps)
	host := o.Items(1, timeline.HostSteps)
	if len(list) != 1 || !list[0].Unmeasured || list[0].To != host[0].To || list[0].From <= host[0].From {
		t.Errorf("the step on the GPU is %+v, on the host %+v", list, host)
	}
}

// If one dispatch of a step has no time, the time between its neighbours is unmeasured.
func TestMissingDispatchIsNotIdle(t *testing.T) {
	t.Parallel()
	tr := tiny(step(0, 0, [2]int64{100, 50}, [2]int64{150, 50}, [2]int64{300, 50}))
	tr.Steps[0].Dispatches[1].StartNS, tr.Steps[0].Dispatches[1].GPUNS = trace.Time{}, trace.Time{}
	list := overview(t, tr).Items(0, timeline.GPUDispatches)
	if len(list) != 3 || !list[1].Unmeasured || list[1].From != list[0].To || list[1].To != 300 {
		t.Errorf("%+v", list)
	}
}

func TestDispatchesAreGroupedByLayer(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(3, 4)
	o := overview(t, tr)
	layers, dispatches := o.Items(2, timeline.GPULayers), o.Items(2, timeline.GPUDispatches)
	if len(dispatches) != len(tr.Steps[2].Dispatches) {
		t.Fatalf("%d dispatches, want %d", len(dispatches), len(tr.Steps[2].Dispatches))
	}
	n, ns := 0, int64(0)
	for i, l := range layers {
		n, ns = n+l.Slices, ns+l.NS
		if l.At != i || i > 0 && l.From < layers[i-1].To-1 {
			t.Errorf("layer %d is %+v", i, l)
		}
	}
	total := int64(0)
	for _, d := range dispatches {
		total += d.NS
	}
	if n != len(dispatches) || ns != total {
		t.Errorf("the layers have %d dispatches and %d ns, want %d and %d", n, ns, len(dispatches), total)
	}
	if have := names(layers); !slices.Contains(have, "L0") || !slices.Contains(have, "L2") {
		t.Errorf("the layers are %q", have)
	}
}

// A pause that is much longer than a step is shortened. Times after it are still those of the run.
func TestLongPausesAreShortened(t *testing.T) {
	t.Parallel()
	o := overview(t, tiny(step(0, 0), step(1, 1000), step(2, 1_000_000), step(3, 1_001_500)))
	if len(o.Pauses) != 1 || o.Pauses[0].Before != 2 || o.Pauses[0].CutNS != 1_000_000-2000-1000 {
		t.Fatalf("%+v", o.Pauses)
	}
	third := o.Items(2, timeline.HostSteps)[0]
	if third.From != 3000 || o.Real(third.From) != 1_000_000 || o.Real(500) != 500 || o.End != 5500 {
		t.Errorf("the step after the pause is at %d (%d in the run), the end at %d", third.From,
			o.Real(third.From), o.End)
	}
}

// Only items of at least two cells are drawn with a name.
func TestItemsAppearWithZoom(t *testing.T) {
	t.Parallel()
	o := overview(t, tracetest.Llama(16, 30))
	list := o.Items(10, timeline.GPUDispatches)
	it := list[len(list)/2]
	for _, length := range []int64{it.To - it.From, 10 * (it.To - it.From), 49 * (it.To - it.From)} {
		w := o.Window(it.From, it.From+length, 100)
		found := slices.ContainsFunc(w.Rows[timeline.GPUDispatches].Items, func(d timeline.Item) bool {
			return d.Step == 10 && d.At == it.At
		})
		if !found {
			t.Errorf("a dispatch of %d ns is not drawn in %d ns", it.To-it.From, length)
		}
	}
	w := o.Window(it.From, it.From+51*(it.To-it.From), 100)
	for _, d := range w.Rows[timeline.GPUDispatches].Items {
		if d.Step == 10 && d.At == it.At {
			t.Errorf("a dispatch of less than two cells is drawn with its name")
		}
	}
	if c := w.Rows[timeline.GPUDispatches].Cells[0]; c.BusyNS != w.Bound(1)-w.Bound(0) {
		t.Errorf("the first cell has %d ns, want all of it", c.BusyNS)
	}
}

func BenchmarkOverview(b *testing.B) {
	x := analyze.NewIndex(tracetest.Llama(15, 2000))
	for b.Loop() {
		if _, err := timeline.NewOverview(context.Background(), x); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWindow divides a run of 2,000 steps into 188 cells: the whole run, and a part in which each step
// is in more than one cell, so that all of its dispatches are read.
func BenchmarkWindow(b *testing.B) {
	o := overview(b, tracetest.Llama(15, 2000))
	for _, c := range []struct {
		name string
		to   int64
	}{{"whole", o.End}, {"tenth", o.End / 10}, {"step", o.End / 2000}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				o.Window(0, c.to, 188)
			}
		})
	}
}
