package report_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/analyze/tracks"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report"
	"gpuscope/trace/report/phases"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// us returns a time in microseconds. A negative number means not measured.
func us(us int64) trace.Time {
	if us < 0 {
		return trace.Time{}
	}
	return trace.Measured(us * 1000)
}

// oneStep returns a trace whose decode step has these times in µs.
func oneStep(timing trace.Timing, wall, busy, span int64) *trace.Trace {
	t := timed(1, 0, 0, 1)
	s := &t.Steps[1]
	s.Timing, s.CPU.TotalNS, s.Whole, s.Costs = timing, us(wall), nil, nil
	s.GPU = &trace.GPU{BusyNS: us(busy), SpanNS: us(span)}
	for i := range s.Dispatches {
		s.Dispatches[i] = trace.StepDispatch{Plan: s.Dispatches[i].Plan}
	}
	t.Observer = nil
	return t
}

// seen adds times of an observer, in µs.
func seen(t *trace.Trace, untimed, span int64) *trace.Trace {
	step := 1
	t.Observer = &trace.Observer{
		Step: &step, UntimedNS: us(untimed), SpanNS: us(span), TimedNS: us(9050), N: 8,
		UntimedOff: us(20), SpanOff: us(20),
	}
	return t
}

// worked gives the step a CPU time in µs, all of it encoding; -1 means not measured.
func worked(t *trace.Trace, encode int64) *trace.Trace {
	c := &t.Steps[1].CPU
	c.ResizeNS, c.UploadNS, c.SubmitNS, c.SampleNS = us(-1), us(-1), us(-1), us(-1)
	c.EncodeNS = us(encode)
	return t
}

// timesOf returns the line with the times of a step.
func timesOf(x *analyze.Index, step int) string { return report.TimesLine(x, x.Step(step)).String() }

func TestSummaryOfAStepOnOneLine(t *testing.T) {
	golden := wordingtest.New(t)
	for name, tr := range map[string]*trace.Trace{
		"dispatch, with untimed runs": seen(oneStep("dispatch", 9050, 3780, 4120), 1800, 1280),
		"dispatch":                    oneStep("dispatch", 9050, 3780, 4120),
		"block":                       oneStep("block", 2000, 1500, 1600),
		"step":                        oneStep("step", 1800, -1, 1280),
		"off":                         oneStep("off", 1800, -1, -1),
		"step, without a wall time":   oneStep("step", -1, -1, 1280),
	} {
		golden.Text(name, timesOf(analyze.NewIndex(tr), 1))
	}
}

// The time of a selection that comes from one of its steps names this step, at any width.
func TestTimeOfASelectionNamesItsStep(t *testing.T) {
	tr := tracetest.Run(1, 40, 1, 1, 1)
	step := 2
	tr.Observer = &trace.Observer{
		Step: &step, UntimedNS: us(700), TimedNS: us(900), UntimedOff: us(1), N: 8,
	}
	x := analyze.NewIndex(tr)
	for _, w := range []int{200, 20} {
		line := report.TimesLine(x, x.Phase(trace.Decode))
		if got := line.Fit(w); !strings.HasPrefix(got, "step 0.70 ms (s2)") {
			t.Errorf("at width %d: %s", w, got)
		}
	}
}

// The speed and the bottleneck of a step come from its untimed run, or are not shown. With each dispatch
// timed the step takes several times as long, and a third of that is idle time caused by timing.
func TestVerdictAndRateAreOfTheUntimedStep(t *testing.T) {
	unknown := "bottleneck unknown dispatch"
	again := func(wall, gpu int64) *trace.Trace {
		return seen(oneStep("dispatch", 4700, 3300, 4700), wall, gpu)
	}
	for _, c := range []struct {
		t    *trace.Trace
		want string
		rate float64
	}{
		{oneStep("dispatch", 4700, 3300, 4700), unknown, 0},
		{
			worked(seen(oneStep("dispatch", 4700, 3300, 4700), 1800, 1280), 600),
			"29 ± 2 % 0.52 of 1.80 ms 556 781 tok/s", 1e3 / 1.8,
		},
		{
			worked(again(1800, 600), 1200),
			"CPU-bound 67 ± 2 % 1.20 of 1.80 ms 556 833 tok/s 0.60 ms", 1e3 / 1.8,
		},
		{ // a third of the wait is CPU time: that is the most that can be saved
			worked(again(1800, 600), 400),
			"67 ± 2 % 1.20 of 1.80 ms 0.40 ms 556 714 tok/s 0.80 ms", 1e3 / 1.8,
		},
		{ // low rates have a decimal
			worked(again(150_000, 97_000), 8090),
			"35 ± 1 % 53.0 of 150 ms 8.09 ms 6.7 7.0 tok/s", 1 / 0.150,
		},
		{ // hardly any CPU time
			worked(again(345_000, 145_000), 1170),
			"58 ± 1 % 200 of 345 ms 1.17 ms", 1 / 0.345,
		},
		{ // CPU time not measured
			worked(again(1800, 600), -1),
			"CPU-bound 67 ± 2 % 1.20 of 1.80 ms", 1e3 / 1.8,
		},
		{
			oneStep("off", 1800, -1, -1), "unknown GPU time",
			1e3 / 1.8,
		},
		{
			oneStep("step", -1, -1, 600),
			"unknown wall time", 0,
		},
	} {
		s := analyze.NewIndex(c.t).Summary(1)
		if !hasAll(report.Verdict(s), c.want) || math.Abs(s.TokensPerS-c.rate) > 1e-6 {
			t.Errorf("%.2f tokens/s, want %.2f\n%q\nwant\n%q", s.TokensPerS, c.rate, report.Verdict(s),
				c.want)
		}
	}
}

// If the CPU's own work is the whole wait, overlapping it removes all idle time, as the headline does.
func TestVerdictNamesNoIdleTimeIfNoneRemains(t *testing.T) {
	tr := worked(seen(oneStep("dispatch", 4700, 3300, 4700), 1800, 1280), 600)
	got := report.Verdict(analyze.NewIndex(tr).Summary(1))
	if !hasAll(got, "781 tok/s") || strings.Contains(got, "remain") {
		t.Error(got)
	}
}

func TestWhatBoundsTheGPUNeedsItsCeilings(t *testing.T) {
	golden := wordingtest.New(t)
	for name, c := range map[string]struct {
		bytes  int64 // at 4.24 TB/s
		change func(*trace.Device)
	}{
		"work":        {bytes: 6_000_000_000},
		"waiting":     {bytes: 1_000_000_000},
		"no ceilings": {1_000_000, func(d *trace.Device) { d.Ceilings = nil }},
		"software":    {1_000_000, func(d *trace.Device) { d.AdapterType = trace.AdapterCPU }},
	} {
		tr := seen(oneStep("dispatch", 4700, 3300, 4700), 1800, 1750)
		tr.Plans[2].Bytes = c.bytes
		if c.change != nil {
			c.change(&tr.Device)
		}
		golden.Text(name, report.Verdict(analyze.NewIndex(tr).Summary(1)))
	}
}

// A step whose grids are far larger than its shapes need is slow because of these, not because of its levels.
func TestOverDispatchIsNamedBeforeLevels(t *testing.T) {
	tr := seen(oneStep("dispatch", 4700, 3300, 4700), 1800, 1750)
	for i := range tr.Plans {
		p := &tr.Plans[i]
		p.Workgroups, p.NeededGrid, p.NeededGroups = [3]int{64, 1, 1}, [3]int{1, 1, 1}, 1
	}
	want := "over-dispatched: 98.4% of 128 workgroups have no work; at the device's ceilings the work would take"
	if got := report.Verdict(analyze.NewIndex(tr).Summary(1)); !strings.HasPrefix(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// The verdict of a cold step comes from the warm repeat of that step, if there is one, and says so.
func TestVerdictOfAColdStepNamesItsRun(t *testing.T) {
	tr := oneStep("step", 51_400, 50_000, 50_000)
	s := &tr.Steps[1]
	s.Cold = true
	summary := func() *analyze.StepSummary { return analyze.NewIndex(tr).Summary(1) }
	if got := summary(); !strings.HasPrefix(report.Verdict(got), "cold: ") || !got.FewSamples {
		t.Errorf("not run again: %q", report.Verdict(got))
	}
	s.Whole = &trace.Whole{
		NS: 25_000_000, Q1NS: 25_000_000, Q3NS: 25_000_000, N: 5, OffNS: us(20), WallNS: us(26_000),
		WallOff: us(20),
	}
	if got := summary(); !strings.HasPrefix(report.Verdict(got), "warm repeat of the step: ") ||
		!strings.Contains(report.Verdict(got), "25.0") {
		t.Errorf("run again: %q", report.Verdict(got))
	}
	if s.Cold = false; strings.Contains(report.Verdict(summary()), "warm") {
		t.Errorf("a warm step: %q", report.Verdict(summary()))
	}
}

// A verdict needs at least five untimed runs and shows its error. There is none if the effect is within the
// error. The same holds for what to fix first.
func TestAVerdictNeedsFiveUntimedSamples(t *testing.T) {
	for _, c := range []struct {
		n         int
		off       int64 // error of each time in us; -1 if unknown
		told, few bool
	}{
		{1, -1, false, true},
		{2, 20, false, true},
		{4, 20, false, true},
		{5, 20, true, false},
		{8, 700, false, false},
		{8, -1, false, false},
	} {
		tr := seen(oneStep("dispatch", 4700, 3300, 4700), 1800, 1280)
		o := tr.Observer
		o.N, o.UntimedOff, o.SpanOff = c.n, us(c.off), us(c.off)
		s := analyze.NewIndex(tr).Summary(1)
		told := strings.Contains(report.Verdict(s), "% of the step")
		if told != c.told || told && !strings.Contains(report.Verdict(s), "±") || s.FewSamples != c.few {
			t.Errorf("%d samples ± %d: %q, few %v", c.n, c.off, report.Verdict(s), s.FewSamples)
		}
	}
	for n, want := range map[int]bool{2: false, 5: true} {
		x := costed(t, tracetest.Run(2, 40, 1, 1), 2)
		w := x.Trace.Steps[2].Whole
		w.N, w.WallNS = n, trace.Measured(w.NS+10_000_000)
		w.WallOff, w.OffNS = trace.Measured(900), trace.Measured(900)
		title := dispatched(x, 2, analyze.Options{}).Title[1].String()
		if strings.Contains(title, "GPU idle") != want {
			t.Errorf("%d samples: %s", n, title)
		}
	}
}

// The title of a step only has its own times. The time of an untimed run of another step is not used.
func TestAStepHasNoFigureOfAnother(t *testing.T) {
	tr := tracetest.Run(2, 40, 1, 1, 1)
	step := 2
	tr.Observer = &trace.Observer{
		Step: &step, UntimedNS: us(700), SpanNS: us(500), TimedNS: us(900), N: 8,
	}
	x := analyze.NewIndex(tr)
	for i := range tr.Steps {
		u := x.Untimed(i)
		title := timesOf(x, i)
		if u.Known() != (i == step) || strings.Contains(title, "0.70") != (i == step) {
			t.Errorf("s%d: %s", i, title)
		}
	}
	if u := x.UntimedOf(x.Range(1, 2)); !u.Known() {
		t.Error("a selection with one untimed step has no untimed time")
	}
	tr.Observer.Step = nil // the observed step is unknown
	for i := range tr.Steps {
		if u := analyze.NewIndex(tr).Untimed(i); u.Known() {
			t.Errorf("s%d has the untimed time of an unknown step", i)
		}
	}
}

// A step that was observed at the end of a run represents the decode steps of the run, but never a prefill.
func TestUntimedTimesComeFromTheirStep(t *testing.T) {
	tr := seen(oneStep("dispatch", 9050, 3780, 4120), 1800, 1280)
	tr.Observer.BeforeNS = us(400)
	x := analyze.NewIndex(tr)
	u := x.Untimed(1)
	if got := fmt.Sprint(u.Wall, u.Before, u.GPU, u.After, u.N, u.From); got != fmt.Sprint(us(1800), us(400),
		us(1280), us(120), 8, "s1 ×8") {
		t.Error(got)
	}
	if u := x.Untimed(0); u.Known() {
		t.Errorf("a prefill has the time of an observed decode step: %+v", u)
	}
	tr.Observer.BeforeNS = us(-20) // from two different clocks
	if u := analyze.NewIndex(tr).Untimed(1); u.Before != (trace.Time{}) || u.GPU != us(1280) {
		t.Errorf("negative time before the GPU: %+v", u)
	}
	tr.Observer = nil
	tr.Steps[1].Whole = &trace.Whole{NS: 1_290_000, Q1NS: 1_290_000, Q3NS: 1_290_000, N: 31, OffNS: us(1)}
	if u := analyze.NewIndex(tr).Untimed(1); u.GPU != us(1290) || u.Wall != us(-1) || u.N != 31 {
		t.Errorf("from the whole step measured with its costs: %+v", u)
	}
	tr.Steps[1].Whole.WallNS = us(1700) // of too few runs to have an error
	if u := analyze.NewIndex(tr).Untimed(1); u.Wall != us(-1) {
		t.Errorf("wall time of an unknown number of runs: %+v", u)
	}
	tr.Steps[1].Whole.WallOff = us(1) // the wall time starts at the first command, after 1.2 us
	if u := analyze.NewIndex(tr).Untimed(1); u.Wall != trace.Measured(1_701_200) {
		t.Errorf("from the whole step measured with its costs: %+v", u)
	}
}

func TestWaitingIsSplitByWhatTheGPUDid(t *testing.T) {
	tr := oneStep("dispatch", 500, 150, 200)
	s := &tr.Steps[1]
	s.GPU.StartNS = us(1120)
	s.CPU.StartNS, s.CPU.SubmittedNS, s.CPU.DoneNS = us(1000), us(1090), us(1350)
	want := analyze.Waiting{
		Begin: us(90), ToTick: us(30), Span: us(200), Busy: us(150), Idle: us(50), ToDone: us(30),
	}
	if got := analyze.NewIndex(tr).Waiting(1); got != want {
		t.Errorf("%+v", got)
	}
	s.GPU.StartNS = us(1080) // before its submit, due to the clock error
	if got := analyze.NewIndex(tr).Waiting(1); got.ToTick != us(0) || got.ToDone != us(70) {
		t.Errorf("%+v", got)
	}
	s.Timing = trace.TimingStep
	got := analyze.NewIndex(tr).Waiting(1)
	if got.Span != us(200) || got.Busy != us(-1) || got.Idle != us(-1) {
		t.Errorf("a step that was timed as a whole: %+v", got)
	}
}

// The sum of the blocks of a step and the sum of its isolated times are two quantities, each with its name.
func TestSumOfBlocksIsNotThatOfRepeats(t *testing.T) {
	tr := oneStep("block", 9050, 17, 20)
	s := &tr.Steps[1]
	s.GPU.BusyNS = us(17)
	cells := func(x *analyze.Index) (isolated, blocks table.Cell, title string) {
		made := report.Steps(x, analyze.Selection{}, nil)
		for _, p := range report.SumParts(x, x.Step(1)) {
			title += p.Text
		}
		return made.Cell(1, made.Column("gpu_ms")), made.Cell(1, made.Column("blocks_ms")), title
	}
	isolated, blocks, title := cells(analyze.NewIndex(tr))
	if isolated.Has || blocks.Number != 0.017 || title != "Σblocks 0.02 ms" {
		t.Errorf("blocks: %+v, %+v, %q", isolated, blocks, title)
	}
	for i := range s.Dispatches {
		s.Dispatches[i].Samples = []int64{7000, 8000, 9000}
	}
	isolated, blocks, title = cells(analyze.NewIndex(tr))
	want := 0.008 * float64(len(s.Dispatches))
	if math.Abs(isolated.Number-want) > 1e-9 || blocks.Number != 0.017 || !strings.HasPrefix(title, "Σgpu ") {
		t.Errorf("repeated: %+v, %+v, %q", isolated, blocks, title)
	}
}

// After repeats the title, the steps table and the dispatches table all show medians.
func TestSumsOfRepeatedStepsUseMedians(t *testing.T) {
	tr := oneStep("dispatch", 9050, 17, 20)
	for i, samples := range [][]int64{{7000, 8000, 9000}, {6600, 6600, 90_000}} {
		d := &tr.Steps[1].Dispatches[i]
		d.GPUNS, d.Samples = us(8), samples
	}
	x := analyze.NewIndex(tr)
	s := x.Summary(1)
	if s.Busy != trace.Measured(14_600) || s.Repeats != 3 ||
		!strings.Contains(dispatched(x, 1, analyze.Options{}).Title[1].String(),
			"Σgpu 0.01 ms isolated (medians of 3)") {
		t.Errorf("%v of %d", s.Busy, s.Repeats)
	}
	d := dispatched(x, 1, analyze.Options{Grouping: analyze.GroupNone})
	sum := 0.0
	for i := range d.Grouped {
		sum += d.Grouped[i].SumNS
	}
	steps := report.Steps(x, analyze.Selection{}, nil)
	if cell := steps.Cell(1, steps.Column("gpu_ms")); sum != 14_600 || cell.Number != 0.0146 {
		t.Errorf("the rows add up to %v ns, the step has %v ms", sum, cell.Number)
	}
	if cell := steps.Cell(1, steps.Column("gaps_ms")); cell.Has {
		t.Errorf("idle time of %q next to a sum from other runs", cell.Text)
	}
	if r := tracks.Of(x, 1); report.TrackRun(r) != "first of 4 runs" {
		t.Errorf("the track is from run %q", report.TrackRun(r))
	}
	if r := tracks.Of(x, 0); report.TrackRun(r) != "" {
		t.Errorf("the track of a step that ran once is labelled with run %q", report.TrackRun(r))
	}
	// A step timed as a whole, and repeated for the times of its dispatches.
	tr.Steps[1].Timing = trace.TimingStep
	if r := tracks.Of(analyze.NewIndex(tr), 1); report.TrackRun(r) != "" {
		t.Errorf("the track of a step timed as a whole is labelled with run %q", report.TrackRun(r))
	}
}

// The untimed times of a step are its own, measured by an observer or with its costs. For several steps they
// are those of the last step that has some.
func TestTheUntimedStepIsTheOneItself(t *testing.T) {
	whole := func(ms int64) *trace.Whole {
		wall := trace.Measured(ms * 1_000_000)
		return &trace.Whole{NS: ms * 900_000, OffNS: us(1), N: 31, WallNS: wall, WallOff: us(1)}
	}
	tr := tracetest.Run(1, 40, 7, 1, 1, 1, 1, 1)
	for i := range tr.Steps {
		s := &tr.Steps[i]
		s.Timing, s.Cold, s.CPU.TotalNS = "dispatch", false, us(20_000)
		s.CPU.ResizeNS, s.CPU.UploadNS, s.CPU.SampleNS = us(-1), us(-1), us(-1)
	}
	seen(tr, 8000, 7000)
	*tr.Observer.Step = tr.Steps[2].Index
	tr.Steps[5].Whole = whole(10)
	x := analyze.NewIndex(tr)
	for step, want := range []string{
		"", "", "s2 ×8", "", "", "s5 ×31", "",
	} {
		if u := x.Untimed(step); u.From != want {
			t.Errorf("step %d has times from %q, want %q", step, u.From, want)
		}
	}
	if u := x.Untimed(5); u.Wall != us(10_000) || u.GPU != us(9000) || u.Cost != "+100%" {
		t.Errorf("times of the step with costs: %+v", u)
	}
	cold := *x.Trace
	cold.Steps = slices.Clone(cold.Steps)
	for i := range cold.Steps {
		cold.Steps[i].Cold = i == 2
	}
	warm := analyze.NewIndex(&cold)
	want := fmt.Sprintf("%d warm decode steps", len(warm.Phase(trace.Decode).Steps))
	if !strings.HasPrefix(report.Pace(warm, only(6)).String(), want) {
		t.Errorf("want %s: %q", want, report.Pace(warm, only(6)))
	}
	if u := x.UntimedOf(x.Phase(trace.Decode)); u.From != "s5 ×31" {
		t.Errorf("decode has times from %q", u.From)
	}
	if pace := report.Pace(x, only(6)).Fit(35); !strings.Contains(pace, " decode steps, 10.0 ms (s5 ×31)") {
		t.Errorf("shortened, the time of one step must keep its origin: %s", pace)
	}
	if pace := report.Pace(x, only(6)).String(); !strings.Contains(pace, "untimed 10.0 ms (s5 ×31) · 100 tok/s") {
		t.Errorf("the next step: %q", pace)
	}
	tr.Observer, tr.Steps[5].Whole = nil, nil
	for _, level := range []trace.Timing{trace.TimingDispatch, trace.TimingBlock} {
		for i := range tr.Steps {
			tr.Steps[i].Timing = level
		}
		pace := report.Pace(analyze.NewIndex(tr), only(6)).String()
		if !strings.Contains(pace, " decode steps, all with every "+string(level)+" timed") {
			t.Errorf("%q", pace)
		}
	}
}

// The Step view and the profile show the same decode rate, next to the rate as timed, both for a trace and
// for live steps. A cold step that ran untimed does not represent the others.
func TestProfileAndPaceSayOneRate(t *testing.T) {
	tr := tracetest.Run(16, 40, 1, 1, 1, 7, 1)
	tr.Observer.Step = &tr.Steps[5].Index
	cold := &tr.Steps[1]
	cold.Cold, cold.Timing, cold.CPU.TotalNS = true, "off", us(90_000)
	x := analyze.NewIndex(tr)
	rate := regexp.MustCompile(`(\d+) tok/s stepped`).FindStringSubmatch(report.Pace(x, only(2)).String())
	if rate == nil {
		t.Fatal(report.Pace(x, only(2)))
	}
	var y rates.Tally
	for i := range tr.Steps {
		y.Add(tr, &tr.Steps[i])
	}
	for name, p := range map[string]*rates.Profile{"trace": profile(tr), "tally": y.Profile(x)} {
		lines := strings.Join(phases.Lines(p), "\n")
		want := " with timing on, median " + rate[1] + " untimed, stepped · timing dispatch"
		if !strings.Contains(lines, want) {
			t.Errorf("%s: %s\nwant %s tokens/s untimed", name, lines, rate[1])
		}
	}
}

// A rate of several steps is that of their mean, and says so. The median of the steps has another rate.
func TestProfileLabelsTheRateOfTheMean(t *testing.T) {
	for n, want := range map[int]string{1: "· 100.0 tokens/s", 4: "· mean 40.0 tokens/s"} {
		tr := tracetest.Run(1, slices.Repeat([]int{1}, n)...)
		for i := range tr.Steps {
			s := &tr.Steps[i]
			s.Phase, s.Cold, s.CPU.TotalNS = trace.Decode, false, us(10_000)
			if i == 3 {
				s.CPU.TotalNS = us(70_000)
			}
		}
		tr.Observer = nil
		p := profile(tr)
		if lines := strings.Join(phases.Lines(p), "\n"); !strings.Contains(lines, want) ||
			p.Rates[0].MedianNS != 10_000_000 {
			t.Errorf("%d steps, median %d ns: %s, want %s", n, p.Rates[0].MedianNS, lines, want)
		}
	}
}

func TestProfileExcludesColdStepsIfItCan(t *testing.T) {
	tr := tracetest.Run(1, 40, 7, 1, 1)
	for i, ms := range []int64{100, 10, 2, 3} {
		tr.Steps[i].CPU.TotalNS = trace.Measured(ms * 1_000_000)
	}
	p := profile(tr)
	if r := p.Rate("prefill"); r.TokensPerS != 700 || r.Steps != 1 || r.Cold != 1 || r.OnlyCold {
		t.Errorf("prefill %+v, want the 7 tokens in 10 ms", r)
	}
	r := p.Rate("decode")
	if r.TokensPerS != 400 || r.Tokens != 2 || r.LeastNS != 2e6 || r.MedianNS != 2.5e6 || r.MostNS != 3e6 {
		t.Errorf("decode %+v, want 2 tokens in 5 ms", r)
	}
	tr.Steps[1].Cold = true
	r = profile(tr).Rate("prefill")
	if r.TokensPerS < 427.2 || r.TokensPerS > 427.3 || !r.OnlyCold {
		t.Errorf("prefill %+v, want the 47 tokens in 110 ms, marked", r)
	}
	if r := p.Rate("execute"); r != nil {
		t.Errorf("execute %+v, want none", r)
	}
}

func TestProfileKeepsTimingLevelsApart(t *testing.T) {
	tr := tracetest.Run(1, 4, 1, 1, 1)
	tr.Steps[3].Timing = trace.TimingOff
	for i := range tr.Steps[3].Dispatches {
		tr.Steps[3].Dispatches[i].GPUNS = trace.Time{}
	}
	p := profile(tr)
	var got []string
	for _, r := range p.Rates {
		got = append(got, fmt.Sprint(r.Phase, " ", r.Timing))
	}
	if s := strings.Join(got, ", "); s != "prefill dispatch, decode dispatch, decode off" {
		t.Errorf("rates %s", s)
	}
	for _, k := range p.Kernels {
		if k.Phase == trace.Decode && (k.Share != 0 || k.Timed*3 != k.Count*2) {
			t.Errorf("%s: share %v, %d of %d timed, want no share and two thirds", k.Kernel, k.Share, k.Timed,
				k.Count)
		}
	}
}

// residual is add(x, f(x)), resized in the order of ExecuTorch's engine. The sum first sees operands of two
// lengths, and is resized again.
func residual() *trace.Trace {
	t := tracetest.Tiny()
	g := &t.Graph
	g.Values = append(g.Values,
		trace.Value{
			ID: 3, Name: "sum", Kind: "tensor", DType: "f32", MaxDims: []int{8, 4},
			Role: trace.RoleOutput,
		})
	g.Ops = append(g.Ops,
		trace.Op{
			ID: 1, Name: "layers.0.attn.add", Kind: "add", Inputs: []trace.ValueID{0, 2},
			Outputs: []trace.ValueID{3}, Layer: new(int), Block: "attn",
		})
	norm := t.Steps[1].Resize.Passes[0].Hooks[0]
	t.Steps[1].Resize = trace.Resize{Order: "fixpoint", NS: trace.Measured(3000), Passes: []trace.Pass{
		{
			Index: 0, Dirty: []trace.ValueID{0},
			Hooks: []trace.Hook{
				norm,
				{Op: 1, Triggers: []trace.ValueID{0}, NS: trace.Measured(200), Glitch: true, Deferred: true},
			},
		},
		{Index: 1, Dirty: []trace.ValueID{2}, Hooks: []trace.Hook{{
			Op: 1, Triggers: []trace.ValueID{2}, NS: trace.Measured(400),
			Changed: []trace.Change{{Value: 3, From: []int{3, 4}, To: []int{1, 4}}},
		}}},
		{Index: 2, Dirty: []trace.ValueID{3}},
	}}
	return t
}

func TestResizePassByPass(t *testing.T) {
	golden.RequireEqual(t,
		printed(t, resized(analyze.NewIndex(residual()), 1), table.Selection{All: true}, 80))
}

func TestAStepThatChangesNothingSaysSo(t *testing.T) {
	tr := tracetest.Tiny()
	tr.Steps[1].Resize = trace.Resize{Order: "topological"}
	want := "nothing changed: no operator was re-planned"
	if got := report.ResizeLine(analyze.NewIndex(tr).Resize(1)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhyOfADispatchThatNeverChanged(t *testing.T) {
	tr := tracetest.Tiny()
	tr.Steps[0].Resize, tr.Steps[1].Resize = trace.Resize{}, trace.Resize{}
	x := analyze.NewIndex(tr)
	lines := report.WhyLines(why.Of(x, 1, 0), "")
	if got, want := lines[0], "unchanged since the graph was built"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
	tr.DroppedSteps = 4
	lines = report.WhyLines(why.Of(x, 1, 0), "")
	want := "unchanged since before the first recorded step"
	if got := lines[0]; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
	lines = report.WhyLines(why.Of(analyze.NewIndex(timed(1, 0, 0, 1)), 0, 1), "")
	if got := strings.Join(lines, "\n"); !strings.Contains(got, "in s0 ") ||
		!strings.Contains(got, "never") {
		t.Errorf("a dispatch that never ran: %s", got)
	}
}

func TestReachesAreTheOperatorsDownstream(t *testing.T) {
	x := analyze.NewIndex(residual())
	if got := x.Reaches(0); len(got) != 2 || got[0] != 0 || got[1] != 1 {
		t.Errorf("x reaches %v, want both operators", got)
	}
	if got := x.Reaches(3); len(got) != 0 {
		t.Errorf("sum reaches %v, want nothing", got)
	}
}

// The time of a prompt is the sum of all its chunks. The warm time is that of the chunks' repeats, if they
// were repeated.
func TestPaceHasPromptTimesWarmAndCold(t *testing.T) {
	type piece struct {
		wall, again int64 // µs; again is -1 if it was not repeated
		cold        bool
	}
	for _, c := range []struct {
		pieces []piece
		timing trace.Timing
		want   string
	}{
		{[]piece{{37_456, 36_399, true}}, "step", " · prefill of 8 tokens: 36.4 ms warm (37.5 cold) · "},
		{[]piece{{37_456, -1, true}}, "step", " · prefill of 8 tokens: 37.5 ms cold · "},
		{[]piece{{37_456, 36_399, true}}, "dispatch", " prefill of 8 tokens: 36.4 ms warm (37.5 cold, timing on) · "},
		{
			[]piece{{20_000, 10_000, true}, {12_000, 11_000, false}},
			"step",
			" · prefill of 16 tokens: 21.0 ms warm (32.0 cold) · ",
		},
		{[]piece{{20_000, 10_000, true}, {12_000, -1, false}}, "step", " 16 tokens: 22.0 ms warm (32.0 cold) · "},
		{[]piece{{20_000, -1, true}, {12_000, 11_000, false}}, "step", " · prefill of 16 tokens: 32.0 ms cold · "},
		{[]piece{{20_000, -1, false}, {12_000, -1, false}}, "step", "prefill of 16 tokens: 32.0 ms warm · "},
		{[]piece{{20_000, -1, false}, {-1, -1, false}}, "step", "decode step, 1.00 ms · 1000 tok/s stepped · position"},
	} {
		chunks := []int{}
		for range c.pieces {
			chunks = append(chunks, 8)
		}
		tr := tracetest.Run(1, append(chunks, 1)...)
		for i, p := range c.pieces {
			s := &tr.Steps[i]
			s.Timing, s.Cold, s.CPU.TotalNS = c.timing, p.cold, us(p.wall)
			if s.Whole = nil; p.again >= 0 {
				s.Whole = &trace.Whole{NS: 1, N: 6, WallNS: us(p.again), WallOff: us(1)}
			}
		}
		last := &tr.Steps[len(c.pieces)]
		last.Timing, last.Cold, last.CPU.TotalNS = "step", false, us(1000)
		if pace := report.Pace(analyze.NewIndex(tr), only(0)).String(); !strings.Contains(pace, c.want) {
			t.Errorf("%+v: %s\nwant %s", c.pieces, pace, c.want)
		}
	}
	tr := tracetest.Run(1, 8, 1, 8) // two prompts
	for i, wall := range []int64{30_000, 1000, 9000} {
		tr.Steps[i].Timing, tr.Steps[i].Cold, tr.Steps[i].CPU.TotalNS = "step", i == 0, us(wall)
	}
	pace := report.Pace(analyze.NewIndex(tr), only(0)).String()
	if !strings.Contains(pace, "prefill of 8 tokens: 9.00 ms warm (30.0 cold)") {
		t.Error(pace)
	}
}

// hasAll reports whether a text contains the space-separated words of a list, in their order.
func hasAll(text, words string) bool {
	for word := range strings.FieldsSeq(words) {
		_, rest, found := strings.Cut(text, word)
		if !found {
			return false
		}
		text = rest
	}
	return true
}
