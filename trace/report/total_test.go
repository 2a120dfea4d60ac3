package report_test

import (
	"math"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/report"
	"gpuscope/trace/report/outline"
	"gpuscope/trace/tracetest"
)

// comparisons returns pairs of a selection and a baseline: of one run, of two engines with different graphs,
// and with dispatches that run on one side only.
func comparisons(t *testing.T) map[string]struct {
	x        *analyze.Index
	now      analyze.Selection
	baseline *analyze.Baseline
} {
	t.Helper()
	type pair = struct {
		x        *analyze.Index
		now      analyze.Selection
		baseline *analyze.Baseline
	}
	x := analyze.NewIndex(tracetest.Llama(4, 30))
	fused, apart := analyze.NewIndex(ours()), analyze.NewIndex(theirs())
	of := func(b, x *analyze.Index) pair {
		return pair{x, x.Phase(trace.Decode), &analyze.Baseline{Index: b, Selection: b.Phase(trace.Decode)}}
	}
	return map[string]pair{
		"steps":   {x, x.Range(10, 20), &analyze.Baseline{Index: x, Selection: x.Range(1, 9)}},
		"prefill": {x, x.Phase(trace.Decode), &analyze.Baseline{Index: x, Selection: x.Step(0)}},
		"fused":   of(apart, fused),
		"unfused": of(fused, apart),
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a)) }

// The times of a heading and of the total are the sums of the rows inside them, on both sides, whether the
// rows run on both sides or on one.
func TestTotalsAreTheSumsOfTheirRows(t *testing.T) {
	for name, c := range comparisons(t) {
		for fold := analyze.GroupLayer; fold <= analyze.GroupNone; fold++ {
			o := analyze.Options{Selection: c.now, Grouping: fold, Baseline: c.baseline}
			d, err := report.Dispatches(ctx, c.x, o)
			if err != nil {
				t.Fatal(err)
			}
			type sum struct{ now, base, delta float64 }
			inside := map[int]sum{} // by row; -1 for the total
			for i := range d.Grouped {
				r := &d.Grouped[i]
				s := inside[r.Parent]
				delta := r.Delta.TimeNS
				if !r.Delta.Measured { // the row has only a part of a piece of work
					delta = r.SumNS - r.Delta.BaselineNS
				}
				s.now, s.base, s.delta = s.now+r.SumNS, s.base+r.Delta.BaselineNS, s.delta+delta
				inside[r.Parent] = s
			}
			for at, want := range inside {
				r := d.Sum
				if at >= 0 {
					r = &d.Grouped[at]
				}
				got := sum{r.SumNS, r.Delta.BaselineNS, r.Delta.TimeNS}
				if !near(got.now, want.now) || !near(got.base, want.base) || !near(got.delta, want.delta) {
					t.Errorf("%s by %v: %s is %+v, its rows are %+v", name, fold, r.Label, got, want)
				}
				if !r.Delta.Measured || !near(got.delta, got.now-got.base) {
					t.Errorf("%s by %v: %s: Δ %+v", name, fold, r.Label, r.Delta)
				}
			}
		}
	}
}

// The total of the screen and that of `trace diff` are the same, because they come from the same comparison.
func TestTotalIsThatOfTheDiff(t *testing.T) {
	all := comparisons(t)
	tiny, x, ordered := tracetest.Tiny(), all["steps"].x, all["steps"]
	for i := range tiny.Graph.Ops {
		tiny.Graph.Ops[i].Name += " of another model"
	}
	other := analyze.NewIndex(tiny)
	ordered.baseline = &analyze.Baseline{Index: other, Selection: other.Phase(trace.Decode)}
	ordered.now = x.Phase(trace.Decode)
	all["ordered"] = ordered          // the graphs have no operator in common
	renamed := tracetest.Llama(4, 30) // whose last operator is not in the graph of the other run
	renamed.Graph.Ops[len(renamed.Graph.Ops)-1].Name = "of another engine"
	other = analyze.NewIndex(renamed)
	apart := ordered
	apart.baseline = &analyze.Baseline{Index: other, Selection: other.Phase(trace.Decode)}
	all["apart"] = apart
	for name, c := range all {
		d, err := report.Dispatches(ctx, c.x, analyze.Options{Selection: c.now, Baseline: c.baseline})
		if err != nil {
			t.Fatal(err)
		}
		both, err := diff.Of(ctx, diff.Side{Index: c.baseline.Index, Selection: c.baseline.Selection},
			diff.Side{Index: c.x, Selection: c.now})
		if err != nil {
			t.Fatal(err)
		}
		if ordered := both.Joined == join.ByOrder; ordered != (name == "ordered") {
			t.Errorf("%s: joined %v", name, both.Joined)
		}
		if want := both.Isolated.DeltaNS; !near(d.Sum.Delta.TimeNS, want) {
			t.Errorf("%s: %v, the diff has %v", name, d.Sum.Delta.TimeNS, want)
		}
		g, err := outline.Graph(ctx, c.x, analyze.Options{Selection: c.now, Baseline: c.baseline})
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Grouped { // headings of layers and blocks
			r := &d.Grouped[i]
			for k := range g.Nodes {
				n := &g.Nodes[k]
				if n.Group && r.Group && n.Label == r.Label && n.Parent < 0 && r.Parent < 0 &&
					!near(n.Delta.TimeNS, r.Delta.TimeNS) {
					t.Errorf("%s: %s has %+v in the graph, %+v in the table", name, r.Label, n.Delta, r.Delta)
				}
			}
		}
		if got := g.Sum.Delta; !near(got.TimeNS, d.Sum.Delta.TimeNS) || got.Equal != d.Sum.Delta.Equal {
			t.Errorf("%s: %+v in the graph, %+v in the table", name, got, d.Sum.Delta)
		}
	}
}

func TestOneSidedRowsHaveTheirOwnTimes(t *testing.T) {
	d := besideTheirs(t, "decode")
	number := func(row int, column string) any {
		if c := d.Cell(row, d.Column(column)); c.Has {
			return c.Number
		}
		return nil
	}
	for row, want := range map[string][3]any{
		"d3":      {1.0, nil, 1.0},
		"gone/d5": {nil, 8.0, -8.0},
	} {
		at := d.Row(row)
		if got := [3]any{number(at, "sum_us"), number(at, "base_us"), number(at, "delta_us")}; got != want {
			t.Errorf("%s: %v, want %v", row, got, want)
		}
		if c := d.Cell(at, d.Column("delta_us")); c.Mark != "" {
			t.Errorf("%s: mark %q", row, c.Mark)
		}
	}
}

// A baseline that nobody chose adds no columns and no total.
func TestDefaultBaselineHasNoTotal(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(4, 30))
	width := map[bool]int{}
	for _, is := range []bool{false, true} {
		b := &analyze.Baseline{Index: x, Selection: x.Step(2), Default: is}
		d, err := report.Dispatches(ctx, x, analyze.Options{Selection: x.Step(3), Baseline: b})
		if err != nil {
			t.Fatal(err)
		}
		width[is] = d.Columns[d.Column("base_us")].Width
		if got := d.Table.Total != nil; got == is {
			t.Errorf("default %v: total %v", is, got)
		}
		if got := d.Cell(0, d.Column("base_us")).Has; got == is { // one time on each side
			t.Errorf("default %v: time of the baseline %v", is, got)
		}
	}
	if width[false] >= 80 || width[true] != 200 {
		t.Errorf("widths %v", width)
	}
}
