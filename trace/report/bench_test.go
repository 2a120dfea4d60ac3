package report_test

import (
	"fmt"
	"slices"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

var benchmarked = []int{260, 5_000, 100_000}

// wide returns a trace of two equal steps of n timed dispatches. Each step has new plans.
func wide(n int) *trace.Trace {
	t := chain(n)
	t.Clock.QuantumNS = 32
	kernels := []string{"linear", "rms_norm", "add", "rope"}
	for _, name := range kernels {
		t.Graph.Kernels = append(t.Graph.Kernels, trace.Kernel{Name: name, WorkgroupSize: [3]int{64, 1, 1}})
	}
	step := &t.Steps[0]
	step.Timing = trace.TimingDispatch
	for i := range n {
		layer := i / 20
		o := &t.Graph.Ops[i]
		o.Name, o.Kind = fmt.Sprintf("layers.%d.attn.op%d", layer, i%20), kernels[i%4]
		o.Layer, o.Block = &layer, "attn"
		t.Graph.Dispatches[i].Kernels = kernels[i%4 : i%4+1]
		p := &t.Plans[i]
		p.Kernel, p.Workgroups, p.NeededGrid = kernels[i%4], [3]int{64, 1, 1}, [3]int{64, 1, 1}
		p.Bytes, p.FLOPs = 1<<20, 1<<20
		step.Dispatches[i].GPUNS = trace.Measured(int64(5_000 + 32*(i%100)))
		step.Levels = append(step.Levels, trace.DispatchID(i))
	}
	again := *step
	again.Index = 1
	t.Steps = append(t.Steps, again)
	return t
}

// long returns a trace of n steps of four timed dispatches.
func long(n int) *trace.Trace {
	t := wide(4)
	one := t.Steps[1]
	for i := 2; i < n; i++ {
		s := one
		s.Index, s.Position, s.Levels, s.Resize = i, i, nil, trace.Resize{}
		s.CPU.TotalNS = trace.Measured(int64(1_000_000 + i%1000))
		t.Steps = append(t.Steps, s)
	}
	return t
}

func BenchmarkIndex(b *testing.B) {
	for _, n := range benchmarked {
		for name, t := range map[string]*trace.Trace{"dispatches": wide(n), "steps": long(n)} {
			b.Run(fmt.Sprintf("%d_%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					analyze.NewIndex(t)
				}
			})
		}
	}
}

// BenchmarkNext measures what adding a step to an index of n steps costs.
func BenchmarkNext(b *testing.B) {
	const more = 1000
	for _, n := range benchmarked {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := long(n + more)
			var x *analyze.Index
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				longer := *t
				longer.Steps = t.Steps[:n+i%more]
				if i%more == 0 {
					b.StopTimer()
					x = analyze.NewIndex(&longer)
					b.StartTimer()
				}
				x = x.Next(&longer)
			}
		})
	}
}

// BenchmarkNextReplanned measures a step in which 16 of 120 dispatches have new params, as those that read
// the position have in a running model. It adds 100 steps at a time.
func BenchmarkNextReplanned(b *testing.B) {
	const n, at = 3000, 100
	t := wide(120)
	s := t.Steps[1]
	for i := 2; i < n; i++ {
		s.Index, s.Position, s.Levels, s.Timing = i, i, nil, "step"
		s.Dispatches = slices.Clone(s.Dispatches)
		var hooks []trace.Hook
		for k := range 16 {
			d := &s.Dispatches[7*k]
			p := t.Plans[d.Plan]
			from, to := p.ID, trace.PlanID(len(t.Plans))
			p.ID, p.Params, d.Plan = to, fmt.Sprintf("%064x", i), to
			t.Plans = append(t.Plans, p)
			hooks = append(hooks, trace.Hook{Plans: []trace.PlanChange{{From: &from, To: &to}}})
		}
		s.Resize = trace.Resize{Passes: []trace.Pass{{Hooks: hooks}}}
		t.Steps = append(t.Steps, s)
	}
	b.ReportAllocs()
	for b.Loop() {
		now := *t
		now.Steps = t.Steps[:2]
		x := analyze.NewIndex(&now)
		for k := 2 + at; k <= n; k += at {
			longer := *t
			longer.Steps = t.Steps[:k]
			x = x.Next(&longer)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/step")
}

// BenchmarkTables makes every table, selects its rows in the default order and sorted by a column, and makes
// the cells that a screen shows.
func BenchmarkTables(b *testing.B) {
	for _, kind := range report.Tables() {
		for _, n := range benchmarked {
			x := analyze.NewIndex(wide(n))
			o := analyze.Options{Selection: x.Step(1)}
			if kind.Takes == report.WholeRun {
				x = analyze.NewIndex(long(n))
				o.Selection = analyze.Selection{}
			}
			if kind.Compares {
				o.Baseline = baseOf(x, 0)
			}
			folds := []analyze.Grouping{analyze.GroupLayer}
			if kind.Folds {
				folds = append(folds, analyze.GroupNone)
			}
			for _, fold := range folds {
				o.Grouping = fold
				b.Run(fmt.Sprintf("%s_%d_%s", kind.Name, n, fold), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						benchmarkTable(b, x, kind, o)
					}
				})
			}
		}
	}
}

func benchmarkTable(b *testing.B, x *analyze.Index, kind report.Table, o analyze.Options) {
	made, err := kind.Of(ctx, x, o)
	if err != nil {
		b.Fatal(err)
	}
	for _, by := range []string{"", made.Columns[0].Name} {
		rows, err := made.Select(ctx, table.Selection{Sort: by})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows[:min(50, len(rows))] {
			for c := range made.Columns {
				made.Cell(r, c)
			}
		}
	}
}

// BenchmarkScope makes the dispatch table of all decode steps.
func BenchmarkScope(b *testing.B) {
	for _, n := range []int{260, 5_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := analyze.NewIndex(long(n))
			for b.Loop() {
				if _, err := report.Dispatches(ctx, x, analyze.Options{Selection: x.All()}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
