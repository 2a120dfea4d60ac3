package report_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
)

// Two or three samples have no quartiles. A difference counts only if it is much larger than their range.
func TestFewSamplesHaveNoError(t *testing.T) {
	for _, c := range []struct {
		baseline, now []int64
		equal         bool
	}{
		{[]int64{10_000, 10_400}, []int64{10_300, 10_600}, true},
		{[]int64{10_000, 10_400}, []int64{10_800, 11_000}, true},
		{[]int64{10_000, 10_400}, []int64{30_000, 30_200}, false},
		{[]int64{10_000, 10_000}, []int64{10_020, 10_020}, true}, // within twice the resolution of 32 ns
		{[]int64{10_000, 10_400, 10_200}, []int64{10_300, 10_600, 10_500}, true},
	} {
		tr := timed(1, 0, 0, 1)
		tr.Steps[1].Dispatches[1].Samples = c.now
		before := timed(1, 0, 0, 1)
		before.Steps[1].Dispatches[1].Samples = c.baseline
		x := analyze.NewIndex(tr)
		baseline := baseOf(analyze.NewIndex(before), 1)
		d := dispatched(x, 1, analyze.Options{Grouping: analyze.GroupNone, Baseline: baseline})
		if got := d.Launches[1].Delta; !got.Timed || got.Equal != c.equal {
			t.Errorf("%v against %v: %+v, want equal %v", c.now, c.baseline, got, c.equal)
		}
		if cell := d.Cell(1, d.Column("iqr_us")); cell.Has {
			t.Errorf("%v: IQR %s", c.now, cell.Text)
		}
		lines := strings.Join(report.DetailLines(detail(x, 1, 1, nil)), "\n")
		if want := fmt.Sprintf("median of %d (", len(c.now)); !strings.Contains(lines, want) {
			t.Errorf("%v: the detail does not say %q:\n%s", c.now, want, lines)
		}
	}
}

func TestOneSampleIsNoJudgeOfOutliers(t *testing.T) {
	tr := tracetest.Llama(16, 18)
	for _, r := range dispatched(analyze.NewIndex(tr), 16, analyze.Options{}).Grouped {
		if r.Judged || r.Outlier >= 0 {
			t.Errorf("%s: one sample gave a verdict", r.Label)
		}
	}
	judged := 0
	for _, r := range dispatched(analyze.NewIndex(tr), 17, analyze.Options{}).Grouped {
		if r.Judged {
			judged++
		}
	}
	if judged == 0 {
		t.Error("20 repeats of 16 layers give no verdict")
	}
}

// With few repeats, one of sixteen equal members that is slow in most of them is noise.
func TestAFewRepeatsAreNoJudgeOfOutliers(t *testing.T) {
	for n, want := range map[int]bool{3: false, 4: false, 7: false, 8: true} {
		tr := tracetest.Llama(16, 18)
		for i := range tr.Steps[17].Dispatches {
			d := &tr.Steps[17].Dispatches[i]
			d.Samples = d.Samples[:n]
			if x := tr.Graph.Dispatches[tr.Plans[d.Plan].Dispatch]; tr.Graph.Ops[x.Op].Name == "layers.3.mlp.gate" {
				d.Samples = slices.Repeat([]int64{900_000}, n)
			}
		}
		notes := dispatched(analyze.NewIndex(tr), 17, analyze.Options{}).Notes
		told := slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "outlier: ") })
		if told != want {
			t.Errorf("%d repeats: outlier reported: %v\n%s", n, told, strings.Join(notes, "\n"))
		}
	}
}

// The text says if there is one sample or only a few. If times vary by a large factor, it is not "no
// outlier".
func TestStabilitySaysWhatItIsDrawnFrom(t *testing.T) {
	said := func(tr *trace.Trace, step int) (string, bool) {
		d := dispatched(analyze.NewIndex(tr), step, analyze.Options{})
		for i := range d.Grouped {
			if r := &d.Grouped[i]; r.Label == "gate" {
				return d.Stability(r)
			}
		}
		t.Fatal("no row for gate")
		return "", false
	}
	tr := tracetest.Llama(16, 18)
	if got, more := said(tr, 16); got != "1 sample" || !more {
		t.Errorf("%q, more %v", got, more)
	}
	if got, more := said(tr, 17); got != "no outlier among 16 layers in 20 repeats" || more {
		t.Errorf("%q, more %v", got, more)
	}
	gates := 0
	for i := range tr.Steps[17].Dispatches { // half of the layers take twelve times as long
		d := &tr.Steps[17].Dispatches[i]
		if g := &tr.Graph; g.Ops[g.Dispatches[tr.Plans[d.Plan].Dispatch].Op].ShortName() != "gate" {
			continue
		}
		for k := range d.Samples {
			d.Samples[k] = 1000 * (1 + 11*int64(gates%2))
		}
		gates++
	}
	if got, more := said(tr, 17); !strings.Contains(got, " 12.0×") || more {
		t.Errorf("%q, more %v", got, more)
	}
}

// The members are layers in one grouping and dispatches in the others. Their runs are the repeats of one
// step, or several steps.
func TestStabilityNamesItsMembersAndRuns(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(16, 20))
	for _, c := range []struct {
		selection string
		fold      analyze.Grouping
		want      string
	}{
		{"s19", analyze.GroupLayer, "no outlier among 16 layers in 20 repeats"},
		{"s19", analyze.GroupOp, "no outlier among 32 dispatches in 20 repeats"},
		{"decode", analyze.GroupLayer, "no outlier among 16 layers in 19 steps"},
		{"decode", analyze.GroupKernel, "no outlier among 32 dispatches in 19 steps"},
	} {
		selection, err := x.ParseSelection(c.selection)
		if err != nil {
			t.Fatal(err)
		}
		d, err := report.Dispatches(ctx, x, analyze.Options{Selection: selection, Grouping: c.fold})
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for i := range d.Grouped {
			if got, _ := d.Stability(&d.Grouped[i]); got != "" {
				said = append(said, got)
			}
		}
		if !slices.Contains(said, c.want) {
			t.Errorf("%s, grouped by %s: %q, want %q", c.selection, c.fold, said, c.want)
		}
	}
}

func TestPerfectSNRIsInfiniteAndNoneIsEmpty(t *testing.T) {
	tr := timed(1, 0, 0, 1)
	tr.Steps[1].Dispatches[1].Error = &trace.NumericError{SNRdB: trace.Number(math.Inf(1)), Reference: "float64"}
	x := analyze.NewIndex(tr)
	d := dispatched(x, 1, analyze.Options{Grouping: analyze.GroupNone})
	col := d.Column("gap_db")
	if got := d.Cell(1, col); got.Text != "∞" || !got.Has {
		t.Errorf("perfect: %+v", got)
	}
	if got := d.Cell(0, col); got.Text != "" || got.Has {
		t.Errorf("not compared: %+v", got)
	}
	if got := strings.Join(report.DetailLines(detail(x, 1, 1, nil)), "\n"); !strings.Contains(got,
		"SNR ∞ dB") {
		t.Error(got)
	}
	var b bytes.Buffer
	if err := d.Print(ctx, &b, "json", []int{1}, 0); err != nil ||
		!strings.Contains(b.String(), `"gap_db": "Infinity"`) {
		t.Errorf("%v: %s", err, &b)
	}
	tr.Steps[1].Dispatches[1].Error.SNRdB = trace.Number(math.NaN())
	tr.Steps[1].Dispatches[0].Error = &trace.NumericError{SNRdB: 20, Reference: "float64"}
	folded := dispatched(analyze.NewIndex(tr), 1, analyze.Options{Grouping: analyze.GroupLayer})
	for r := range folded.Grouped {
		if folded.Grouped[r].Count() == 2 && folded.Cell(r, col).Text != "NaN" {
			t.Errorf("the worst of NaN and 20 dB is %s", folded.Cell(r, col).Text)
		}
	}
}

// The text for a barrier comes from recorded waits only. It never guesses.
func TestABarrierWaitsForWhatWasRecorded(t *testing.T) {
	tr := tracetest.Tiny()
	g := &tr.Graph
	slot := 3
	for _, name := range []string{"old", "new"} {
		g.Values = append(g.Values, trace.Value{
			ID: trace.ValueID(
				len(g.Values),
			), Name: name, Kind: "tensor", Role: trace.RoleIntermediate, Slot: &slot,
		})
	}
	before, after := trace.ValueID(len(g.Values)-2), trace.ValueID(len(g.Values)-1)
	tr = appended(tr, before, after)
	barrier := func() string {
		for _, l := range report.DetailLines(detail(analyze.NewIndex(tr), 1, 1, nil)) {
			if strings.HasPrefix(l, "waits ") {
				return l
			}
		}
		return ""
	}
	s := &tr.Steps[1]
	s.Levels = []trace.DispatchID{0, 1}
	if got := barrier(); got != "waits  unknown: waits were not recorded" {
		t.Error(got)
	}
	s.Waits = []trace.Wait{{Dispatch: 1, Value: before, Kind: "raw", For: 0}}
	want := "waits  old (read after write) of " + g.Ops[0].Name
	if got := barrier(); got != want {
		t.Error(got)
	}
	s.Waits = []trace.Wait{{Dispatch: 1, Value: after, Kind: "waw", For: 0}}
	want = "waits  new (write after write, in memory shared with old) of "
	if got := barrier(); got != want+g.Ops[0].Name {
		t.Error(got)
	}
	s.Levels = []trace.DispatchID{0}
	if got := barrier(); got != "waits  nothing: no barrier before this dispatch" {
		t.Error(got)
	}
}

// appended returns Tiny with a second dispatch in its decode step. The first dispatch also writes a value.
func appended(t *trace.Trace, writes, reads trace.ValueID) *trace.Trace {
	g := &t.Graph
	g.Ops = append(g.Ops, trace.Op{ID: 1, Name: "head", Kind: "linear", Inputs: []trace.ValueID{reads}})
	g.Dispatches[0].Writes = append(g.Dispatches[0].Writes, writes)
	g.Dispatches = append(g.Dispatches, trace.Dispatch{ID: 1, Op: 1, Reads: []trace.ValueID{reads}})
	t.Plans = append(t.Plans, trace.Plan{ID: trace.PlanID(len(t.Plans)), Dispatch: 1, Kernel: "linear"})
	second := trace.StepDispatch{Plan: trace.PlanID(len(t.Plans) - 1)}
	t.Steps[1].Dispatches = append(t.Steps[1].Dispatches, second)
	return t
}

// The cost of explaining a long chain of operators grows linearly with its length.
func TestWhyOfALongChainCostsItsLength(t *testing.T) {
	cost := func(n int) float64 { // bytes
		x := analyze.NewIndex(chain(n))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		why := why.Of(x, 0, trace.DispatchID(n-1))
		runtime.ReadMemStats(&after)
		if links := why.Grid.Causes[0].Links; len(links) != n {
			t.Errorf("%d operators: a chain of %d links", n, len(links))
		}
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	cost(10)
	if short, long := cost(200), cost(2000); long > 15*short {
		t.Errorf("2,000 operators cost %.0f kB, 200 cost %.0f", long/1e3, short/1e3)
	}
}

// chain returns a graph of operators in sequence. A step plans all of them anew.
func chain(n int) *trace.Trace {
	t := &trace.Trace{Schema: trace.Schema}
	g := &t.Graph
	step := trace.Step{Phase: trace.Decode, Timing: trace.TimingOff}
	pass := trace.Pass{Dirty: []trace.ValueID{0}}
	for i := range n + 1 {
		g.Values = append(g.Values, trace.Value{
			ID: trace.ValueID(i), Kind: "tensor",
			Role: trace.RoleIntermediate,
		})
	}
	for i := range n {
		in, out := trace.ValueID(i), trace.ValueID(i+1)
		plan := trace.PlanID(i)
		g.Ops = append(g.Ops, trace.Op{
			ID: trace.OpID(i), Inputs: []trace.ValueID{in}, Outputs: []trace.ValueID{out},
		})
		g.Dispatches = append(g.Dispatches, trace.Dispatch{ID: trace.DispatchID(i), Op: trace.OpID(i)})
		t.Plans = append(t.Plans, trace.Plan{ID: plan, Dispatch: trace.DispatchID(i)})
		step.Dispatches = append(step.Dispatches, trace.StepDispatch{Plan: plan})
		pass.Hooks = append(pass.Hooks, trace.Hook{
			Op: trace.OpID(i), Triggers: []trace.ValueID{in},
			Changed: []trace.Change{{Value: out, To: []int{i}}}, Plans: []trace.PlanChange{{To: &plan}},
		})
	}
	step.Resize.Passes = []trace.Pass{pass}
	t.Steps = []trace.Step{step}
	return t
}
