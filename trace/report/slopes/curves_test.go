package slopes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

func TestLineThroughTimes(t *testing.T) {
	var xs, ys []float64
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		xs = append(xs, float64(i))
		ys = append(ys, 1e6+200*float64(i)+1000*(r.Float64()-0.5))
	}
	f := curves.FitLine(xs, ys)
	// Uniform noise of 1000 / √12 over 200 points: the error of the slope is that divided by √Σ(x - mean)².
	want := 1000 / math.Sqrt(12) / math.Sqrt(200*(200*200-1)/12)
	if math.Abs(f.B-200) > 3*f.SE || f.SE < want/2 || f.SE > 2*want || !f.Significant() {
		t.Errorf("slope %.2f ± %.2f, want 200 ± %.2f", f.B, f.SE, want)
	}
	ys[20], ys[150] = 9e6, 9e6 // two slow steps
	if g := curves.FitLine(xs, ys); len(g.Out) < 2 || math.Abs(g.B-200) > 4*g.SE {
		t.Errorf("with two outliers: slope %.2f ± %.2f, %d excluded", g.B, g.SE, g.Out)
	}
	if f := curves.FitLine([]float64{3, 3, 3, 3, 3}, []float64{1, 2, 3, 4, 5}); f != nil {
		t.Errorf("a line through one x value: %+v", f)
	}
	if f := curves.FitLine([]float64{1, 2, 3}, []float64{1, 2, 3}); f != nil {
		t.Error("a line through three points")
	}
}

// The first steps of a run can be slower, for example while the GPU's clock rises. Whatever their number,
// that is not a slope, and a true slope is still found.
func TestSlowBeginningIsNoSlope(t *testing.T) {
	const fast, slow = 2.3e6, 8.8e6
	for _, slope := range []float64{0, 2000} {
		for n := 0; n <= 24; n++ {
			r := rand.New(rand.NewPCG(3, uint64(n)))
			var xs, ys []float64
			for i := range 46 {
				y := fast + slope*float64(i) + 2e4*(r.Float64()-0.5)
				if i < n {
					y += slow - fast
				}
				xs, ys = append(xs, float64(4+i)), append(ys, y)
			}
			f := curves.FitLine(xs, ys)
			if f.Significant() != (slope > 0) || math.Abs(f.B-slope) > 4*f.SE || f.SE > 500 {
				t.Errorf("%d slow steps: slope %.1f ± %.1f, want %.0f", n, f.B, f.SE, slope)
			}
			if n > 0 && f.Level == nil && len(f.Out) < n || n == 0 && f.Level != nil {
				t.Errorf("%d slow steps: %d excluded, level %+v", n, len(f.Out), f.Level)
			}
			for i, x := range xs {
				if off := math.Abs(f.At(x) - ys[i]); off > 1e5 && !slices.Contains(f.Out, i) {
					t.Errorf("%d slow steps: the line is %.0f ns off at position %.0f", n, off, x)
				}
			}
		}
	}
}

// On a coarse timer most times are equal. The others are not outliers as long as they are near.
func TestCoarseTimesKeepTheirNeighbors(t *testing.T) {
	var xs, ys []float64
	for i := range 60 {
		y := 2e6
		switch {
		case i < 6:
			y = 9e6
		case i%3 == 0:
			y += 1024
		}
		xs, ys = append(xs, float64(i)), append(ys, y)
	}
	f := curves.FitLine(xs, ys)
	if len(f.Out) != 6 || f.N != 54 || f.Significant() {
		t.Errorf("%d excluded of %d, slope %.1f ± %.1f", len(f.Out), f.N, f.B, f.SE)
	}
}

func TestLevelsOfTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var xs, ys []float64
	for i := range 120 {
		y := 1e6 + 500*(r.Float64()-0.5)
		if i >= 64 {
			y += 3000
		}
		xs, ys = append(xs, float64(i)), append(ys, y)
	}
	found := curves.Shifts(xs, ys)
	if len(found) != 1 || found[0].At != 64 || math.Abs(found[0].NS-3000) > 300 {
		t.Errorf("want a shift of 3000 ns at 64, got %+v", found)
	}
	for i := range ys {
		ys[i] = 1e6 + 30*float64(i) + 500*(r.Float64()-0.5)
	}
	if found := curves.Shifts(xs, ys); len(found) > 0 {
		t.Errorf("a constant slope has shifts: %+v", found)
	}
}

// decoded is splitsForecast with a second operator and n timed decode steps. Only the splits take longer from
// position to position.
func decoded(n int, level trace.Timing) *trace.Trace {
	tr := splitsForecast()
	g := &tr.Graph
	g.Ops = append(g.Ops, trace.Op{ID: 1, Name: "norm", Kind: "norm"})
	g.Dispatches = append(g.Dispatches, trace.Dispatch{ID: 1, Op: 1, MaxWorkgroups: [3]int{1, 1, 1}})
	one := trace.Rule{1}
	for i := range tr.Forecast.Lines {
		l := &tr.Forecast.Lines[i]
		l.Dispatches = append(l.Dispatches, len(l.Courses))
		l.Courses = append(l.Courses, trace.Course{Stretches: []trace.Stretch{{
			From: l.From, Kernel: "norm", Workgroups: [3]trace.Rule{one, one, one}, NeededGroups: one,
			IdleLanes: trace.Rule{3}, Bytes: trace.Rule{100},
		}}})
	}
	tr.Plans = append(tr.Plans, tr.Plans[0])
	tr.Plans[1].ID, tr.Plans[1].Dispatch, tr.Plans[1].Kernel = 1, 1, "norm"
	r := rand.New(rand.NewPCG(5, 6))
	tr.Steps = nil
	for i := range n {
		split, norm := int64(1000+10*i+r.IntN(20)), int64(500+r.IntN(20))
		all := trace.Measured(split + norm)
		s := trace.Step{
			Index: i, Phase: trace.Decode, Timing: level, Position: i, Tokens: []int{1},
			Dispatches: []trace.StepDispatch{{Plan: 0}, {Plan: 1}},
			GPU:        &trace.GPU{SpanNS: all, BusyNS: all},
		}
		if level == trace.TimingDispatch {
			s.Dispatches[0].GPUNS, s.Dispatches[1].GPUNS = trace.Measured(split), trace.Measured(norm)
		}
		tr.Steps = append(tr.Steps, s)
	}
	tr.Steps[0].Cold = true
	return tr
}

// The title, the table and the detail show the same n, the number of steps in the fit. They name the excluded
// steps.
func TestCurvesCountTheStepsOfTheirLine(t *testing.T) {
	tr := decoded(60, "step")
	for i := range tr.Steps {
		tr.Steps[i].GPU.SpanNS = trace.Measured(1e6 + int64(i%4)*1000)
	}
	for _, i := range []int{7, 33} {
		tr.Steps[i].GPU.SpanNS = trace.Measured(9e6)
	}
	c, err := curves.Of(context.Background(), analyze.NewIndex(tr), trace.AlongPosition, nil)
	if err != nil {
		t.Fatal(err)
	}
	made := Table(c)
	title, detail := made.Title[0].Fit(400), strings.Join(Lines(c, &c.Rows[0], 9), "\n")
	for what, want := range map[string]string{
		title: "n 57 s7, s33", detail: "n = 57 s7, s33",
		made.Cell(0, made.Column("n")).Text: "57",
	} {
		if !wordingtest.Mentions(errors.New(what), want) {
			t.Errorf("%q, want %q", what, want)
		}
	}
}

func TestSlopeNamesTheOperatorThatOwnsIt(t *testing.T) {
	for level, want := range map[trace.Timing]string{
		"dispatch": "sdpa.split has 100 % of the slope",
		"step":     "sdpa.split: ~100 % of the slope, estimated from bytes",
	} {
		tr := decoded(100, level)
		if err := tr.Check(); err != nil {
			t.Fatal(err)
		}
		c, err := curves.Of(context.Background(), analyze.NewIndex(tr), trace.AlongPosition, nil)
		if err != nil {
			t.Fatal(err)
		}
		said := table.Title(Verdict(c)...).String()
		for _, want := range []string{
			"decode slows down with position · 10.0 ± ", want, "1 cold ",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %s, want %s", level, said, want)
			}
		}
		of := map[trace.Timing]string{
			"dispatch": "in s50, sum of isolated times", "step": "in s50, GPU span",
		}[level]
		if lines := strings.Join(Lines(c, &c.Rows[0], 50), "\n"); !strings.Contains(lines, of) {
			t.Errorf("%s: the whole step's lines do not contain %q:\n%s", level, of, lines)
		}
		if n := len(c.Rows[1].Changes); c.Rows[1].Name != "sdpa.split" || n != 3 {
			t.Errorf("%s: first row %s with %d changes, want sdpa.split with 3", level, c.Rows[1].Name, n)
		}
	}
}

// Slopes have three digits and a unit of their size, even on a software device that takes 100,000 times as
// long.
func TestSlopesHaveThreeDigitsOnAnyDevice(t *testing.T) {
	for times, want := range map[int64][3]string{
		1: {"µs/1k pos", "10.0", " µs per"}, 1e4: {"ms/1k pos", "100", " ms per"},
		1e8: {"s/1k pos", "1002", " s per"},
	} {
		tr := decoded(100, "dispatch")
		for i := range tr.Steps {
			s := &tr.Steps[i]
			for _, at := range []*trace.Time{
				&s.GPU.BusyNS, &s.GPU.SpanNS, &s.Dispatches[0].GPUNS, &s.Dispatches[1].GPUNS,
			} {
				ns, _ := at.NS()
				*at = trace.Measured(times * ns)
			}
		}
		c, err := curves.Of(context.Background(), analyze.NewIndex(tr), trace.AlongPosition, nil)
		if err != nil {
			t.Fatal(err)
		}
		made := Table(c)
		col := made.Column("slope_us")
		cell := made.Cell(0, col)
		title, off := made.Columns[col].Title, math.Abs(cell.Number/float64(times)-10)
		if title != want[0] || cell.Text != want[1] || off > 0.1 {
			t.Errorf("times × %d: %s %s, %g µs; want %s", times, title, cell.Text, cell.Number, want)
		}
		if said := table.Title(Verdict(c)...).String(); !strings.Contains(said, want[2]) {
			t.Errorf("times × %d: %s, want %s", times, said, want[2])
		}
	}
}

func TestFlatSlopeIsNotReported(t *testing.T) {
	tr := decoded(100, "dispatch")
	r := rand.New(rand.NewPCG(7, 8))
	for i := range tr.Steps {
		tr.Steps[i].GPU.BusyNS = trace.Measured(int64(1_000_000 + r.IntN(2000)))
		tr.Steps[i].Dispatches[0].GPUNS = trace.Measured(int64(1000 + r.IntN(20)))
	}
	c, err := curves.Of(context.Background(), analyze.NewIndex(tr), trace.AlongPosition, nil)
	if err != nil {
		t.Fatal(err)
	}
	if said := table.Title(Verdict(c)...).String(); !strings.HasPrefix(said, "decode time is constant") ||
		strings.Contains(said, "of the slope") {
		t.Error(said)
	}
}

// If the slope of the step is not significant, no row has a share of it, whatever its own slope and bytes.
// And a larger number of bytes does not explain a step that speeds up.
func TestInsignificantSlopeHasNoOwner(t *testing.T) {
	for _, c := range []struct {
		name  string
		level trace.Timing
		says  string
		ns    func(i int) int64
	}{
		{"flat, one row slopes", "dispatch", "decode time is constant", func(int) int64 { return 1e6 }},
		{"flat, not timed in isolation", "step", "decode time is constant", func(int) int64 { return 1e6 }},
		{"faster, not timed", "step", "decode speeds up", func(i int) int64 { return 1e6 - 100*int64(i) }},
	} {
		tr := decoded(100, c.level)
		r := rand.New(rand.NewPCG(7, 8))
		for i := range tr.Steps {
			all := trace.Measured(c.ns(i) + int64(r.IntN(200)))
			tr.Steps[i].GPU = &trace.GPU{SpanNS: all, BusyNS: all}
		}
		if c.level == "step" { // a route that ends at position 50, so its bytes shrink
			norm := &tr.Forecast.Lines[0].Courses[1].Stretches
			*norm = append(*norm, trace.Stretch{From: 50})
		}
		curves, err := curves.Of(context.Background(), analyze.NewIndex(tr), trace.AlongPosition, nil)
		if err != nil {
			t.Fatal(err)
		}
		made := Table(curves)
		said := made.Title[0].String()
		if !strings.HasPrefix(said, c.says) || strings.Contains(said, "of the slope") {
			t.Errorf("%s: %s", c.name, said)
		}
		for row := range made.Rows {
			if got := made.Cell(row, made.Column("share")).Text; got != "" {
				t.Errorf("%s: %s has a share of %q", c.name, curves.Rows[row].Name, got)
			}
		}
	}
	hardly := &curves.Fit{N: curves.MinSlopePoints, A: 1e6, B: 50, SE: 1, First: 500, Last: 600}
	if said := says(hardly, 0); said != "decode slows down with position (0.5 %)" {
		t.Error(said)
	}
	few := &curves.Fit{N: curves.MinSlopePoints - 1, B: 100, SE: 1, Last: 7}
	if few.Significant() || !strings.Contains(says(few, 0), "too few") {
		t.Errorf("slope from %d steps: %s", few.N, says(few, 0))
	}
}

// Rows with similar slopes are named together. If only one was named, it would change from step to step.
func TestSimilarSlopesAreNamedTogether(t *testing.T) {
	for n := 60; n < 80; n++ {
		tr := decoded(n, "dispatch")
		tr.Forecast.Lines[0].Courses[1].Stretches[0].Bytes = trace.Rule{100, 4} // both have more work
		r := rand.New(rand.NewPCG(9, 10))
		for i := range tr.Steps {
			d := tr.Steps[i].Dispatches
			split, norm := int64(1000+10*i+r.IntN(40)), int64(500+10*i+r.IntN(40))
			d[0].GPUNS, d[1].GPUNS = trace.Measured(split), trace.Measured(norm)
			tr.Steps[i].GPU.BusyNS = trace.Measured(split + norm)
		}
		c, err := curves.Of(context.Background(), analyze.NewIndex(tr), trace.AlongPosition, nil)
		if err != nil {
			t.Fatal(err)
		}
		if said := table.Title(Verdict(c)...).String(); !wordingtest.Mentions(errors.New(said), "similar 100 %") ||
			!strings.Contains(said, "norm") || !strings.Contains(said, "sdpa.split") {
			t.Errorf("with %d steps: %s", n, said)
		}
	}
}

// An operator that does the same work at every position slows down with the clock or the device. It owns no
// slope.
func TestWhatDoesTheSameWorkEverywhereDrifts(t *testing.T) {
	tr := decoded(100, "dispatch")
	r := rand.New(rand.NewPCG(11, 12))
	for i := range tr.Steps {
		d := tr.Steps[i].Dispatches
		split, norm := int64(1000+10*i+r.IntN(20)), int64(500+30*i+r.IntN(20))
		d[0].GPUNS, d[1].GPUNS = trace.Measured(split), trace.Measured(norm)
		tr.Steps[i].GPU.BusyNS = trace.Measured(split + norm)
	}
	c, err := curves.Of(context.Background(), analyze.NewIndex(tr), trace.AlongPosition, nil)
	if err != nil {
		t.Fatal(err)
	}
	said := table.Title(Verdict(c)...).String()
	for _, want := range []string{
		"decode slows down, mostly by drift", "sdpa.split has 25 % of the slope", "75 % is drift",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%s, want %s", said, want)
		}
	}
	made := Table(c)
	lines := strings.Join(Lines(c, &c.Rows[2], 8), "\n")
	if !strings.Contains(lines, "drift  ") || !strings.Contains(lines, "75 % of the slope") {
		t.Errorf("drift is not explained:\n%s", lines)
	}
	for row, want := range []string{"", "25", "drift"} {
		if got := made.Cell(row, made.Column("share")).Text; got != want {
			t.Errorf("%s has a share of %q, want %q", c.Rows[row].Name, got, want)
		}
	}
}

// A change of level has its own text. The title does not call the time constant, and names no owner.
func TestTitleReportsAChangeOfLevel(t *testing.T) {
	tr := decoded(60, "step")
	for i := range tr.Steps {
		ns := int64(2e6 + 1000*(i%4))
		if i < 20 {
			ns += 4e6
		}
		tr.Steps[i].GPU.SpanNS = trace.Measured(ns)
	}
	c, err := curves.Of(context.Background(), analyze.NewIndex(tr), trace.AlongPosition, nil)
	if err != nil {
		t.Fatal(err)
	}
	said := table.Title(Verdict(c)...).String()
	for _, want := range []string{"level", "drop by 4.00 ms at position 20", "6.00 ms → 2.00 ms", "n 59"} {
		if !strings.Contains(said, want) {
			t.Errorf("%s, want %s", said, want)
		}
	}
	if n := len(c.Rows[0].Shifts); n != 1 || c.Rows[0].Shifts[0].At != 20 || c.Slope() != nil ||
		len(c.Owners()) > 0 {
		t.Errorf("shifts %+v, slope %+v, owners %d", c.Rows[0].Shifts, c.Slope(), len(c.Owners()))
	}
}

// Between two and three standard errors, the verdict is neither a slope nor a constant time.
func TestSlopeOfTwoErrorsIsUndecided(t *testing.T) {
	f := &curves.Fit{N: 62, A: 1.1e6, B: 155.8, SE: 60.8, First: 513, Last: 574}
	if got, want := says(f, 0), "slope not significant (2.6 σ; 3 needed)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := rate(f), "156 ± 60.8 µs per 1,000 positions"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	f.B = 50
	if got, want := says(f, 0), "decode time is constant over positions 513–574"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A constant time is only claimed for the measured positions, with the largest slope that the noise could
// hide.
func TestNoSlopeSaysHowLargeOneMayBe(t *testing.T) {
	f := &curves.Fit{N: 62, A: 2.2e6, B: -1.5, SE: 42.8, First: 513, Last: 574}
	if got, want := says(f, 0)+" · "+rate(f),
		"decode time is constant over positions 513–574 · less than 130 µs per 1,000 positions"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	f.N = curves.MinSlopePoints - 1 // with few points the error is not known either
	if got, want := rate(f), "-1.50 ± 42.8 µs per 1,000 positions"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A slope that comes from a change of routes belongs to no operator, whatever else has a slope. The title
// says that the fit spans both routes.
func TestTitleExplainsTheRestOfASlope(t *testing.T) {
	tr := decoded(100, "dispatch")
	norm := &tr.Forecast.Lines[0].Courses[1].Stretches
	other := (*norm)[0]
	other.From, other.Kernel = 50, "norm2"
	*norm = append(*norm, other)
	r := rand.New(rand.NewPCG(13, 14))
	for i := range tr.Steps {
		d := tr.Steps[i].Dispatches
		split := int64(1000 + 10*i + r.IntN(20))
		d[0].GPUNS = trace.Measured(split)
		d[1].GPUNS = trace.Time{} // as a dispatch that does not run on one side
		tr.Steps[i].GPU.BusyNS = trace.Measured(split + int64(20*i))
	}
	said := func() string {
		c, err := curves.Of(context.Background(), analyze.NewIndex(tr), trace.AlongPosition, nil)
		if err != nil {
			t.Fatal(err)
		}
		return table.Title(Verdict(c)...).String()
	}
	got := said()
	for _, want := range []string{
		"sdpa.split has 33 % of the slope", "67 % is ", "routes change at 50",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	*norm = (*norm)[:1]
	if got := said(); strings.Contains(got, "routes change") {
		t.Errorf("no route changes: %s", got)
	}
	tr.Steps = tr.Steps[:50]
	*norm = append(*norm, other)
	if got := said(); strings.Contains(got, "routes change") {
		t.Errorf("no route changes up to there: %s", got)
	}
}

// The exact quantities of a row are the sums over the plans of its dispatches.
func TestExactIsTheSumOfThePlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := decoded(10, "off")
		x := analyze.NewIndex(tr)
		along := rapid.SampledFrom(trace.Axes).Draw(t, "along")
		c, err := curves.Of(context.Background(), x, along, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(c.Line.From, c.Line.To).Draw(t, "at")
		var groups, bytes float64
		for id := range tr.Graph.Dispatches {
			if p := curves.PlanOn(c.Line, trace.DispatchID(id), at); p != nil {
				groups, bytes = groups+float64(analyze.Product(p.Workgroups)), bytes+float64(p.Bytes)
			}
		}
		for q, want := range map[curves.Quantity]float64{curves.Grid: groups, curves.Bytes: bytes} {
			if got, ok := c.Exact(&c.Rows[0], q, at); !ok || got != want {
				t.Fatalf("%s at %d: %v, want %v", q, at, got, want)
			}
		}
		if _, ok := c.Exact(&c.Rows[0], curves.Grid, c.Line.To+1); ok {
			t.Fatal("there is a grid past the end of the line")
		}
	})
}

func TestCrossoverIsReportedAsALength(t *testing.T) {
	tr := decoded(4, "off")
	l := &tr.Forecast.Lines[1]
	grid := [3]trace.Rule{{8}, {1}, {1}}
	for _, route := range []string{"split64", "tile64", "split128"} {
		l.Courses[1].Stretches = []trace.Stretch{
			{From: 1, Kernel: "g", Route: "gemv", Workgroups: grid},
			{From: 2, Kernel: "b", Route: "batch4", Workgroups: grid},
			{From: 5, Kernel: "t", Route: route, Workgroups: grid},
			{From: 9, Kernel: "u", Route: "tile128", Workgroups: grid},
		}
		c, err := curves.Of(context.Background(), analyze.NewIndex(tr), trace.AlongTokens, nil)
		if err != nil {
			t.Fatal(err)
		}
		said := table.Title(Verdict(c)...).String()
		want := "tiled GEMM begins at 5 tokens · gemv 1 · batch4 2 · " + route + " 5 · tile128 9"
		if said != want {
			t.Errorf("%s, want %s", said, want)
		}
		if c.Rows[1].Name != "norm" {
			t.Errorf("%s comes before norm, which has four routes", c.Rows[1].Name)
		}
	}
}

func BenchmarkCurves(b *testing.B) {
	tr := tracetest.Llama(16, 2000)
	tr.Forecast = tracetest.Forecast(16)
	x := analyze.NewIndex(tr)
	for b.Loop() {
		if _, err := curves.Of(context.Background(), x, trace.AlongPosition, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// All labels of an axis differ, however flat the data is.
func TestMarksOfAnAxisDiffer(t *testing.T) {
	for _, ends := range [][2]float64{
		{26.09e6, 26.11e6}, {25e6, 31e6}, {999e3, 1.01e6}, {4.9e3, 5.1e3}, {1900, 1901}, {1e3, 50e6},
	} {
		of := AxisText(curves.Time, ends[0], ends[1])
		lo, mid, hi := of(ends[0]), of((ends[0]+ends[1])/2), of(ends[1])
		if lo == mid || mid == hi || lo == hi {
			t.Errorf("%v: %q, %q, %q", ends, lo, mid, hi)
		}
	}
}

// Zero is shown as 0 in every unit.
func TestAnAxisFromNothingBeginsAtZero(t *testing.T) {
	for _, q := range []curves.Quantity{curves.Time, curves.Grid, curves.Bytes, curves.Idle, curves.Stored} {
		if got := AxisText(q, 0, 1.47e6)(0); got != "0" {
			t.Errorf("the axis of %s begins at %q", q, got)
		}
	}
}

// A route is the fastest if its quartiles do not overlap those of any other, with at least five runs.
func TestFastestListsAllIndistinguishableRoutes(t *testing.T) {
	trial := func(tokens int, route string, ns, half int64, n int) trace.Trial {
		return trace.Trial{Tokens: tokens, Route: route, NS: ns, Q1NS: ns - half, Q3NS: ns + half, N: n}
	}
	r := curves.CurveRow{Trials: []trace.Trial{
		trial(1, "a", 100, 10, 5), trial(1, "b", 130, 10, 5), trial(1, "c", 140, 10, 5),
		trial(2, "a", 100, 20, 5), trial(2, "b", 130, 20, 5), trial(2, "c", 200, 20, 5),
		trial(4, "a", 130, 20, 5), trial(4, "b", 100, 20, 5), trial(4, "c", 200, 20, 5),
		trial(8, "a", 100, 1, 4), trial(8, "b", 130, 1, 4),
		trial(9, "b", 100, 1, 5), trial(9, "a", 130, 1, 5),
	}}
	if got := routesOver(r.Fastest()); got != "a 1 · a = b 2–8 · b 9" {
		t.Error(got)
	}
}

// An operator without routes has no fastest route, even if it was timed.
func TestOperatorsWithoutRoutesHaveNoFastest(t *testing.T) {
	r := curves.CurveRow{Trials: []trace.Trial{{Tokens: 1, NS: 100, N: 5}, {Tokens: 512, NS: 120, N: 5}}}
	if got := routesOver(r.Fastest()); got != "" {
		t.Errorf("got %q", got)
	}
	var lines []string
	trialLines((&curves.Curves{}), &r, func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf(format, args...))
	})
	text := strings.Join(lines, "\n")
	if strings.Contains(text, "fastest") || !strings.Contains(text, "M 512") {
		t.Error(text)
	}
}

// A dispatch that is fused into others for a single row cannot be timed in isolation there, wherever the
// cursor is. The request would be refused, together with those after it.
func TestCrossingsAreWhereThereIsSomethingToTime(t *testing.T) {
	tr := decoded(3, "dispatch")
	l := &tr.Forecast.Lines[1]
	rows := l.Courses[1].Stretches[0]
	rows.From = l.From + 1
	l.Courses[1].Stretches = []trace.Stretch{{From: l.From}, rows}
	want := []int{l.From + 1, l.From + 2, l.To}
	if got := curves.Crossings(analyze.NewIndex(tr), 1, l.From, l.From+2); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The point of a repeated step is the sum of the medians that the rows and the table of steps show too.
func TestWholeStepHasTheMediansOfRepeats(t *testing.T) {
	tr := tracetest.Llama(2, 26)
	last := &tr.Steps[25]
	busy, _ := last.GPU.BusyNS.NS()
	last.GPU.BusyNS = trace.Measured(busy + 5e6) // the recorded run was slower
	x := analyze.NewIndex(tr)
	c, err := curves.Of(context.Background(), x, trace.AlongPosition, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, n := x.BusyOf(last)
	want, _ := sum.NS()
	for _, p := range c.Rows[0].Points {
		if p.Step == 25 && (n == 0 || p.NS != float64(want)) {
			t.Errorf("the step takes %v ns, want %d", p.NS, want)
		}
	}
	if p := c.Rows[0].Points; len(p) == 0 || p[len(p)-1].Step != 25 {
		t.Errorf("no point of the last step in %+v", p)
	}
}
