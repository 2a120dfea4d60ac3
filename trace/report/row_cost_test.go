package report_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/costs"
	"gpuscope/trace/report/costtable"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// A cost below 0 is shown unchanged, but its potential saving is 0. A row that was not measured has no cost,
// and if costs do not cover the step, no shared time is shown.
func TestCostsBelowZeroAndMissingOnes(t *testing.T) {
	tr := tracetest.Run(2, 40, 1)
	parts, err := analyze.NewIndex(tr).CostParts(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := costedBy(tr, 1, parts[:5]...)
	s := &x.Trace.Steps[1]
	s.Costs[1].NS, s.Costs[1].Q1NS, s.Costs[1].Q3NS = -3040, -5000, -1000
	d := dispatched(x, 1, analyze.Options{})
	if _, ok := d.Shared(); ok {
		t.Error("five rows are reported to cover the step")
	}
	cell := func(row int, column string) string { return d.Cell(row, d.Column(column)).Text }
	below := d.Row("d0")
	got := joined(cell(below, "cost_us"), cell(below, "cost_spread_us"), cell(below, "save_us"))
	if want := "-3.0|2.0|0.0"; got != want {
		t.Errorf("cost, ± and ~save are %s, want %s", got, want)
	}
	missing := 0
	for i := range d.Grouped {
		if d.Grouped[i].Cost != nil {
			continue
		}
		missing++
		if got := cell(i, "cost_us"); got != table.Unmeasured {
			t.Errorf("%s was not measured and costs %s", d.Grouped[i].Key, got)
		}
	}
	if missing == 0 {
		t.Error("all rows have costs")
	}
}

// A cost within its error is marked as not significant and has no potential saving.
func TestCostWithinItsErrorIsInsignificant(t *testing.T) {
	tr := tracetest.Run(2, 40, 1)
	x := costed(t, tr, 1)
	s := &x.Trace.Steps[1]
	s.Costs[1].NS, s.Costs[1].Q1NS, s.Costs[1].Q3NS = 4200, -1000, 9500 // ± 5.2
	s.Costs[2].NS, s.Costs[2].Q1NS, s.Costs[2].Q3NS = -4200, -9500, 1000
	d := dispatched(x, 1, analyze.Options{})
	cell := func(row int, column string) string { return d.Cell(row, d.Column(column)).Text }
	var got []string
	for _, key := range []string{"d0", "d1"} {
		row := d.Row(key)
		got = append(got, joined(cell(row, "cost_us"), cell(row, "cost_spread_us"), cell(row, "save_us")))
	}
	want := []string{"= 4.2|5.2|=", "= -4.2|5.2|="}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	row := d.Row("d0")
	if n := d.Cell(row, d.Column("cost_us")).Number; n != 4.2 {
		t.Errorf("machine-readable cost is %v", n)
	}
	if line := d.CostLine(&d.Grouped[row]); !strings.Contains(line, "± 5.2 (n=30), not significant") ||
		strings.Contains(line, "~save") {
		t.Errorf("%q", line)
	}
}

// The error of a cost is the one in the trace. Without one, as with few rounds or in old traces, the error of
// many rounds comes from their quartiles. With few rounds it is unknown, on every device.
func TestACostOfFewRoundsIsNoFigure(t *testing.T) {
	tr := tracetest.Run(2, 40, 1)
	for _, c := range []struct {
		n    int
		off  trace.Time
		want string
		of   int // rounds needed
	}{
		{1, trace.Time{}, "?|–", 5},
		{4, trace.Time{}, "?|–", 5},
		{15, trace.Time{}, "?|–", 16},
		{5, trace.Measured(28_000), "= 20.0|28", 0},
		{5, trace.Measured(16_000), "20.0|16", 0},
		{16, trace.Time{}, "20.0|4.5", 0},
		{16, trace.Measured(5000), "20.0|5.0", 0},
	} {
		x := costed(t, tr, 1)
		s := &x.Trace.Steps[1]
		cost := &s.Costs[1]
		cost.N, cost.OffNS = c.n, c.off
		cost.NS, cost.Q1NS, cost.Q3NS = 20_000, 15_500, 24_500
		d := dispatched(x, 1, analyze.Options{})
		cell := func(column string) string { return d.Cell(d.Row("d0"), d.Column(column)).Text }
		if got := joined(cell("cost_us"), cell("cost_spread_us")); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		want := fmt.Sprintf("(n=%d)", c.n)
		if !d.Grouped[d.Row("d0")].Cost.ErrorKnown {
			want = fmt.Sprintf("? %d of %d rounds", c.n, c.of)
		}
		if line := d.CostLine(&d.Grouped[d.Row("d0")]); !strings.Contains(line, want) {
			t.Errorf("%q, want %q", line, want)
		}
	}
}

// Rows are not sorted by costs of unknown error, whatever their numbers. They come last, ordered by isolated
// time, and no filter finds them by cost.
func TestUnknownCostsAreNotRanked(t *testing.T) {
	x := costed(t, tracetest.Run(2, 40, 1), 1)
	s := &x.Trace.Steps[1]
	for i := range s.Costs {
		s.Costs[i].N = 1
		s.Costs[i].NS = int64(1000 * (i*7%11 - 5))
		s.Costs[i].Q1NS, s.Costs[i].Q3NS = s.Costs[i].NS, s.Costs[i].NS
	}
	d := dispatched(x, 1, analyze.Options{Grouping: analyze.GroupNone}).Table
	inOrder := shown(t, d, "", table.Selection{Sort: "sum_us", Reverse: true})
	for _, reverse := range []bool{false, true} {
		got := shown(t, d, "", table.Selection{Sort: "cost_us", Reverse: reverse})
		if diff := cmp.Diff(inOrder, got); diff != "" {
			t.Errorf("reverse %t: %s", reverse, diff)
		}
	}
	for _, filter := range []string{"cost_us:<0", "cost_us:>=0"} {
		if got := shown(t, d, filter, table.Selection{}); got != nil {
			t.Errorf("%s: %v", filter, got)
		}
	}
}

// A cost of unknown error is replaced by a mark. It does not affect the order of rows, and shares are those
// of isolated times. With a fifth round it is shown, unless it exceeds the whole step.
func TestCostWithUnknownErrorIsNotShown(t *testing.T) {
	tr := tracetest.Run(2, 40, 1)
	x := costed(t, tr, 1)
	s := &x.Trace.Steps[1]
	held := -7 * s.Whole.NS
	for _, c := range []struct {
		n      int
		ns     int64
		off    trace.Time
		want   string
		mark   string
		line   string
		share  string
		byCost bool
	}{
		{n: 1, ns: 20_000, want: "?|–", mark: "?", line: "? 1 of 5"},
		{n: 5, ns: 20_000, off: trace.Measured(14_000), want: "20.0|14", byCost: true},
		{
			n: 5, ns: 2_000, off: trace.Measured(14_000), want: "= 2.0|14", mark: "=",
			share: "is =", byCost: true,
		},
		{n: 30, ns: -20_000, want: "-20.0|0.5", share: "is ", byCost: true},
		{
			n: 30, ns: held, want: "?|–", mark: "?", line: "? ",
			share: "is –", byCost: true,
		},
	} {
		for i := range s.Costs {
			s.Costs[i].N, s.Costs[i].OffNS = c.n, c.off
		}
		s.Costs[1].NS, s.Costs[1].Q1NS, s.Costs[1].Q3NS = c.ns, c.ns-500, c.ns+500
		d := dispatched(x, 1, analyze.Options{})
		row := d.Row("d0")
		cell := func(column string) table.Cell { return d.Cell(row, d.Column(column)) }
		if got := joined(cell("cost_us").Text, cell("cost_spread_us").Text); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		if got := cell("cost_us_mark").Text; got != c.mark {
			t.Errorf("%+v: machine-readable mark is %q", c, got)
		}
		line, doubt := d.CostLine(&d.Grouped[row]), d.Grouped[row].Cost.Doubt
		if (c.mark == "") != (doubt == "") || !strings.Contains(line, c.line) ||
			!strings.Contains(line, doubt) {
			t.Errorf("%+v: %q", c, line)
		}
		if d.ByCost() != c.byCost || !c.byCost && !strings.Contains(d.Title[1].Fit(60), "share of Σgpu") {
			t.Errorf("%+v: by cost %v: %s", c, d.ByCost(), d.Title[1].Fit(60))
		}
		if got := "is " + cell("share").Text; c.share != "" && got != c.share {
			t.Errorf("%+v: share %s", c, got)
		}
	}
}

// If the minimum time of rows is unknown, their potential saving is unknown too. It is not shown as a second
// cost, and rows are sorted by cost.
func TestNoPotentialSavingWithoutAFloor(t *testing.T) {
	for said, without := range map[string]func(*trace.Device){
		"~save unknown: no ceilings": func(d *trace.Device) { d.Ceilings = nil },
		"software device: ~save unknown; compare ratios only": func(d *trace.Device) {
			d.AdapterType = trace.AdapterCPU
		},
	} {
		tr := tracetest.Run(2, 40, 1, 1)
		without(&tr.Device)
		x := costed(t, tr, 2)
		d := dispatched(x, 2, analyze.Options{})
		made, err := costtable.Parts(ctx, x, analyze.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tab := range []*table.Table{d.Table, made} {
			if title := tab.Title[len(tab.Title)-1].Fit(300); !strings.Contains(title, said) {
				t.Errorf("title %q, want %q", title, said)
			}
			for row := range tab.Rows {
				if got := tab.Cell(row, tab.Column("save_us")).Text; got != table.Unmeasured {
					t.Errorf("%s: row %d has the potential saving %s", said, row, got)
				}
			}
		}
		cost := func(row int) float64 { return made.Cell(row, made.Column("cost_us")).Number }
		if cost(0) < 10 || cost(1) > cost(0) || cost(2) > cost(1) {
			t.Errorf("%s: costs %v, %v, %v", said, cost(0), cost(1), cost(2))
		}
		if got := x.CostOrder(); got != "cost_us" {
			t.Errorf("%s: order %s", said, got)
		}
	}
}

// Each dispatch of a step is in one row of the table of costs, so shares of isolated times add up to 100 %.
// Every row of the table of groups has a kind and overlaps rows of the table of costs.
func TestCostRowsPartitionTheStep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		x := analyze.NewIndex(tracetest.Random(r))
		for i := range x.Trace.Steps {
			tree, err := x.DispatchTree(ctx, analyze.Options{
				Selection: x.Step(i), Grouping: analyze.GroupLayer,
			})
			if err != nil {
				r.Fatal(err)
			}
			in, share := map[trace.DispatchID]int{}, 0.0
			for _, row := range costs.Parts(tree) {
				if row.Kind != costs.Dispatches {
					r.Errorf("s%d: %s is of the kind %q", i, row.Name, row.Kind)
				}
				share += row.Share
				for _, id := range row.Dispatches {
					in[id]++
				}
			}
			for _, d := range x.Trace.Steps[i].Dispatches {
				if id := x.Trace.Plans[d.Plan].Dispatch; in[id] != 1 {
					r.Errorf("s%d: dispatch %d is in %d rows", i, id, in[id])
				}
			}
			if share != 0 && math.Abs(share-1) > 1e-9 {
				r.Errorf("s%d: shares add up to %g", i, share)
			}
			for _, row := range costs.Groups(tree) {
				if row.Kind == "" || row.Kind == costs.Dispatches || len(row.Dispatches) == 0 {
					r.Errorf("s%d: group %q of the kind %q has %d dispatches", i, row.Name, row.Kind,
						len(row.Dispatches))
				}
			}
		}
	})
}

// The kinds of groups follow from their dispatches, and equal names in different layers are told apart.
func TestGroupsHaveKinds(t *testing.T) {
	t.Parallel()
	tr := tracetest.Run(2, 40, 1, 1)
	parts, err := analyze.NewIndex(tr).CostParts(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	both, err := analyze.NewIndex(tr).Named(ctx, 2, "*.norm,add*")
	if err != nil {
		t.Fatal(err)
	}
	x := costedBy(tr, 2, append(parts, both)...)
	tree, err := x.DispatchTree(ctx, analyze.Options{Selection: x.Step(2), Grouping: analyze.GroupLayer})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[costs.Kind][]string{}
	for _, row := range costs.Groups(tree) {
		kinds[row.Kind] = append(kinds[row.Kind], row.Name)
	}
	for _, list := range kinds {
		slices.Sort(list)
	}
	want := map[costs.Kind][]string{
		costs.Layers:    {"layers 0–1"},
		costs.Block:     {"attn", "epilogue", "mlp", "prologue"},
		costs.AtOnce:    {"cache_k + cache_v", "mul_silu + up", "q + k + v", "rope_q + rope_k"},
		costs.Kernel:    {"add", "linear_q4gsw_coop4_bicol", "mul", "rms_norm", "slice"},
		costs.Operators: {"sdpa_with_kv_cache"},
		costs.Together:  {"*.norm + add*"},
	}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Error(d)
	}
}
