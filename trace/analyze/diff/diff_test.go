package diff_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/tracetest"
)

var ctx = context.Background()

// noisy is a run of a small Llama whose times have the noise of a run on a GPU.
type noisy struct {
	seed   uint64
	layers int
	steps  int
	// slow multiplies the times of the dispatches of a kernel.
	kernel string
	slow   float64
	clock  float64 // factor by which the clock is slower; 0 means 1
}

// trace returns the run. Its noise consists of a factor of the run, a factor of each dispatch that is the
// same in all steps, a slow drift, noise of each time, and rare slow steps and dispatches.
func (n noisy) trace() *trace.Trace {
	r := rand.New(rand.NewPCG(n.seed, 1))
	chunks := slices.Repeat([]int{1}, max(n.steps, 2))
	chunks[0] = tracetest.PromptTokens
	t := tracetest.Run(max(n.layers, 1), chunks...)
	run := math.Exp(0.007 * r.NormFloat64())
	if n.clock > 0 {
		run *= n.clock
	}
	placed := make([]float64, len(t.Graph.Dispatches))
	for i := range placed {
		placed[i] = math.Exp(0.012 * r.NormFloat64())
	}
	drift := 0.0
	for i := range t.Steps {
		s := &t.Steps[i]
		if n.clock > 0 {
			s.Canary = 1 / n.clock
		}
		drift = 0.9*drift + 0.004*r.NormFloat64()
		whole := run * math.Exp(drift)
		if r.IntN(20) == 0 {
			whole *= 1 + r.ExpFloat64()
		}
		busy := int64(0)
		for k := range s.Dispatches {
			d := &s.Dispatches[k]
			p := &t.Plans[d.Plan]
			ns, _ := d.GPUNS.NS()
			f := whole * placed[p.Dispatch] * math.Exp(0.01*r.NormFloat64())
			if r.IntN(50) == 0 {
				f *= 1 + r.ExpFloat64()
			}
			if p.Kernel == n.kernel {
				f *= n.slow
			}
			ns = int64(math.Round(float64(ns)*f/32)) * 32
			d.GPUNS = trace.Measured(ns)
			busy += ns
		}
		span := busy + int64(1280*(len(s.Dispatches)-1))
		s.GPU.BusyNS, s.GPU.SpanNS = trace.Measured(busy), trace.Measured(span)
		s.CPU.TotalNS = trace.Measured(span + int64(200_000*math.Exp(0.1*r.NormFloat64())))
	}
	return t
}

func side(t *trace.Trace) diff.Side {
	x := analyze.NewIndex(t)
	return diff.Side{Index: x, Selection: x.Phase(trace.Decode), Name: "run"}
}

func compare(t *testing.T, base, now diff.Side) *diff.Diff {
	t.Helper()
	d, err := diff.Of(ctx, base, now)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTraceAgainstItselfHasNoDifference(t *testing.T) {
	for _, tr := range []*trace.Trace{tracetest.Llama(2, 24), noisy{seed: 1, layers: 2, steps: 24}.trace()} {
		a := side(tr)
		d := compare(t, a, a)
		if d.Joined != join.ByID || d.Significant() {
			t.Errorf("joined %v, significant %v", d.Joined, d.Significant())
		}
		for i := range d.Rows {
			if r := &d.Rows[i]; r.Status != diff.Same || r.Times.DeltaNS != 0 || r.Plan.Any() {
				t.Errorf("%s: %s, Δ %g, plan %s", r.Name, r.Status, r.Times.DeltaNS, r.Plan)
			}
		}
		for i := range d.Groups {
			if g := &d.Groups[i]; g.Status != diff.Same || g.Times.DeltaNS != 0 || g.Base != g.Now {
				t.Errorf("%s: %s, Δ %g", g.Name, g.Status, g.Times.DeltaNS)
			}
		}
		for i := range d.Totals {
			if g := &d.Totals[i]; g.Times.DeltaNS != 0 || g.Why != "" {
				t.Errorf("%s %s: Δ %g %s", g.Scope, g.Measure, g.Times.DeltaNS, g.Why)
			}
		}
	}
}

func TestSwappedSidesNegateEveryDifference(t *testing.T) {
	a := side(noisy{seed: 1, layers: 2, steps: 24}.trace())
	b := side(noisy{seed: 2, layers: 2, steps: 24, kernel: "rms_norm", slow: 1.4, clock: 1.02}.trace())
	d, e := compare(t, a, b), compare(t, b, a)
	opposite := func(name string, x, y diff.Times) {
		if x.DeltaNS != -y.DeltaNS || x.Base != y.Now || x.Now != y.Base || x.Significant != y.Significant ||
			math.Abs(x.NoiseNS-y.NoiseNS) > 1e-6*x.NoiseNS {
			t.Errorf("%s: %+v against %+v", name, x, y)
		}
	}
	if len(d.Rows) != len(e.Rows) || len(d.Totals) != len(e.Totals) || len(d.Totals) == 0 {
		t.Fatalf("%d and %d rows", len(d.Rows), len(e.Rows))
	}
	for i := range d.Rows {
		opposite(d.Rows[i].Name, d.Rows[i].Times, e.Rows[i].Times)
	}
	for i := range d.Totals {
		opposite(d.Totals[i].Scope, d.Totals[i].Times, e.Totals[i].Times)
	}
	opposite("isolated", d.Isolated, e.Isolated)
}

// Each grouping divides the rows, so its groups add up to the sum of all dispatches. Dispatches of one side
// only are included.
func TestGroupsAddUpToTheTotal(t *testing.T) {
	tr := noisy{seed: 4, layers: 2, steps: 24}.trace()
	for i := range tr.Steps { // the last dispatches of each step do not run
		s := &tr.Steps[i]
		s.Dispatches = s.Dispatches[:len(s.Dispatches)-2]
	}
	for _, sides := range [][2]diff.Side{
		{side(noisy{seed: 3, layers: 2, steps: 24}.trace()), side(tr)},
		{side(tr), side(noisy{seed: 3, layers: 2, steps: 24}.trace())},
	} {
		d := compare(t, sides[0], sides[1])
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-6*math.Abs(want)+1e-3 {
				t.Errorf("%s: %g, want %g", what, got, want)
			}
		}
		gone := d.Count(func(r *diff.Row) bool { return r.Status == diff.Gone || r.Status == diff.Added })
		if gone != 2 {
			t.Errorf("%d rows on one side only, want 2", gone)
		}
		var base, now float64
		for i := range d.Rows {
			base, now = base+d.Rows[i].Times.Base.NS, now+d.Rows[i].Times.Now.NS
		}
		near("rows at the baseline", base, d.Isolated.Base.NS)
		near("rows", now, d.Isolated.Now.NS)
		near("difference", now-base, d.Isolated.DeltaNS)
		for _, by := range []diff.By{diff.ByKernel, diff.ByOp, diff.ByKind, diff.ByClass, diff.ByLayer} {
			base, now := 0.0, 0.0
			for _, g := range d.GroupsBy(by) {
				base, now = base+g.Times.Base.NS, now+g.Times.Now.NS
			}
			near(string(by)+" at the baseline", base, d.Isolated.Base.NS)
			near(string(by), now, d.Isolated.Now.NS)
		}
	}
}

// Times are per step: a dispatch that ran in a part of the steps counts in proportion.
func TestTimesOfRowsAddUpToTheStep(t *testing.T) {
	tr := tracetest.Llama(2, 9)
	for i := range tr.Steps {
		s := &tr.Steps[i]
		for k := range s.Dispatches {
			s.Dispatches[k].GPUNS = trace.Measured(1000)
		}
	}
	x := analyze.NewIndex(tr)
	of := diff.Side{Index: x, Selection: analyze.Selection{Steps: x.EveryStep()}}
	d := compare(t, of, of)
	sum := 0.0
	for i := range d.Rows {
		sum += d.Rows[i].Times.Now.NS
	}
	want := 1000 * len(tr.Steps[d.NowRows.Last()].Dispatches)
	if s := d.NowRows; sum != float64(want) || s.Apart != 1 || s.Tokens != 1 { // without the prompt
		t.Errorf("%g ns in a step, want %d; selection %+v", sum, want, s)
	}
}

// If the graphs differ, an operator or a kind with dispatches of one side only has no verdict: their work may
// be elsewhere on the other side. Layers and classes have all work and are judged.
func TestGroupsOfOtherWorkAreNotJudged(t *testing.T) {
	t.Parallel()
	tr := noisy{seed: 3, layers: 2, steps: 24, kernel: "rms_norm", slow: 3}.trace()
	for i := range tr.Graph.Ops {
		if o := &tr.Graph.Ops[i]; o.Name == "layers.1.attn.norm" {
			o.Name = "layers.1.attn.normed" // as if its work was elsewhere at the baseline
		}
	}
	d := compare(t, side(noisy{seed: 4, layers: 2, steps: 24}.trace()), side(tr))
	for _, c := range []struct {
		by     diff.By
		name   string
		judged bool
	}{
		{diff.ByOp, "attn.norm", false},
		{diff.ByKind, "rms_norm", false},
		{diff.ByOp, "mlp.norm", true},
		{diff.ByClass, "norms", true},
		{diff.ByLayer, "layer 1", true},
	} {
		i := slices.IndexFunc(d.Groups, func(g diff.Group) bool { return g.By == c.by && g.Name == c.name })
		if i < 0 {
			t.Fatalf("there is no %s %s", c.by, c.name)
		}
		g := &d.Groups[i]
		_, relative := g.Times.Relative()
		if g.Times.OtherWork == c.judged || g.Times.Known != c.judged || relative != c.judged ||
			g.Times.Significant != c.judged {
			t.Errorf("%s %s: %+v, judged: want %t", c.by, c.name, g.Times, c.judged)
		}
		if !c.judged && g.Status != diff.Incomparable || !g.Times.Base.Measured || !g.Times.Now.Measured {
			t.Errorf("%s %s: status %s, %+v", c.by, c.name, g.Status, g.Times)
		}
	}
}

func TestSlowedKernelIsNamedFirst(t *testing.T) {
	t.Parallel()
	seeds := 40
	if testing.Short() {
		seeds = 4
	}
	base := compare(t, side(noisy{seed: 1, layers: 2, steps: 25}.trace()),
		side(noisy{seed: 1, layers: 2, steps: 25}.trace()))
	tried := 0
	for _, g := range base.GroupsBy(diff.ByKernel) {
		if g.Times.Base.NS < base.Isolated.Base.NS/10 {
			continue
		}
		tried++
		for seed := range uint64(seeds) {
			d := compare(t, side(noisy{seed: 1000 + seed, layers: 2, steps: 25}.trace()),
				side(noisy{seed: 2000 + seed, layers: 2, steps: 25, kernel: g.Name, slow: 1.2}.trace()))
			first := d.First(diff.ByKernel)
			if first == nil || first.Name != g.Name || first.Times.DeltaNS < 0 {
				t.Errorf("seed %d: %s is not first", seed, g.Name)
			}
		}
	}
	if tried < 2 {
		t.Errorf("%d kernels with a tenth of the time", tried)
	}
}

// Two equal runs that differ only by noise may have a significant row, group or total in at most 5 % of the
// pairs.
func TestEqualRunsAreRarelyDifferent(t *testing.T) {
	t.Parallel()
	pairs := uint64(200)
	if testing.Short() {
		pairs = 25
	}
	for _, steps := range []int{7, 12, 30} { // the first is a prefill
		alarms := 0
		for seed := range pairs {
			a := side(noisy{seed: 10_000 + 2*seed, layers: 2, steps: steps}.trace())
			b := side(noisy{seed: 10_001 + 2*seed, layers: 2, steps: steps}.trace())
			if compare(t, a, b).Significant() {
				alarms++
			}
		}
		if 20*alarms > int(pairs) {
			t.Errorf("%d steps: %d of %d pairs differ", steps, alarms, pairs)
		}
	}
}

func TestClockChangeIsNoRegression(t *testing.T) {
	alarms := 0
	for seed := range uint64(10) {
		a := side(noisy{seed: 50 + seed, layers: 2, steps: 25, clock: 1}.trace())
		b := side(noisy{seed: 70 + seed, layers: 2, steps: 25, clock: 1.15}.trace())
		if compare(t, a, b).Significant() {
			alarms++
		}
		const slow = "linear_q4gsw_coop4_bicol"
		b = side(noisy{seed: 70 + seed, layers: 2, steps: 25, clock: 1.15, kernel: slow, slow: 1.4}.trace())
		if g := compare(t, a, b).First(diff.ByKernel); g == nil || g.Name != slow {
			t.Errorf("seed %d: a kernel that is 40%% slower beside a slower clock was not found", seed)
		}
	}
	if alarms > 1 {
		t.Errorf("%d of 10 pairs differ only in the clock and were reported", alarms)
	}
}

func TestOneTimeIsNeverSignificant(t *testing.T) {
	a := side(noisy{seed: 1, steps: 2}.trace())
	b := side(noisy{seed: 2, steps: 2, kernel: "rms_norm", slow: 3}.trace())
	d := compare(t, a, b)
	if d.Significant() {
		t.Error("one step on each side gave a significant difference")
	}
	for i := range d.Rows {
		if d.Rows[i].Times.Known {
			t.Errorf("%s: noise known from one time", d.Rows[i].Name)
		}
	}
}

func TestChangedPlansAreListed(t *testing.T) {
	now := noisy{seed: 1, steps: 8}.trace()
	last := now.Steps[7].Dispatches
	g := &now.Plans[last[3].Plan]
	g.Workgroups[0]++
	route := &now.Plans[last[5].Plan]
	route.Route, route.Kernel = "other", "other"
	d := compare(t, side(noisy{seed: 1, steps: 8}.trace()), side(now))
	if r := &d.Rows[3]; !r.Plan.Grid || r.Status != diff.Changed {
		t.Errorf("%s: %s %s", r.Name, r.Status, r.Plan)
	}
	if r := &d.Rows[5]; !r.Plan.Route || r.Status != diff.Changed {
		t.Errorf("%s: %s %s", r.Name, r.Status, r.Plan)
	}
	if n := d.Count(func(r *diff.Row) bool { return r.Status != diff.Same }); n != 2 {
		t.Errorf("%d rows changed, want 2", n)
	}
	for _, g := range d.GroupsBy(diff.ByKernel) {
		if (g.Name == "other") != (g.Status == diff.Added) {
			t.Errorf("kernel %s: %s", g.Name, g.Status)
		}
	}
}

func TestUntimedStepsComparePlansAndTotals(t *testing.T) {
	untimed := func(seed uint64) diff.Side {
		tr := noisy{seed: seed, steps: 12}.trace()
		for i := range tr.Steps {
			tr.Steps[i].Timing = trace.TimingStep
			for k := range tr.Steps[i].Dispatches {
				tr.Steps[i].Dispatches[k].GPUNS = trace.Time{}
			}
		}
		return side(tr)
	}
	d := compare(t, untimed(1), untimed(2))
	if d.Isolated.Both() || len(d.Rows) == 0 || d.Rows[0].Times.Both() {
		t.Errorf("times of dispatches that were not timed: %+v", d.Isolated)
	}
	if tot := d.Total("decode", diff.Span); tot == nil || !tot.Times.Known {
		t.Errorf("no GPU time: %+v", tot)
	}
	timed := side(noisy{seed: 3, steps: 12}.trace())
	if tot := compare(t, untimed(1), timed).Total(diff.Selected, diff.Wall); tot == nil || tot.Why == "" {
		t.Errorf("steps at different timing levels were compared: %+v", tot)
	}
}

func TestNoStepsIsAnError(t *testing.T) {
	a := side(noisy{seed: 1, steps: 3}.trace())
	if _, err := diff.Of(ctx, a, diff.Side{Index: a.Index}); !errors.Is(err, diff.ErrNoSteps) {
		t.Error(err)
	}
}

// One step of the prompt is too few, so its untimed repeats are compared.
func TestRepeatsOfOneStepAreCompared(t *testing.T) {
	repeated := func(ns int64, n int) diff.Side {
		tr := noisy{seed: 1, steps: 8}.trace()
		tr.Steps[0].Whole = &trace.Whole{
			NS: ns, N: n, OffNS: trace.Measured(ns / 200), WallNS: trace.Measured(ns + ns/10),
			WallOff: trace.Measured(ns / 100),
		}
		return side(tr)
	}
	for _, c := range []struct {
		ns          int64
		n           int
		repeats     bool
		significant bool
	}{
		{1_000_000, 20, true, false},
		{1_030_000, 20, true, false},
		{1_300_000, 20, true, true},
		{1_300_000, 3, false, false},
	} {
		d := compare(t, repeated(1_000_000, c.n), repeated(c.ns, c.n))
		for _, m := range []diff.Measure{diff.Wall, diff.Span} {
			tot := d.Total("prefill", m)
			if tot == nil || tot.Repeats != c.repeats || tot.Times.Significant != c.significant {
				t.Errorf("%s %d ns, %d repeats: %+v", m, c.ns, c.n, tot)
			}
		}
		if tot := d.Total("decode", diff.Wall); tot.Repeats {
			t.Error("repeats were compared although there are enough steps")
		}
	}
}

// rerouted returns a run of 20 decode steps that changes its routes at step 13. The steps before take four
// times as long.
func rerouted(seed uint64) *trace.Trace {
	tr := noisy{seed: seed, steps: 21}.trace()
	for i := 1; i < 13; i++ {
		tracetest.Reroute(tr, i)
		s := &tr.Steps[i]
		wall, _ := s.CPU.TotalNS.NS()
		span, _ := s.GPU.SpanNS.NS()
		s.CPU.TotalNS, s.GPU.SpanNS = trace.Measured(4*wall), trace.Measured(4*span)
		for k := range s.Dispatches {
			ns, _ := s.Dispatches[k].GPUNS.NS()
			s.Dispatches[k].GPUNS = trace.Measured(4 * ns)
		}
	}
	return tr
}

// If a run changes its routes within the selection, all times are of the same steps on each side: those with
// the routes of the last step.
func TestAllTimesAreOfTheStepsWithTheSameRoutes(t *testing.T) {
	plain, changed := side(noisy{seed: 1, steps: 21}.trace()), side(rerouted(2))
	late := changed
	late.Selection = late.Index.Range(13, 20)
	for _, swap := range []bool{false, true} {
		sides := [3]diff.Side{plain, changed, late}
		compared := func(other diff.Side) (*diff.Diff, diff.Side, analyze.Selection) {
			if swap {
				d := compare(t, other, sides[0])
				return d, d.Base, d.BaseRows
			}
			d := compare(t, sides[0], other)
			return d, d.Now, d.NowRows
		}
		d, of, rows := compared(sides[1])
		want, _, _ := compared(sides[2])
		if s := of.Selection; !slices.Equal(s.Steps, sides[2].Selection.Steps) || s.Rerouted != 12 ||
			s.Like != "s20" || !slices.Equal(rows.Steps, s.Steps) {
			t.Errorf("selection %+v, rows of %v; want s13 to s20", s, rows.Steps)
		}
		for _, scope := range []string{diff.Selected, "decode"} {
			for _, m := range []diff.Measure{diff.Wall, diff.Span} {
				got, like := d.Total(scope, m), want.Total(diff.Selected, m)
				if got.Times != like.Times || min(got.Times.Base.N, got.Times.Now.N) != 8 {
					t.Errorf("%s %s: %+v, want those of s13 to s20: %+v", scope, m, got.Times, like.Times)
				}
			}
		}
		if d.Isolated != want.Isolated || len(d.Rows) != len(want.Rows) {
			t.Errorf("isolated %+v, want those of s13 to s20: %+v", d.Isolated, want.Isolated)
		}
		if rel, ok := d.Total(diff.Selected, diff.Wall).Times.Relative(); !ok || math.Abs(rel) > 0.5 {
			t.Errorf("wall time differs by %+.0f %%", 100*rel)
		}
	}
}

// Dispatches are compared in the timed steps of the narrowed selection: a timed step with other routes is not
// among them.
func TestTimedStepsHaveTheSameRoutes(t *testing.T) {
	tr := rerouted(2)
	for i := 14; i < 20; i += 2 {
		tr.Steps[i].Timing = trace.TimingStep
		for k := range tr.Steps[i].Dispatches {
			tr.Steps[i].Dispatches[k].GPUNS = trace.Time{}
		}
	}
	d := compare(t, side(noisy{seed: 1, steps: 21}.trace()), side(tr))
	if got, want := d.NowRows.Steps, []int{13, 15, 17, 19, 20}; !slices.Equal(got, want) {
		t.Errorf("dispatches of steps %v, want %v", got, want)
	}
}
