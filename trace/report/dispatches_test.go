package report_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// timed is Tiny with a time, modelled work and a grid for the dispatch of its decode step. Another dispatch
// comes first, because the first dispatch of a step gets no verdict.
func timed(ns, bytes, flops int64, grid int) *trace.Trace {
	t := tracetest.Tiny()
	g := &t.Graph
	g.Ops = append(g.Ops, trace.Op{ID: 1, Name: "head", Kind: "linear", Inputs: []trace.ValueID{2}})
	g.Dispatches = append(g.Dispatches,
		trace.Dispatch{ID: 1, Op: 1, Reads: []trace.ValueID{2}, MaxWorkgroups: [3]int{grid, 1, 1}})
	t.Plans = append(t.Plans, trace.Plan{
		ID: 2, Dispatch: 1, Kernel: "linear", Workgroups: [3]int{grid, 1, 1}, NeededGrid: [3]int{grid, 1, 1},
		NeededGroups: int64(grid), Bytes: bytes, FLOPs: flops,
	})
	t.Device.Ceilings.FlopsPerS = 50e12
	d := trace.StepDispatch{Plan: 2}
	if ns > 0 {
		d.GPUNS = trace.Measured(ns)
	}
	t.Steps[1].Dispatches = append(t.Steps[1].Dispatches, d)
	return t
}

// second returns the launch that timed made.
func second(t *trace.Trace) *analyze.Launch {
	return &dispatched(analyze.NewIndex(t), 1, analyze.Options{}).Launches[1]
}

// A row within 1.3 times of an empty timed pass is dimmed and gets no rate.
func TestRowsAtTheFloorAreQuiet(t *testing.T) {
	for _, c := range []struct {
		ns    int64
		quiet bool
	}{{6_200, true}, {6_300, false}} { // an empty timed pass takes 4,800 ns
		x := analyze.NewIndex(timed(c.ns, 1_000_000, 0, 500))
		d := dispatched(x, 1, analyze.Options{Grouping: analyze.GroupNone})
		rate := d.Cell(1, d.Column("gb_per_s"))
		if got := d.Rows[1].Quiet; got != c.quiet || rate.Has == c.quiet {
			t.Errorf("%d ns: quiet %v, %s GB/s", c.ns, got, rate.Text)
		}
	}
}

func TestBoundOfADispatch(t *testing.T) {
	// Timing adds 4800 - 1696 = 3104 ns to a dispatch.
	for _, c := range []struct {
		name                    string
		ns, bytes, flops        int64
		grid                    int
		want                    string
		gbPerS, gflopPerS, lost float64
	}{
		// 10,485,760 B / (21,600 - 3,104 ns) = 566.9 GB/s, 13.4 % of 4240; best 3,104 + 2,473 ns.
		{"memory", 21_600, 10_485_760, 33_554_432, 1024, "mem 13%", 566.92, 1814.15, 16_022.9},
		{"compute", 103_104, 1_000_000, 2_500_000_000, 1024, "fp 50%", 10, 25_000, 50_000},
		{"too few workgroups", 13_300, 241_664, 483_328, 32, "32 wg", 23.70, 47.41, 8500},
		{"at the floor", 6240, 8192, 2048, 1024, "≈floor", 0, 0, 0},
		{"just over the floor", 6241, 8192, 2048, 8, "8 wg", 2.611, 0.6529, 1441},
		{"over the copy rate", 13_104, 53_000_000, 0, 4096, "mem 125% cached?", 5300, 0, 0},
		// 2.5 GFLOP / (43,104 - 3,104 ns) = 62.5 TFLOP/s, of 50.
		{"over the FLOP rate", 43_104, 1_000_000, 2_500_000_000, 4096, "fp 125% clock?", 25, 62_500, 0},
		{"nothing modelled", 20_000, 0, 0, 1024, "", 0, 0, 15_200},
		{"not measured", 0, 10_485_760, 33_554_432, 1024, "", 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := second(timed(c.ns, c.bytes, c.flops, c.grid)).Limit
			if l.String() != c.want {
				t.Errorf("bound by %q, want %q", l, c.want)
			}
			for _, n := range []struct {
				what      string
				got, want float64
			}{
				{"GB/s", l.BytesPerS / 1e9, c.gbPerS},
				{"GFLOP/s", l.FlopsPerS / 1e9, c.gflopPerS},
				{"lost ns", l.ExcessNS, c.lost},
			} {
				if diff := n.got - n.want; diff > 1e-3*n.want || diff < -1e-3*n.want {
					t.Errorf("%s: %v, want %v", n.what, n.got, n.want)
				}
			}
		})
	}
}

func TestNoVerdictWithoutAMeasureToJudgeBy(t *testing.T) {
	for name, change := range map[string]func(*trace.Trace){
		"no ceilings":     func(t *trace.Trace) { t.Device.Ceilings = nil },
		"software device": func(t *trace.Trace) { t.Device.AdapterType = trace.AdapterCPU },
		"timing off": func(t *trace.Trace) {
			s := &t.Steps[1]
			s.Timing = trace.TimingOff
			for i := range s.Dispatches {
				s.Dispatches[i].Samples = nil
			}
		},
	} {
		tr := timed(21_600, 10_485_760, 0, 1024)
		change(tr)
		if l := second(tr).Limit; l != (analyze.Bound{}) {
			t.Errorf("%s: bound by %+v, want none", name, l)
		}
	}
	tr := timed(21_600, 0, 0, 1)
	tr.Device.AdapterType = trace.AdapterCPU
	title := dispatched(analyze.NewIndex(tr), 1, analyze.Options{}).Title[1].String()
	if !strings.Contains(title, "compare ratios only") {
		t.Errorf("title on a software device: %q", title)
	}
}

// The working set is everything that the step moves. A part of it may fit in a cache, but the whole may not.
func TestCopyRateIsThatOfTheWorkingSet(t *testing.T) {
	tr := timed(103_104, 50_000_000, 0, 1024) // 500 GB/s
	tr.Device.Ceilings.CopyBytesPerS = []trace.CopyRate{
		{Bytes: 1 << 30, PerS: 1e12},
		{Bytes: 1 << 20, PerS: 8e12},
		{Bytes: 1 << 26, PerS: 2e12},
	}
	for _, c := range []struct {
		bytes int64
		want  string
	}{{50_000_000, "mem 25%"}, {1<<20 - 1000, "mem 0%"}, {1 << 31, "mem 2147% cached?"}} {
		tr.Plans[2].Bytes = c.bytes
		if got := second(tr).Limit.String(); got != c.want {
			t.Errorf("%d bytes: %s, want %s", c.bytes, got, c.want)
		}
	}
}

func TestWasteIsExact(t *testing.T) {
	p := trace.Plan{
		Workgroups: [3]int{256, 257, 1}, NeededGrid: [3]int{256, 4, 1}, NeededGroups: 1023,
		IdleLanes: 7,
	}
	want := analyze.Waste{Shape: 256*257 - 1024, Fold: 1, Launched: 256 * 257, Tail: 7}
	if got := analyze.WasteOf(&p, nil); got != want {
		t.Errorf("waste %+v, want %+v", got, want)
	}
}

func TestUnmeasuredTimesAreDashesAndShortOnesMarked(t *testing.T) {
	for _, c := range []struct {
		ns         int64
		us, number string
	}{{0, "–", ""}, {63, "‹", "0.063"}, {64, "0.1", "0.064"}, {21_632, "21.6", "21.632"}} {
		x := analyze.NewIndex(timed(c.ns, 0, 0, 1))
		tab := dispatched(x, 1, analyze.Options{Grouping: analyze.GroupNone}).Table
		if got := tab.Cell(1, tab.Column("us")).Text; got != c.us {
			t.Errorf("%d ns: %q, want %q", c.ns, got, c.us)
		}
		var b bytes.Buffer
		if err := tab.Print(ctx, &b, "csv", []int{1}, 0); err != nil {
			t.Fatal(err)
		}
		head, row, _ := strings.Cut(b.String(), "\n")
		col := slices.Index(strings.Split(head, ","), "us")
		if got := strings.Split(row, ",")[col]; got != c.number {
			t.Errorf("%d ns in CSV: %q, want %q", c.ns, got, c.number)
		}
	}
}

func TestDeltaComparesOnlyTimesWithKnownError(t *testing.T) {
	// The clock's resolution is 2 x 32 ns.
	for _, c := range []struct {
		name          string
		now, baseline []int64
		canary        float64 // canary of the baseline; that of the step is 0.99
		want          string
	}{
		{"one sample", []int64{10_000}, []int64{9000}, 0.99, ""},
		{"within twice the timer resolution", []int64{10_000, 10_000}, []int64{9936, 9936}, 0.99, "="},
		{"within what two runs differ by", []int64{10_000, 10_000}, []int64{9500, 9500}, 0.99, "="},
		{
			"within the quartiles",
			[]int64{9000, 9500, 10_500, 11_000},
			[]int64{9200, 9200, 9200, 9200},
			0.99,
			"=",
		},
		{"faster", []int64{8000, 8000}, []int64{12_500, 12_500}, 0.99, "-36%"},
		{"clock moved", []int64{8000, 8000}, []int64{12_500, 12_500}, 0.95, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, baseline := timed(1, 0, 0, 1), timed(1, 0, 0, 1)
			now.Steps[1].Dispatches[1].Samples, baseline.Steps[1].Dispatches[1].Samples = c.now, c.baseline
			baseline.Steps[1].Canary = c.canary
			d := dispatched(analyze.NewIndex(now), 1, analyze.Options{
				Grouping: analyze.GroupNone,
				Baseline: baseOf(analyze.NewIndex(baseline), 1),
			})
			tab := d.Table
			if got := tab.Cell(1, tab.Column("delta")).Text; got != c.want {
				t.Errorf("Δ %q, want %q", got, c.want)
			}
			if moved := c.canary < 0.96; d.ClockMoved != moved ||
				strings.Contains(tab.Title[1].String(), "clock moved: times") != moved {
				t.Errorf("clock moved: %v in %q", d.ClockMoved, tab.Title[1].String())
			}
		})
	}
}

// A graph with an additional operator has different ids for everything after it.
func TestBaseOfAnotherGraphIsComparedByName(t *testing.T) {
	tr, other := tracetest.Llama(1, 3), tracetest.Llama(1, 3)
	g := &other.Graph
	last := len(g.Dispatches) - 1
	moved := func(id trace.DispatchID) trace.DispatchID { // the last comes first
		return trace.DispatchID((int(id) + 1) % (last + 1))
	}
	slots := make([]trace.Dispatch, len(g.Dispatches))
	for _, d := range g.Dispatches {
		d.ID = moved(d.ID)
		slots[d.ID] = d
	}
	g.Dispatches = slots
	for i := range other.Plans {
		other.Plans[i].Dispatch = moved(other.Plans[i].Dispatch)
	}
	d := dispatched(analyze.NewIndex(tr), 2, analyze.Options{Baseline: baseOf(analyze.NewIndex(other), 2)})
	if got := d.Title[1].String(); !strings.Contains(got, "Δ s2: same plans") ||
		d.Joined != join.ByOperator {
		t.Error(got)
	}
}

func TestBaseOfAnotherGraphIsComparedByOrder(t *testing.T) {
	x, other := analyze.NewIndex(tracetest.Llama(1, 2)), tracetest.Tiny()
	for i := range other.Graph.Ops {
		other.Graph.Ops[i].Name += " of another model"
	}
	baseline := baseOf(analyze.NewIndex(other), 1)
	d := dispatched(x, 1, analyze.Options{Baseline: baseline})
	if d.Joined != join.ByOrder {
		t.Errorf("joined %v, title %q", d.Joined, d.Title[1].String())
	}
	if d.Launches[0].Delta.New || !d.Launches[1].Delta.New {
		t.Error("want a partner for the first dispatch and none for the second")
	}
}

func TestDispatchesThatRunNoMoreAreCounted(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(2, 2))
	d := dispatched(x, 1, analyze.Options{Baseline: baseOf(x, 0)})
	want := "Δ s0: 39 grid, 14 route and 40 params, 4 new, 6 gone"
	if !strings.Contains(d.Title[1].String(),
		want) {
		t.Errorf("title %q, want %q", d.Title[1].String(), want)
	}
}

func TestOutlierRecursInMostRepeats(t *testing.T) {
	tr := tracetest.Run(8, 1, 1)
	x := analyze.NewIndex(tr)
	slow := dispatch(t, x, "layers.5.mlp.down")
	outliers := func(slowIn int) (names []string) {
		for i := range tr.Steps[1].Dispatches {
			d := &tr.Steps[1].Dispatches[i]
			d.Samples = []int64{9984, 10_016, 9984, 10_016, 10_000, 9984, 10_016, 10_000}
			for k := range d.Samples {
				d.Samples[k] += int64(i%3) * 32
				if tr.Plans[d.Plan].Dispatch == slow && k < slowIn {
					d.Samples[k] += 3000
				}
			}
		}
		for _, note := range dispatched(analyze.NewIndex(tr), 1, analyze.Options{}).Table.Notes {
			if strings.HasPrefix(note, "outlier") {
				names = append(names, note)
			}
		}
		return names
	}
	if got := outliers(4); got != nil {
		t.Errorf("slow in 4 of 8 repeats: %q, want no outlier", got)
	}
	if got := outliers(5); len(got) != 1 || !strings.Contains(got[0], "layers.5.mlp.down") {
		t.Errorf("slow in 5 of 8 repeats: %q, want layers.5.mlp.down", got)
	}
}

func TestLayersOfAnotherShapeFoldApart(t *testing.T) {
	tr := tracetest.Run(7, 1)
	for i := range tr.Graph.Ops { // layer 5 has another block, as in a model where most layers have a window
		if o := &tr.Graph.Ops[i]; o.Layer != nil && *o.Layer == 5 && o.Block == "attn" {
			o.Block = "full"
		}
	}
	tab := dispatched(analyze.NewIndex(tr), 0, analyze.Options{}).Table
	rows, err := tab.Select(ctx, table.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	var top []string
	for _, r := range rows {
		if tab.Rows[r].Depth == 0 {
			top = append(top,
				tab.Cell(r, tab.Column("op")).Text+" "+tab.Cell(r, tab.Column("kernel")).Text)
		}
	}
	want := []string{
		"prologue 3 dispatches, 2 ≈floor", "layers 0–4, 6 20 each, ×6",
		"layer 5 20 dispatches, 7 ≈floor", "epilogue 3 dispatches, 1 ≈floor",
	}
	if d := cmp.Diff(want, top); d != "" {
		t.Error(d)
	}
}

func TestRowKeysAreTheSameInAllSteps(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(4, 26))
	keys := func(step int) (list []string) {
		for _, r := range dispatched(x, step, analyze.Options{}).Rows {
			list = append(list, r.Key)
		}
		return list
	}
	want := keys(3)
	if n := len(slices.Compact(slices.Sorted(slices.Values(want)))); n != len(want) {
		t.Errorf("%d keys for %d rows", n, len(want))
	}
	for _, step := range []int{4, 22, 23, 25} {
		if d := cmp.Diff(want, keys(step)); d != "" {
			t.Errorf("step %d: %s", step, d)
		}
	}
}

func TestSumsOfFoldsAreThoseOfTheirDispatches(t *testing.T) {
	x, step, _ := decode(t)
	for fold := analyze.GroupLayer; fold <= analyze.GroupNone; fold++ {
		d := dispatched(x, step, analyze.Options{Grouping: fold})
		var sum, share float64
		n := 0
		for _, r := range d.Grouped {
			if r.Depth == 0 {
				sum, share, n = sum+r.SumNS, share+r.Share, n+r.Count()
			}
		}
		want := 0.0
		for _, l := range d.Launches {
			want += l.Time.Median
		}
		if n != len(d.Launches) || sum-want > 1e-3 || want-sum > 1e-3 || share < 0.999999 ||
			share > 1.000001 {
			t.Errorf("grouped by %s: %d of %d dispatches, sum %v of %v, share %v", fold,
				n, len(d.Launches), sum,
				want, share)
		}
	}
}

func TestLiveDimsAreThoseOfTheLastChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOfN(rapid.SampledFrom([]int{1, 1, 1, 7, 40}), 1, 12).Draw(t, "chunks")
		tr := tracetest.Run(1, chunks...)
		grown := *tr
		grown.Steps = tr.Steps[:rapid.IntRange(0, len(tr.Steps)).Draw(t, "known at first")]
		x := analyze.NewIndex(&grown)
		x = x.Next(tr)
		now := map[trace.ValueID][]int{}
		for step, s := range tr.Steps {
			for _, d := range s.Dims {
				now[d.Value] = d.Dims
			}
			for v := range tr.Graph.Values {
				want := now[trace.ValueID(v)]
				if want == nil {
					want = tr.Graph.Values[v].MaxDims
				}
				if got := x.Dims(step, trace.ValueID(v)); !slices.Equal(got, want) {
					t.Fatalf("value %d at step %d: %v, want %v", v, step, got, want)
				}
			}
		}
	})
}

func TestTablesInEveryFormatAndFold(t *testing.T) {
	x, step, baseline := decode(t)
	small := analyze.NewIndex(tracetest.Llama(1, 2))
	for _, c := range []struct {
		name, format string
		width        int
		table        *table.Table
		s            table.Selection
	}{
		{
			"text at 80", "text", 80, dispatched(x, step, analyze.Options{Baseline: baseline}).Table,
			table.Selection{},
		},
		{
			"text at 200", "text", 200, dispatched(x, step, analyze.Options{Baseline: baseline}).Table,
			table.Selection{},
		},
		{
			"by op", "text", 140, dispatched(x, step, analyze.Options{Grouping: analyze.GroupOp}).Table,
			table.Selection{Sort: "lost_us", Reverse: true},
		},
		{
			"by kernel", "text", 140,
			dispatched(x, step, analyze.Options{Grouping: analyze.GroupKernel}).Table,
			table.Selection{Sort: "sum_us", Reverse: true},
		},
		{
			"prefill", "text", 140, dispatched(x, 0, analyze.Options{Baseline: baseline}).Table,
			table.Selection{},
		},
		{"csv", "csv", 0, dispatched(small, 1, analyze.Options{}).Table, table.Selection{All: true}},
		{
			"json", "json", 0, dispatched(small, 1, analyze.Options{}).Table,
			table.Selection{All: true},
		},
		{
			"markdown", "md", 0, dispatched(small, 1, analyze.Options{}).Table,
			table.Selection{All: true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, err := c.table.Select(ctx, c.s)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := c.table.Print(ctx, &b, c.format, rows, c.width); err != nil {
				t.Fatal(err)
			}
			golden.RequireEqual(t, b.Bytes())
		})
	}
}

func BenchmarkDispatchTable(b *testing.B) {
	x := analyze.NewIndex(tracetest.Llama(32, 3))
	baseline := baseOf(x, 1)
	for b.Loop() {
		dispatched(x, 2, analyze.Options{Baseline: baseline})
	}
}

// The detail of a row computes only that dispatch, and agrees with the table.
func TestDetailAgreesWithTheTable(t *testing.T) {
	for _, tr := range []*trace.Trace{tracetest.Llama(2, 25), tracetest.Run(2, 42, 1, 7, 1)} {
		x := analyze.NewIndex(tr)
		last := len(tr.Steps) - 1
		for _, baseline := range []*analyze.Baseline{nil, baseOf(x, 0), baseOf(x, last-1)} {
			tab := dispatched(x, last, analyze.Options{Baseline: baseline})
			for i := range tab.Launches {
				want := tab.Launches[i]
				d := detail(x, last, want.ID, baseline)
				if d == nil {
					t.Fatalf("dispatch %d ran but has no detail", want.ID)
				}
				if d.Level != want.Level || d.Index.Trace != tr || d.Launch.Index != want.Index ||
					d.Time != want.Time || d.Limit != want.Limit || d.Waste != want.Waste ||
					!want.Delta.New &&
						(d.Delta.PlanDiff != want.Delta.PlanDiff || d.Baseline != want.Delta.From) {
					t.Errorf("dispatch %d: %+v, the table has %+v", want.ID, d.Launch, want)
				}
			}
		}
	}
}
