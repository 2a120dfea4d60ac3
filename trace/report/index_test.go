package report_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// said returns what an index reports about its steps.
func said(x *analyze.Index) (all []string) {
	for i := range x.Trace.Steps {
		for v := range x.Trace.Graph.Values {
			all = append(all, table.Shape(x.Dims(i, trace.ValueID(v))))
		}
		for _, l := range dispatched(x, i, analyze.Options{}).Launches {
			all = append(all, x.Name(l.ID), report.Live(x, &l), string(rune('0'+l.Level)))
		}
		for d := range x.Trace.Graph.Dispatches {
			if w := why.Of(x, i, trace.DispatchID(d)); w != nil {
				all = append(all, report.WhyLines(w, "")...)
			}
		}
	}
	return all
}

// Versions of an index share memory. Whichever version another is made from, and however often, each reports
// the same as an index made from scratch.
func TestOldVersionsOfAnIndexDoNotChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOfN(rapid.SampledFrom([]int{1, 1, 1, 7, 40}), 1, 7).Draw(t, "chunks")
		whole := tracetest.Run(1, chunks...)
		first := *whole
		first.Steps = whole.Steps[:0]
		versions := []*analyze.Index{analyze.NewIndex(&first)}
		for range rapid.IntRange(1, 8).Draw(t, "versions") {
			from := versions[rapid.IntRange(0, len(versions)-1).Draw(t, "of")]
			longer := *whole
			longer.Steps = whole.Steps[:rapid.IntRange(len(from.Trace.Steps), len(whole.Steps)).Draw(t, "steps")]
			versions = append(versions, from.Next(&longer))
		}
		for i, x := range versions {
			if d := cmp.Diff(said(analyze.NewIndex(x.Trace)), said(x)); d != "" {
				t.Fatalf("version %d of %d steps: %s", i, len(x.Trace.Steps), d)
			}
		}
	})
}

// The race detector checks that a version can be read while longer ones are made from it.
func TestIndexIsReadWhileItIsExtended(t *testing.T) {
	whole := tracetest.Run(1, slices.Repeat([]int{1, 7}, 8)...)
	half := *whole
	half.Steps = whole.Steps[:8]
	x := analyze.NewIndex(&half)
	want := said(x)
	done := make(chan []string)
	go func() { done <- said(x) }()
	for range 3 {
		x.Next(whole)
	}
	if d := cmp.Diff(want, <-done); d != "" {
		t.Error(d)
	}
}

func TestTheNextVersionCostsWhatIsNew(t *testing.T) {
	whole := tracetest.Run(1, slices.Repeat([]int{1}, 1200)...)
	growing := func(steps int) float64 { // bytes
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var x *analyze.Index
		for n := range steps {
			longer := *whole
			longer.Steps = whole.Steps[:n+1]
			x = x.Next(&longer)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	growing(10)
	if few, many := growing(300), growing(1200); many > 5*few {
		t.Errorf("1,200 versions take %.0f kB, 300 take %.0f: want four times as much", many/1e3, few/1e3)
	}
}

// Scratch that a step does not use has dims of 0, and a fused-away value has no memory. Neither has a live
// shape, and the fused-away value has no bytes.
func TestUnusedValuesHaveNoLiveShape(t *testing.T) {
	tr := tracetest.Run(1, 7)
	values := tr.Graph.Values
	scratch := slices.IndexFunc(values, func(v trace.Value) bool { return v.Role == trace.RoleScratch })
	gone := slices.IndexFunc(values, func(v trace.Value) bool { return v.Role == trace.RoleIntermediate })
	values[gone].Role = trace.RoleFused
	unused := make([]int, len(values[scratch].MaxDims))
	step := &tr.Steps[0]
	step.Dims = append(step.Dims, trace.LiveDims{Value: values[scratch].ID, Dims: unused})
	all := report.Values(analyze.NewIndex(tr), analyze.Selection{Steps: []int{0}})
	cell := func(column string, value int) string {
		i := slices.IndexFunc(all.Columns, func(c table.Column) bool { return c.Name == column })
		return all.Columns[i].Of(value).Text
	}
	if live, bytes := cell("live", scratch), cell("bytes", scratch); live != table.Unmeasured || bytes == "" {
		t.Errorf("scratch not in use: live %q, %q bytes", live, bytes)
	}
	if live, bytes := cell("live", gone), cell("bytes", gone); live != table.Unmeasured || bytes != "" {
		t.Errorf("fused-away value: live %q, %q bytes", live, bytes)
	}
}
