package report_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/report/costtable"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// overlap is the time that the parts of a costed step share, in addition to the cost of each.
const overlap = 7000

// costed returns the index of a trace in which a step has costs. A part costs half of the time of its
// dispatches, in µs. Of the parts that contain no other part, the k-th costs 1 µs less than the previous one.
func costed(t *testing.T, tr *trace.Trace, step int) *analyze.Index {
	t.Helper()
	parts, err := analyze.NewIndex(tr).CostParts(ctx, step)
	if err != nil {
		t.Fatal(err)
	}
	return costedBy(tr, step, parts...)
}

func costedBy(tr *trace.Trace, step int, parts ...trace.Part) *analyze.Index {
	out := *tr
	out.Steps = slices.Clone(tr.Steps)
	s := &out.Steps[step]
	took := map[trace.DispatchID]int64{}
	all := int64(0)
	for _, d := range s.Dispatches {
		ns, _ := d.GPUNS.NS()
		took[tr.Plans[d.Plan].Dispatch] = ns / 2
		all += ns / 2
	}
	for _, p := range parts {
		c := trace.Cost{Name: p.Name, Dispatches: p.Dispatches, N: 30}
		for _, id := range p.Dispatches {
			c.NS += took[id]
		}
		c.Q1NS, c.Q3NS = c.NS-400, c.NS+600
		s.Costs = append(s.Costs, c)
	}
	s.Whole = &trace.Whole{NS: all + overlap, Q1NS: all, Q3NS: all + 2*overlap, N: 31}
	return analyze.NewIndex(&out)
}

// The names of rows are valid before the first step runs. Names that no row has are refused.
func TestNamesAreKnownBeforeAStepRuns(t *testing.T) {
	whole := tracetest.Run(2, 40, 7, 1)
	bare := *whole
	bare.Plans, bare.Steps, bare.Events = nil, nil, nil
	before := analyze.NewIndex(&bare)
	for step := range whole.Steps {
		d := dispatched(analyze.NewIndex(whole), step, analyze.Options{})
		for i := range d.Grouped {
			r, l := &d.Grouped[i], d.Launch(&d.Grouped[i])
			if r.Joint {
				continue
			}
			names := []string{d.Called(i), r.Label, l.Op.Kind, l.Plan.Kernel, "attn.*," + d.Called(i), "lay*"}
			for _, name := range names {
				if err := before.Nameable(name); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if err := before.Nameable("lay*,*ayers*,layers 1–2"); err != nil {
		t.Error(err) // a step decides which layers share a row
	}
	for names, want := range map[string]string{
		"attn.q,norms": "norms", "x*": "x*", "[": "[",
		"layers.0.attn.q": "layers.0.attn.q", // an operator of one layer has no row
	} {
		var wrong *analyze.NameError
		if err := before.Nameable(names); !errors.As(err, &wrong) || wrong.Name != want {
			t.Errorf("%s: %v, want one about %s", names, err, want)
		}
	}
}

func TestCostPartsAreTheRowsOfLayers(t *testing.T) {
	x := analyze.NewIndex(tracetest.Run(2, 40, 1))
	parts, err := x.CostParts(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	of := map[string]trace.Part{}
	for _, p := range parts {
		names = append(names, fmt.Sprintf("%s %d", p.Name, len(p.Dispatches)))
		of[p.Name] = p
	}
	golden.RequireEqual(t, []byte(strings.Join(names, "\n")+"\n"))
	if attn, mlp, both := of["attn"], of["mlp"], of["layers 0–1"]; len(attn.Dispatches)+len(mlp.Dispatches) !=
		len(both.Dispatches) {
		t.Errorf("%d dispatches in the layers, %d in attention, %d in the MLP", len(both.Dispatches),
			len(attn.Dispatches), len(mlp.Dispatches))
	}
	for _, p := range parts {
		if !slices.IsSorted(p.Dispatches) {
			t.Errorf("%s: %v", p.Name, p.Dispatches)
		}
	}
}

// The title says what to fix first and how much it would save. If no ceilings give the minimum time of a row,
// its whole cost counts as the possible saving.
func TestTheTitleNamesWhatToFixFirst(t *testing.T) {
	tr := tracetest.Run(2, 40, 1, 1)
	for kind, want := range map[trace.AdapterType]string{trace.AdapterDiscrete: "~save", trace.AdapterCPU: "cost"} {
		tr.Device.AdapterType = kind
		d := dispatched(costed(t, tr, 2), 2, analyze.Options{})
		title, most := d.Title[1].String(), 0.0
		for i := range d.Grouped {
			r := &d.Grouped[i]
			if r.Group || r.Cost == nil {
				continue
			}
			ns, ok := r.Cost.SaveNS()
			if !ok {
				ns = float64(r.Cost.NS)
			}
			most = max(most, ns)
		}
		if !strings.Contains(title, fmt.Sprintf(": %s %.0f ± ", want, most/1e3)) ||
			!strings.Contains(title, "fix first ") {
			t.Errorf("%s: the largest saving is %.0f ns: %s", kind, most, title)
		}
	}
	bare := dispatched(analyze.NewIndex(tr), 2, analyze.Options{}).Title[1].String()
	if strings.Contains(bare, "fix") {
		t.Errorf("without costs: %s", bare)
	}
}

// Rows that run at the same time hide each other's cost. So they are also measured together, as a row that
// ranks among the others in a list without headings. Each row shows the joint cost. Other views have no joint
// row.
func TestRowsThatRunAtOnceAreCostedTogether(t *testing.T) {
	tr := tracetest.Run(2, 40, 1, 1)
	parts, err := analyze.NewIndex(tr).CostParts(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	d := dispatched(costedBy(tr, 2, parts...), 2, analyze.Options{})
	q := slices.IndexFunc(d.Grouped, func(r analyze.DispatchRow) bool { return r.Label == "q" })
	joint := slices.IndexFunc(d.Grouped, func(r analyze.DispatchRow) bool { return r.Label == "q + k + v" })
	if q < 0 || joint < 0 {
		t.Fatalf("q is row %d, q + k + v %d", q, joint)
	}
	was := dispatched(analyze.NewIndex(tr), 2, analyze.Options{})
	if was.Grouped[q].ExcessNS == 0 || d.Grouped[q].ExcessNS != 0 {
		t.Error("excess must be set only without a cost")
	}
	if r := &d.Grouped[joint]; r.Cost == nil || r.Count() != 6 || r.SumNS != 2*float64(r.Cost.NS) {
		t.Errorf("%d dispatches of %.0f ns have the cost %v", r.Count(), r.SumNS, r.Cost)
	}
	if got := d.JointLine(q); !strings.HasPrefix(got, "q + k + v at once: cost 28.9 µs a step") {
		t.Errorf("line of q: %q", got)
	}
	if got := d.JointLine(joint); got != "" {
		t.Errorf("line of the joint row: %q", got)
	}
	shown := func(tab *table.Table, sort string) bool {
		rows, err := tab.Select(ctx, table.Selection{Sort: sort, All: true})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(rows, joint)
	}
	if shown(d.Table, "") || !shown(d.Table.Apart(), "save_us") {
		t.Error("q + k + v must be a row only in the list without headings")
	}
	for _, name := range []string{"grid", "grid_min", "needed", "max", "wg"} {
		if c := d.Cell(joint, d.Column(name)); c.Has {
			t.Errorf("%s of %d kernels: %s", name, len(d.Grouped[joint].Joins), c.Text)
		}
	}
	if s, _ := d.Shared(); s.Rows != 26 {
		t.Errorf("%d rows share a cost, want 26", s.Rows)
	}
	costs := map[string]int{}
	for i, p := range parts {
		costs[p.Name] = i
	}
	alone := dispatched(costedBy(tr, 2, parts[costs["attn.q"]]), 2, analyze.Options{})
	if n := len(d.Grouped) - len(alone.Grouped); n != 5 || alone.JointLine(q) != "" {
		t.Errorf("%d more rows than without joint costs, want 5", n)
	}
	for _, row := range []struct {
		a, b string
		want bool
	}{{"q", "k", true}, {"v", "rope_q", false}, {"embed", "slice cos", true}} {
		at := func(label string) int {
			return slices.IndexFunc(d.Grouped, func(r analyze.DispatchRow) bool { return r.Label == label })
		}
		if got := d.AtOnce(at(row.a), at(row.b)); got != row.want {
			t.Errorf("%s and %s at once: %v", row.a, row.b, got)
		}
	}
}

// The title says which total a saving is a part of. If the GPU idles for longer than any row would save, the
// title names the idle time first.
func TestFixFirstNamesIdleGPU(t *testing.T) {
	x := costed(t, tracetest.Run(2, 40, 1, 1), 2)
	w := x.Trace.Steps[2].Whole
	title := func() table.Line { return dispatched(x, 2, analyze.Options{}).Title[1] }
	of := fmt.Sprintf(" %% of the whole step's %.0f µs)", float64(w.NS)/1e3)
	if got := title().String(); !strings.Contains(got, of) || strings.Contains(got, "GPU idle") {
		t.Errorf("%s, want%s", got, of)
	}
	for idle, is := range map[int64]bool{0: false, 10_000_000: true} {
		c := &x.Trace.Steps[2].CPU
		c.ResizeNS, c.UploadNS, c.SampleNS = trace.Time{}, trace.Time{}, trace.Time{}
		w.WallNS, w.WallOff, w.OffNS = trace.Measured(w.NS+idle), trace.Measured(900), trace.Measured(900)
		got := title().String()
		if strings.Contains(got, " ms, see Step), then q + k + v: ~save ") != is {
			t.Errorf("%d ns idle: %s", idle, got)
		}
	}
}

func TestCostsStandInTheRowsTheyAreOf(t *testing.T) {
	tr := tracetest.Run(2, 40, 1, 1)
	x := costed(t, tr, 2)
	d := dispatched(x, 2, analyze.Options{})
	for i := range d.Grouped {
		r := &d.Grouped[i]
		open := r.Parent < 0 || d.Grouped[r.Parent].Open
		switch {
		case !open && r.Cost != nil, open && r.Cost == nil:
			t.Errorf("%s: cost %v", r.Key, r.Cost)
		case open && (float64(r.Cost.NS) > r.SumNS/2+1 || float64(r.Cost.NS) < r.SumNS/2-50):
			t.Errorf("%s costs %d, isolated it takes %.0f", r.Key, r.Cost.NS, r.SumNS)
		}
	}
	if shared, ok := d.Shared(); !ok || shared.NS != overlap {
		t.Errorf("shared %v, %v", shared, ok)
	}
	row := d.Row("layer0/attn/d3")
	if row < 0 {
		t.Fatal("no row layer0/attn/d3")
	}
	r := d.Grouped[row]
	c := tr.Device.Ceilings
	bytes, flops, all := 0.0, 0.0, int64(0)
	for i := range d.Launches {
		all += d.Launches[i].Plan.Bytes
	}
	for _, u := range r.Units {
		p := d.Launches[u[0]].Plan
		bytes, flops = bytes+float64(p.Bytes), flops+float64(p.FLOPs)
	}
	rate := 0.0
	for _, at := range c.CopyBytesPerS {
		if rate == 0 && at.Bytes >= all {
			rate = at.PerS
		}
	}
	want := max(bytes*1e9/rate, flops*1e9/c.FlopsPerS)
	if got := r.Cost.LeastNS; rate == 0 || got < want*0.999 || got > want*1.001 {
		t.Errorf("minimum time %v ns, want %v", got, want)
	}
	if got, ok := r.Cost.SaveNS(); !ok || got != float64(r.Cost.NS)-r.Cost.LeastNS {
		t.Errorf("save %v of %d", got, r.Cost.NS)
	}
	line := d.CostLine(&r)
	golden.RequireEqual(t, append(printed(t, d.Table, table.Selection{}, 110), line...))
}

func TestCostsShowInSelectionsWithTheirStep(t *testing.T) {
	x := costed(t, tracetest.Run(2, 40, 1, 1, 1), 2)
	for word, want := range map[string]bool{
		"decode": true, "all": true, "s2": true, "prefill": false, "s3": false,
	} {
		selection, err := x.ParseSelection(word)
		if err != nil {
			t.Fatal(err)
		}
		d, err := report.Dispatches(ctx, x, analyze.Options{Selection: selection})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range d.Grouped {
			if d.Grouped[i].Cost != nil {
				n++
			}
		}
		said := strings.Contains(d.Title[1].Fit(200), "cost at s2, 30 rounds")
		if (n > 10) != want || said != want {
			t.Errorf("%s: %d rows have costs, shown in the title: %v", word, n, said)
		}
	}
}

// After a measurement every row has a cost in every grouping that combines dispatches. If a grouping was not
// measured, its title says so.
func TestRowsOfEveryFoldHaveCosts(t *testing.T) {
	x := costed(t, tracetest.Run(2, 40, 1, 1), 2)
	for _, fold := range []analyze.Grouping{analyze.GroupLayer, analyze.GroupOp, analyze.GroupKernel} {
		d := dispatched(x, 2, analyze.Options{Grouping: fold})
		if n := d.Uncosted(); n > 0 || !d.Costed() {
			t.Errorf("grouped by %s: %d rows have no cost", fold, n)
		}
	}
	tr := tracetest.Run(2, 40, 1)
	parts, err := analyze.NewIndex(tr).CostParts(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := dispatched(
		costedBy(tr, 1, parts[0]),
		1,
		analyze.Options{Grouping: analyze.GroupOp},
	) // the whole prologue
	if title := d.Title[1].Fit(110); d.Costed() || d.Uncosted() == 0 ||
		!strings.Contains(title, "no cost was measured for these rows") {
		t.Errorf("%d rows without a cost: %s", d.Uncosted(), title)
	}
}

// When the title is shortened, the number of rounds goes before the shared cost. Without the shared cost,
// rows would not seem to add up.
func TestSharedCostIsShownBesideTheDetail(t *testing.T) {
	tr := tracetest.Run(2, 40, 1, 1)
	tr.Steps[2].Timing = trace.TimingDispatch
	d := dispatched(costed(t, tr, 2), 2, analyze.Options{})
	for w, want := range map[int]string{
		200: "cost at s2, 30 rounds · 26 rows share 7.0 ± 2.5 µs", 60: " · 26 rows share 7.0 ± 2.5 µs",
		22: "26 rows share 7.0 µs",
	} {
		if line := d.Title[1].Fit(w); !strings.Contains(line, want) {
			t.Errorf("at width %d: %q, want %q", w, line, want)
		}
	}
}

// Rows that cost more in sum than the step share a negative time. The title shows it.
func TestRowsCostingMoreThanTheStep(t *testing.T) {
	x := costed(t, tracetest.Run(2, 40, 1, 1), 2)
	for less, want := range map[int64]string{
		3_000: "26 rows share 4.0 ± 2.5 µs", 9_000: "shared time of 26 rows is within the noise (± 2.5 µs)",
		12_000: "costs of 26 rows add up to 5.0 ± 2.5 µs more than the step",
	} {
		x.Trace.Steps[2].Whole.NS -= less
		if line := dispatched(x, 2, analyze.Options{}).Title[1].Fit(200); !strings.Contains(line, want) {
			t.Errorf("whole step %d ns shorter: %q, want %q", less, line, want)
		}
		x.Trace.Steps[2].Whole.NS += less
	}
}

func joined(parts ...string) string { return strings.Join(parts, "|") }

// A row is named as what to fix first only if its saving exceeds its error. A cost or a potential saving
// within the error does not count.
func TestFixFirstIgnoresCostsWithinNoise(t *testing.T) {
	tr := tracetest.Run(2, 40, 1, 1)
	for kind, said := range map[trace.AdapterType]string{
		trace.AdapterDiscrete: ": ~save ", trace.AdapterCPU: ": cost ",
	} {
		tr.Device.AdapterType = kind
		x := costed(t, tr, 2)
		s := &x.Trace.Steps[2]
		title := func() string { return dispatched(x, 2, analyze.Options{}).Title[1].Fit(400) }
		if got := title(); !strings.Contains(got, said) || strings.Contains(got,
			"no cost exceeds the noise") {
			t.Errorf("%s, 30 rounds: %s", kind, got)
		}
		for i := range s.Costs {
			s.Costs[i].N = 1
		}
		s.Whole.Q1NS, s.Whole.Q3NS = s.Whole.NS-50_000, s.Whole.NS+50_000
		want := "1 of 5 rounds: the errors of the costs are not known yet"
		if got := title(); !strings.Contains(got, want) || strings.Contains(got, "fix first") {
			t.Errorf("%s, 1 round: %s", kind, got)
		}
	}
	tr.Device.AdapterType = trace.AdapterDiscrete
	x := costed(t, tr, 2)
	d := dispatched(x, 2, analyze.Options{})
	for i := range d.Grouped { // costs 0.3 µs above what the device needs at least
		if c := d.Grouped[i].Cost; c != nil {
			c.NS = int64(c.LeastNS) + 300
			c.Q1NS, c.Q3NS = c.NS-400, c.NS+600
		}
	}
	if d = dispatched(x, 2, analyze.Options{}); !slices.Contains(d.Title[1].Segments, d.Undecided()) ||
		d.Undecided().Text == "" { // more rounds would not change that
		t.Errorf("0.3 ± 0.5 µs to save: %s", d.Title[1].Fit(400))
	}
}

// The rows of each grouping share another time, so the title says how many rows share it. A shared time
// within its error is marked, and one of rows with unknown costs is not shown.
func TestWhatIsSharedSaysByWhichRows(t *testing.T) {
	x := costed(t, tracetest.Run(2, 40, 1), 1)
	s := &x.Trace.Steps[1]
	of := func(fold analyze.Grouping) (analyze.Shared, string) {
		d := dispatched(x, 1, analyze.Options{Grouping: fold})
		shared, _ := d.Shared()
		return shared, d.Title[1].Fit(200)
	}
	for _, fold := range []analyze.Grouping{analyze.GroupLayer, analyze.GroupOp, analyze.GroupKernel} {
		shared, line := of(fold)
		want := fmt.Sprintf("%d rows share 7.0 ± %.1f µs", shared.Rows, shared.ErrorNS/1e3)
		if shared.Rows == 0 || !strings.Contains(line, want) {
			t.Errorf("grouped by %s: %q, want %q", fold, line, want)
		}
	}
	for i := range s.Costs {
		s.Costs[i].Q1NS, s.Costs[i].Q3NS = s.Costs[i].NS-4000, s.Costs[i].NS+4000
	}
	if shared, _ := of(analyze.GroupLayer); shared.ErrorNS < overlap {
		t.Errorf("error of %.0f ns with rows of ± 4 µs each", shared.ErrorNS)
	}
	if short := dispatched(x, 1, analyze.Options{}).Title[0].Fit(60); strings.Contains(short, "share") {
		t.Errorf("%q", short)
	}
	x.Trace.Device.AdapterType = trace.AdapterCPU
	coarse := func() string {
		made, err := costtable.Groups(ctx, x, analyze.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(made.Notes, "\n")
	}
	if got := coarse(); !strings.Contains(got, "costs of prologue + attn + mlp + epilogue add up to 217 ± ") {
		t.Errorf("%q", got)
	}
	for i := range s.Costs {
		if len(s.Costs[i].Dispatches) > 2 {
			s.Costs[i].N = 3
		}
	}
	if got := coarse(); strings.Contains(got, "add up to") {
		t.Errorf("coarse parts with unknown costs are shown: %q", got)
	}
	for i := range s.Costs {
		s.Costs[i].N = 3
	}
	if shared, line := of(analyze.GroupLayer); shared.Rows > 0 || strings.Contains(line, "rows share") {
		t.Errorf("3 rounds on a software device: %q", line)
	}
}

// Shares by cost are shares of the whole runs measured with the costs. If these took another time than the
// step in the title, the title says so.
func TestSharesSayOfWhichTimeTheyAre(t *testing.T) {
	tr := tracetest.Run(2, 40, 1)
	x := costed(t, tr, 1)
	s := &x.Trace.Steps[1]
	s.Timing, s.GPU.SpanNS = "step", trace.Measured(s.Whole.NS*21/20)
	title := func() string { return dispatched(x, 1, analyze.Options{}).Title[1].Fit(400) }
	if got := title(); strings.Contains(got, "GPU time when costs were measured") || !strings.Contains(got, "share by cost") {
		t.Errorf("times 5 %% apart: %s", got)
	}
	s.GPU.SpanNS = trace.Measured(s.Whole.NS / 3)
	want := "share by cost, relative to the " + table.Millis(s.Whole.NS, true) + " GPU time when costs were measured"
	if got := title(); !strings.Contains(got, want) {
		t.Errorf("three times as long: %s, want %s", got, want)
	}
}

// If the canary varied between rounds, the costs say that the clock moved.
func TestCostsSayThatTheClockMoved(t *testing.T) {
	for _, c := range []struct {
		q1, q3 float64
		said   string
	}{{0, 0, ""}, {0.99, 1.01, ""}, {0.8, 1, "clock moved 25 %"}} {
		x := costed(t, tracetest.Run(2, 40, 1), 1)
		w := x.Trace.Steps[1].Whole
		w.CanaryQ1, w.Canary, w.CanaryQ3 = c.q1, c.q1, c.q3
		made, err := costtable.Parts(ctx, x, analyze.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		lines := make([]string, len(made.Title))
		for i, line := range made.Title {
			lines[i] = line.Fit(200)
		}
		for _, got := range []string{
			strings.Join(lines, "\n"), dispatched(x, 1, analyze.Options{}).Title[1].Fit(200),
		} {
			if moved := strings.Contains(got, "clock moved"); moved != (c.said != "") ||
				!strings.Contains(got, c.said) {
				t.Errorf("from %v to %v: %q", c.q1, c.q3, got)
			}
		}
	}
}

// The title says what shares are relative to, and how many rows come last because they have no cost.
func TestTitleSaysWhatSharesAreOf(t *testing.T) {
	x := costed(t, tracetest.Run(2, 40, 1), 1)
	said := func(fold analyze.Grouping) string {
		return dispatched(x, 1, analyze.Options{Grouping: fold}).Title[1].Fit(140)
	}
	if got := said(analyze.GroupLayer); !strings.Contains(got, "share by cost") ||
		strings.Contains(got, "no cost") {
		t.Errorf("grouped by layer: title %q", got)
	}
	if got := said(analyze.GroupKernel); !strings.Contains(got, "share by cost") ||
		strings.Contains(got, "no cost") {
		t.Errorf("grouped by kernel: title %q", got)
	}
	s := &x.Trace.Steps[1]
	kernels := func(c trace.Cost) bool { return !strings.Contains(c.Name, ".") && len(c.Dispatches) < 16 }
	s.Costs = slices.DeleteFunc(s.Costs, kernels) // as if the screen measured another grouping
	x = analyze.NewIndex(x.Trace)
	d := dispatched(x, 1, analyze.Options{Grouping: analyze.GroupKernel})
	without, rows := 0, 0
	for i := range d.Grouped {
		if r := &d.Grouped[i]; r.Parent < 0 {
			if rows++; r.Cost == nil {
				without++
			}
		}
	}
	want := fmt.Sprintf("share of Σgpu: %d of %d rows have no measured cost", without, rows)
	if got := said(analyze.GroupKernel); without == 0 || !strings.Contains(got, want) {
		t.Errorf("grouped by kernel: title %q, want %q", got, want)
	}
	if got := dispatched(analyze.NewIndex(tracetest.Run(2, 40, 1)), 1, analyze.Options{}); strings.Contains(
		got.Title[1].Fit(400), "share") {
		t.Errorf("without costs: title %q", got.Title[1].Fit(400))
	}
}

func TestTimesAloneStandInForCosts(t *testing.T) {
	software := tracetest.Run(2, 40, 1, 1)
	software.Device.AdapterType = trace.AdapterCPU
	for name, tr := range map[string]*trace.Trace{
		"parts of step s2, largest ~excess of the isolated time first": tracetest.Run(2, 40, 1, 1),
		"parts of step s2, longest isolated time first":                software,
		"parts of step s1": TimedWhole(tracetest.Run(2, 40, 1)),
	} {
		made, err := costtable.Parts(ctx, analyze.NewIndex(tr), analyze.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		if got := made.Title[0].Fit(200); got != name || made.Title[1].Fit(200) != "no costs measured" {
			t.Errorf("title %q, want %q", got, name)
		}
		by, last := "lost_us", 1e18
		if tr == software {
			by = "alone_us"
		}
		for row := range made.Rows {
			if made.Cell(row, made.Column("cost_us")).Text != table.Unmeasured {
				t.Error("a row has a cost that was not measured")
			}
			if lost := made.Cell(row, made.Column(by)).Number; row < 12 && lost > last {
				t.Errorf("row %d has %s %v, the previous row %v", row, by, lost, last)
			} else {
				last = lost
			}
		}
	}
}

// TimedWhole changes a run to timing level step.
func TimedWhole(tr *trace.Trace) *trace.Trace {
	for i := range tr.Steps {
		s := &tr.Steps[i]
		s.Timing = trace.TimingStep
		for k := range s.Dispatches {
			d := &s.Dispatches[k]
			d.GPUNS, d.StartNS, d.Raw = trace.Time{}, trace.Time{}, [2]trace.Tick{}
		}
	}
	return tr
}
