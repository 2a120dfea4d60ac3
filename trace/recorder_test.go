package trace_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
)

func TestRecorderWithoutPressureKeepsTheTrace(t *testing.T) {
	want := tracetest.Llama(1, 5)
	r := trace.NewRecorder(want, 0)
	for i := range want.Plans {
		if err := r.Write(trace.Record{Plan: &want.Plans[i]}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range want.Steps {
		if err := r.Write(trace.Record{Step: &want.Steps[i]}); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, r.Snapshot()); d != "" {
		t.Error(d)
	}
}

func TestRecorderRefusesWhatDoesNotFit(t *testing.T) {
	tr := tracetest.Llama(1, 2)
	r := trace.NewRecorder(tr, 0)
	for name, rec := range map[string]trace.Record{
		"a step without a known plan": {Step: &tr.Steps[0]},
		"a plan out of order":         {Plan: &tr.Plans[1]},
		"samples of an unknown step":  {Samples: &trace.Samples{Step: 9}},
		"errors of an unknown step":   {Gaps: &trace.NumericErrors{Step: 9}},
		"costs of an unknown step":    {Costs: &trace.Costs{Step: 9}},
		"too many costs":              {Costs: &trace.Costs{Costs: make([]trace.Cost, 1<<13)}},
	} {
		if err := r.Write(rec); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestInternerForgetsOldPlans(t *testing.T) {
	var in trace.Interner
	id := func(params string) trace.PlanID {
		id, _ := in.ID([]byte(params))
		return id
	}
	if a, b, again := id("00"), id("01"), id("00"); a != 0 || b != 1 || again != 0 {
		t.Fatalf("ids %d, %d, %d, want 0, 1, 0", a, b, again)
	}
	for range trace.PlanMemory / 2 {
		in.Step()
	}
	if again := id("00"); again != 0 {
		t.Errorf("a remembered plan has id %d, want 0", again)
	}
	for range trace.PlanMemory {
		in.Step()
	}
	if again := id("00"); again != 2 {
		t.Errorf("a forgotten plan has id %d, want the next one, 2", again)
	}
}

func TestRecorderDropsTheOldestSteps(t *testing.T) {
	chunks := []int{40}
	for i := range 60 {
		// Alternate decodes and prefills, so that dims and routes change back and forth.
		chunks = append(chunks, 1+i%7*(i%2))
	}
	whole := tracetest.Run(1, chunks...)
	all := analyze.NewIndex(whole)
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(30_000, 400_000).Draw(t, "budget")
		r := trace.NewRecorder(whole, budget)
		var snapshots []*trace.Trace
		var texts [][]byte
		tracetest.Record(t, r, whole, func() {
			s := r.Snapshot()
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			if s.DroppedSteps+len(s.Steps) != s.Steps[len(s.Steps)-1].Index+1 {
				t.Fatalf("%d dropped and %d kept, after step %d", s.DroppedSteps, len(s.Steps),
					s.Steps[len(s.Steps)-1].Index)
			}
			if len(snapshots) < 3 || len(s.Steps)%16 == 0 {
				snapshots, texts = append(snapshots, s), append(texts, encoded(t, s))
			}
		})
		last := r.Snapshot()
		if last.DroppedSteps == 0 {
			t.Fatal("nothing was dropped: the budget is too large for this test")
		}
		x := analyze.NewIndex(last)
		for i := range last.Steps {
			at := last.Steps[i].Index
			for v := range whole.Graph.Values {
				if d := cmp.Diff(all.Dims(at, trace.ValueID(v)), x.Dims(i, trace.ValueID(v))); d != "" {
					t.Fatalf("step %d, value %d: %s", at, v, d)
				}
			}
			for j, sd := range last.Steps[i].Dispatches {
				got, want := last.Plans[sd.Plan], whole.Plans[whole.Steps[at].Dispatches[j].Plan]
				got.ID, want.ID = 0, 0
				if got != want {
					t.Fatalf("step %d, dispatch %d: plan %v, want %v", at, j, got, want)
				}
			}
			for p, pass := range last.Steps[i].Resize.Passes {
				for h, hook := range pass.Hooks {
					for k, c := range hook.Plans {
						w := whole.Steps[at].Resize.Passes[p].Hooks[h].Plans[k]
						if !samePlan(last, c.From, whole, w.From) || !samePlan(last, c.To, whole, w.To) {
							t.Fatalf("step %d, op %d: its change refers to other plans", at, hook.Op)
						}
					}
				}
			}
			a, err := report.Dispatches(t.Context(), x, analyze.Options{Selection: x.Step(i)})
			b, again := report.Dispatches(t.Context(), all, analyze.Options{Selection: all.Step(at)})
			if err != nil || again != nil || a.Launches[5].Level != b.Launches[5].Level {
				t.Fatalf("step %d: level %d, want %d (%v, %v)", at, a.Launches[5].Level, b.Launches[5].Level,
					err, again)
			}
		}
		for i, s := range snapshots {
			if !bytes.Equal(encoded(t, s), texts[i]) {
				t.Fatalf("snapshot %d changed after it was taken", i)
			}
		}
	})
}

// If a run exceeds the budget, everything that is kept is copied whenever steps are dropped. So half of the
// budget is dropped at a time. Growing lists must not be copied repeatedly either.
func TestLongRunsAreNotCopiedRepeatedly(t *testing.T) {
	whole := tracetest.Run(0, slices.Repeat([]int{1}, 4000)...)
	r := trace.NewRecorder(whole, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan := 0
	for i := range whole.Steps {
		for _, d := range whole.Steps[i].Dispatches {
			for ; plan <= int(d.Plan); plan++ {
				if err := r.Write(trace.Record{Plan: &whole.Plans[plan]}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := r.Write(trace.Record{Step: &whole.Steps[i]}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	size := uint64(len(whole.Plans))*uint64(unsafe.Sizeof(trace.Plan{})) +
		uint64(len(whole.Steps))*uint64(unsafe.Sizeof(trace.Step{}))
	if all := after.TotalAlloc - before.TotalAlloc; all > 3*size {
		t.Errorf("lists of %d bytes allocated %d bytes in total", size, all)
	}

	r = trace.NewRecorder(whole, 2_000_000)
	most, dropped := 0, 0
	tracetest.Record(t, r, whole, func() {
		s := r.Snapshot()
		most = max(most, len(s.Steps))
		if kept := len(s.Steps); s.DroppedSteps > dropped && (kept < most*3/10 || kept > most*3/5) {
			t.Errorf("%d of %d steps are kept", kept, most)
		}
		dropped = s.DroppedSteps
	})
	if dropped == 0 {
		t.Error("nothing was dropped: the budget is too large for this test")
	}
}

func samePlan(a *trace.Trace, i *trace.PlanID, b *trace.Trace, j *trace.PlanID) bool {
	if i == nil || j == nil {
		return i == j
	}
	p, q := &a.Plans[*i], &b.Plans[*j]
	return p.Dispatch == q.Dispatch && p.Same(q)
}

func encoded(t interface{ Fatal(...any) }, tr *trace.Trace) []byte {
	var b bytes.Buffer
	if err := trace.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A trace has the plans that its steps use and no others, so that the budget is not spent on the plans of
// dropped steps.
func TestRecorderDropsThePlansOfDroppedSteps(t *testing.T) {
	steps := 3 * trace.PlanMemory
	// Each step has two new plans: the slices start elsewhere.
	whole := tracetest.Run(0, slices.Repeat([]int{1}, steps)...)
	r := trace.NewRecorder(whole, 200_000)
	fewest := steps
	tracetest.Record(t, r, whole, func() {
		if s := r.Snapshot(); s.DroppedSteps > 0 {
			fewest = min(fewest, len(s.Steps))
		}
	})
	got := r.Snapshot()
	if err := got.Check(); err != nil {
		t.Fatal(err)
	}
	if n := len(usedPlans(got)); n != len(got.Plans) {
		t.Errorf("%d of %d plans are used", n, len(got.Plans))
	}
	if fewest < 40 { // with its plans, a step of this graph needs about 2,100 bytes
		t.Errorf("only %d steps are kept in a budget of 200,000 bytes", fewest)
	}
	for i := range got.Steps {
		for j := range got.Steps[i].Dispatches {
			if !samePlan(got, &got.Steps[i].Dispatches[j].Plan, whole,
				&whole.Steps[got.Steps[i].Index].Dispatches[j].Plan) {
				t.Fatalf("step %d, dispatch %d has another plan", got.Steps[i].Index, j)
			}
		}
	}
}

// usedPlans returns the ids of the plans that the steps of a trace use.
func usedPlans(t *trace.Trace) map[trace.PlanID]bool {
	used := map[trace.PlanID]bool{}
	for i := range t.Steps {
		tracetest.Renumber(t.Steps[i], func(id trace.PlanID) trace.PlanID {
			used[id] = true
			return id
		})
	}
	return used
}

func TestRecorderAddsGapsWithoutTouchingSnapshots(t *testing.T) {
	tr := tracetest.Run(1, 4, 1)
	r := trace.NewRecorder(tr, 0)
	tracetest.Record(t, r, tr, func() {})
	before := r.Snapshot()
	text := encoded(t, before)
	third := before.Plans[before.Steps[1].Dispatches[3].Plan].Dispatch
	for _, db := range []trace.Number{10, 20} { // the second replaces the first
		gap := trace.DispatchError{Dispatch: third, Gap: trace.NumericError{SNRdB: db}}
		gaps := trace.NumericErrors{Step: 1, Gaps: []trace.DispatchError{gap}}
		if err := r.Write(trace.Record{Gaps: &gaps}); err != nil {
			t.Fatal(err)
		}
	}
	after := r.Snapshot().Steps[1].Dispatches
	if after[3].Error == nil || after[3].Error.SNRdB != 20 || after[2].Error != nil {
		t.Errorf("errors %+v and %+v", after[3].Error, after[2].Error)
	}
	if !bytes.Equal(encoded(t, before), text) {
		t.Error("a snapshot changed")
	}
	none := trace.NumericErrors{Step: 1, Gaps: []trace.DispatchError{{Dispatch: 1 << 20}}}
	if err := r.Write(trace.Record{Gaps: &none}); err == nil {
		t.Error("accepted an error of a dispatch that did not run")
	}
}

func TestRecorderAddsSamplesWithoutTouchingSnapshots(t *testing.T) {
	tr := tracetest.Run(1, 4, 1)
	r := trace.NewRecorder(tr, 0)
	tracetest.Record(t, r, tr, func() {})
	before := r.Snapshot()
	text := encoded(t, before)
	samples := trace.Samples{Step: 1}
	for i := range before.Steps[1].Dispatches {
		samples.Samples = append(samples.Samples, []int64{int64(i), 7})
	}
	for range 2 {
		if err := r.Write(trace.Record{Samples: &samples}); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Snapshot().Steps[1].Dispatches[3].Samples; !cmp.Equal(got, []int64{3, 7, 3, 7}) {
		t.Errorf("samples %v, want 3 7 3 7", got)
	}
	if !bytes.Equal(encoded(t, before), text) {
		t.Error("a snapshot changed")
	}
	was := before.Steps[1].Canary
	if got := r.Snapshot().Steps[1].Canary; got != was {
		t.Errorf("after repeats without a canary it is %v, want %v", got, was)
	}
	samples.Canary = 0.5
	if err := r.Write(trace.Record{Samples: &samples}); err != nil || r.Snapshot().Steps[1].Canary != 0.5 {
		t.Errorf("after repeats at half the clock: canary %v, error %v", r.Snapshot().Steps[1].Canary, err)
	}
}

func TestRecorderAddsCostsWithoutTouchingSnapshots(t *testing.T) {
	tr := tracetest.Run(1, 4, 1)
	r := trace.NewRecorder(tr, 0)
	tracetest.Record(t, r, tr, func() {})
	before := r.Snapshot()
	text := encoded(t, before)
	cost := func(ns int64, of ...trace.DispatchID) trace.Cost {
		return trace.Cost{Name: fmt.Sprint(of), Dispatches: of, NS: ns, Q1NS: ns - 1, Q3NS: ns + 1, N: 3}
	}
	whole := func(ns int64) trace.Whole { return trace.Whole{NS: ns, Q1NS: ns, Q3NS: ns, N: 4} }
	for _, c := range []trace.Costs{
		{Whole: whole(90), Costs: []trace.Cost{cost(5, 0), cost(6, 1, 2)}},
		{Whole: whole(80), Costs: []trace.Cost{cost(-7, 1, 2), cost(8, 1)}},
	} {
		c.Step = 1
		if err := r.Write(trace.Record{Costs: &c}); err != nil {
			t.Fatal(err)
		}
	}
	got := r.Snapshot()
	if err := got.Check(); err != nil {
		t.Fatal(err)
	}
	want := []trace.Cost{cost(5, 0), cost(-7, 1, 2), cost(8, 1)}
	if d := cmp.Diff(want, got.Steps[1].Costs); d != "" || got.Steps[1].Whole.NS != 80 {
		t.Errorf("whole %d, costs (-want +got):\n%s", got.Steps[1].Whole.NS, d)
	}
	if !bytes.Equal(encoded(t, before), text) {
		t.Error("a snapshot changed")
	}
}

// Costs from a measurement that was stopped early do not replace costs from many more rounds. Other costs do.
func TestCostsOfFewRoundsDoNotReplaceMany(t *testing.T) {
	tr := tracetest.Run(1, 4, 1)
	r := trace.NewRecorder(tr, 0)
	tracetest.Record(t, r, tr, func() {})
	for _, c := range []struct{ rounds, stays int }{{15, 15}, {7, 15}, {14, 14}, {7, 7}, {30, 30}} {
		costs := trace.Costs{
			Step: 1, Whole: trace.Whole{NS: 90, Q1NS: 90, Q3NS: 90, N: 2*c.rounds + 1},
			Costs: []trace.Cost{{Name: "a", Dispatches: []trace.DispatchID{0}, N: c.rounds}},
		}
		if err := r.Write(trace.Record{Costs: &costs}); err != nil {
			t.Fatal(err)
		}
		s := &r.Snapshot().Steps[1]
		if s.Costs[0].N != c.stays || s.Whole.N != 2*c.stays+1 {
			t.Errorf("after %d rounds: costs of %d rounds and a whole step of %d runs, want %d rounds",
				c.rounds, s.Costs[0].N, s.Whole.N, c.stays)
		}
	}
}
