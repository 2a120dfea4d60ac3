package report_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/report"
	"gpuscope/trace/report/phases"
	"gpuscope/trace/tracetest"
)

// Pipelined steps, which are sent before the previous steps were read, have their own rate. Each line names
// its mode. The profile shows means; the Step view shows the median of the more frequent mode.
func TestRatesSayTheMode(t *testing.T) {
	tr := tracetest.Llama(2, 9)
	for i := range tr.Steps {
		s := &tr.Steps[i]
		s.Timing, s.Cold, s.Pipelined = "step", false, i > 3
		s.CPU.TotalNS = us(map[bool]int64{false: 8000, true: 2000}[s.Pipelined])
	}
	tr.Steps[8].CPU.TotalNS = us(6000)
	var y rates.Tally
	for i := range tr.Steps {
		y.Add(tr, &tr.Steps[i])
	}
	var modes []string
	p := y.Profile(analyze.NewIndex(tr))
	for _, r := range p.Rates {
		modes = append(modes, fmt.Sprintf("%s %s %d", r.Phase, r.Mode, r.Steps))
	}
	said := phases.Lines(p)[1:]
	wanted := []string{
		"decode: 3 tokens in 3 steps · mean 125.0 tokens/s, stepped · timing step · mean 8.00 ms a step, median 8.00 (8.00–8.00)",
		"decode: 5 tokens in 5 steps · mean 357.1 tokens/s, pipelined · timing step · mean 2.80 ms a step, median 2.00 (2.00–6.00)",
	}
	if d := cmp.Diff(wanted, said[:2]); d != "" {
		t.Error(d)
	}
	wantModes := []string{
		"prefill stepped 1", "decode stepped 3", fmt.Sprintf("decode pipelined %d", len(tr.Steps)-4),
	}
	if d := cmp.Diff(wantModes, modes); d != "" {
		t.Error(d)
	}
	pace := func() string { return report.Pace(analyze.NewIndex(tr), only(5)).String() }
	want := "5 of 8 decode steps, median 2.00 ms (2.00–6.00) · 500 tok/s pipelined · "
	if !strings.HasPrefix(pace(), want) {
		t.Errorf("%s\nwant %s", pace(), want)
	}
	tr.Steps[8].Pipelined, tr.Steps[7].Pipelined, tr.Steps[6].Pipelined = false, false, false
	want = "6 of 8 decode steps, median 7.00 ms (2.00–8.00) · 143 tok/s stepped · "
	if !strings.HasPrefix(pace(), want) {
		t.Errorf("%s\nwant %s", pace(), want)
	}
}

// The mode of a run is that of most of its steps, or of the later ones if both are equally frequent. Cold
// steps do not change it, because which steps are cold is chance.
func TestRateOfAPhaseKeepsItsMode(t *testing.T) {
	for _, later := range []int{2, 3} { // number of pipelined steps after two stepped decode steps
		tr := tracetest.Llama(2, 3+later)
		for i := range tr.Steps {
			tr.Steps[i].Timing, tr.Steps[i].Pipelined = "step", i > 2
		}
		for cold := range 1 << (2 + later) {
			var y rates.Tally
			for i := range tr.Steps {
				s := &tr.Steps[i]
				s.Cold = cold<<1>>i&1 != 0
				y.Add(tr, s)
			}
			if r := y.Profile(analyze.NewIndex(tr)).Rate("decode"); r.Mode != "pipelined" {
				t.Errorf("mode %s with cold steps %05b and %d pipelined steps", r.Mode, cold, later)
			}
		}
	}
}

// If steps are repeated after they were added, the profile is that of the trace with the repeats.
func TestTallyHasTheTimesOfRepeats(t *testing.T) {
	tr := tracetest.Llama(2, 4) // the last step has repeats
	x := analyze.NewIndex(tr)
	want, err := rates.Of(ctx, x, analyze.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	var y rates.Tally
	for i := range tr.Steps {
		s := &tr.Steps[i]
		first := *s
		first.Dispatches = slices.Clone(s.Dispatches)
		for k := range first.Dispatches {
			d := &first.Dispatches[k]
			d.Samples, d.GPUNS = nil, trace.Measured(777)
		}
		y.Add(tr, &first)
		y.Repeating(tr, &first)(tr, s)
	}
	if got := y.Profile(x); !reflect.DeepEqual(got.Kernels, want.Kernels) {
		t.Errorf("kernels %+v\nwant %+v", got.Kernels, want.Kernels)
	}
}

// The overhead of timing is measured by repeating one step. Its line names this step and the repeats, because
// the times can differ from the median of the run's timed steps.
func TestOverheadOfTimingNamesItsStep(t *testing.T) {
	tr := tracetest.Run(3, 40, 1)
	step := 2
	tr.Observer = &trace.Observer{
		Step: &step, N: 8, UntimedNS: trace.Measured(2_790_000), UntimedOff: trace.Measured(100_000),
		TimedNS: trace.Measured(9_300_000),
	}
	p, err := rates.Of(ctx, analyze.NewIndex(tr), analyze.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	lines := phases.Lines(p)
	at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "9.30") })
	if at < 0 || !wordingtest.Mentions(errors.New(lines[at]), "s2 2.79 9.30 233 8") {
		t.Errorf("want 2.79 ms and 9.30 ms of 8 repeats of s2: %q", lines)
	}
	decode := &p.Rates[slices.IndexFunc(p.Rates, func(r rates.Rate) bool { return r.Phase == trace.Decode })]
	if median := fmt.Sprintf("%.2f", float64(decode.MedianNS)/1e6); median == "9.30" ||
		!strings.Contains(strings.Join(lines[:at], "\n"), median) {
		t.Errorf("the decode line has no median of %s ms: %q", median, lines)
	}
}

// Kernels are sorted by potential saving if costs are known, otherwise by time. Costs of unknown error do not
// affect the order.
func TestTheProfileRanksKernelsByTheirCosts(t *testing.T) {
	x := costed(t, tracetest.Run(2, 40, 1), 1)
	s := &x.Trace.Steps[1]
	profile := func() (kernels []string, told int, lines string) {
		p, err := rates.Of(ctx, x, analyze.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range p.Kernels {
			if k.Phase == trace.Decode {
				kernels = append(kernels, k.Kernel)
			}
			if k.Cost != nil && k.Cost.Significant() {
				told++
			}
		}
		return kernels, told, strings.Join(phases.Lines(p), "\n")
	}
	by, told, lines := profile()
	if told == 0 || !strings.Contains(lines, "s1, 30 rounds") {
		t.Errorf("%d kernels have a cost: %s", told, lines)
	}
	last := by[len(by)-1]
	for i := range s.Costs { // now the last kernel can save the most after the products
		c := &s.Costs[i]
		for _, d := range s.Dispatches {
			p := &x.Trace.Plans[d.Plan]
			if p.Kernel == last && slices.Equal(c.Dispatches, []trace.DispatchID{p.Dispatch}) {
				c.NS, c.Q1NS, c.Q3NS = 80_000, 79_600, 80_600
			}
		}
	}
	if got, _, _ := profile(); got[1] != last {
		t.Errorf("want %q second: %q", last, got)
	}
	for i := range s.Costs {
		s.Costs[i].N = 1
	}
	alone, told, _ := profile()
	s.Costs = nil
	if want, _, _ := profile(); told > 0 || !slices.Equal(alone, want) {
		t.Errorf("sorted with costs of 1 round %q, by isolated times %q", alone, want)
	}
}

// only selects one step by its index.
func only(step int) analyze.Selection { return analyze.Selection{Steps: []int{step}} }
