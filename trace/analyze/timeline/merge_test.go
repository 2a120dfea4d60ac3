package timeline_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/tracetest"
)

func TestMergedSlicesCoverTheDrawnOnes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		most := rapid.IntRange(1, 40).Draw(r, "most")
		for _, s := range all(of(tracetest.Random(r))) {
			// The span is on a track of its own.
			list := slices.DeleteFunc(slices.Clone(s.GPU), func(slice timeline.Slice) bool {
				return slice.Kind == timeline.SpanSlice
			})
			var drawn, lanes int
			for _, slice := range list {
				if slice.Drawn() {
					drawn++
					lanes = max(lanes, slice.Lane+1)
				}
			}
			merged := timeline.Merge(list, most)
			if len(merged) > max(most, lanes) {
				r.Fatalf("%d slices became %d, want at most %d", drawn, len(merged), most)
			}
			count := 0
			for _, m := range merged {
				count += m.Slices
				if m.To < m.From || m.Slices < 1 {
					r.Fatalf("merged %+v", m)
				}
			}
			if count != drawn {
				r.Fatalf("%d slices were merged, want %d", count, drawn)
			}
			for _, slice := range list {
				in := func(m timeline.Merged) bool {
					return m.Lane == slice.Lane && m.From <= slice.From && m.To >= slice.To
				}
				if slice.Drawn() && !slices.ContainsFunc(merged, in) {
					r.Fatalf("no merged slice has %+v", slice)
				}
			}
		}
	})
}

func TestMergeNamesTheLongestKernel(t *testing.T) {
	t.Parallel()
	list := []timeline.Slice{
		{Name: "a", From: 0, To: 10, NS: 10},
		{Name: "b", From: 11, To: 40, NS: 29},
		{Name: "a", From: 41, To: 60, NS: 20},
		{Name: "c", From: 900, To: 950, NS: 50},
	}
	got := timeline.Merge(list, 2)
	want := []timeline.Merged{
		{From: 0, To: 60, BusyNS: 59, Slices: 3, Name: "a"},
		{From: 900, To: 950, BusyNS: 50, Slices: 1, Name: "c"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("merged: %+v, want %+v", got, want)
	}
	long := []timeline.Slice{
		{Name: "a", To: 1, NS: 1},
		{Name: "b", From: 1 << 60, To: 1<<60 + 1, NS: 1},
		{Name: "c", From: math.MaxInt64 - 1, To: math.MaxInt64},
	}
	for n := 2; n <= 3; n++ {
		if got := timeline.Merge(long[:n], 1); len(got) != 1 || got[0].Slices != n {
			t.Errorf("%d slices of a very long lane: %+v, want one", n, got)
		}
	}
	if got := timeline.Merge(list, 10); len(got) != 4 || got[1].Name != "b" {
		t.Errorf("with enough room: %+v", got)
	}
}
