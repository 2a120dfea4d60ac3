package trace_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// record plays a trace into a recorder, as a session does: plans when they come into force, then the step.
func record(t interface{ Fatal(...any) }, r *trace.Recorder, from *trace.Trace, each func()) {
	ids := map[trace.PlanID]trace.PlanID{}
	for _, s := range from.Steps {
		s.Dispatches = append([]trace.StepDispatch{}, s.Dispatches...)
		for i := range s.Dispatches {
			d := &s.Dispatches[i]
			id, _ := r.AddPlan(from.Plans[d.Plan])
			ids[d.Plan] = id
			d.Plan = id
		}
		s.Resize.Passes = nil // they name plans by id too; another test has them
		if err := r.AddStep(s); err != nil {
			t.Fatal(err)
		}
		each()
	}
}

func TestRecorderWithoutPressureKeepsTheTrace(t *testing.T) {
	want := tracetest.Llama(1, 5)
	r := trace.NewRecorder(want, 0)
	for _, p := range want.Plans {
		if id, added := r.AddPlan(p); id != p.ID || !added {
			t.Fatalf("plan %d got id %d, added %v", p.ID, id, added)
		}
	}
	if id, added := r.AddPlan(want.Plans[3]); id != 3 || added {
		t.Errorf("a plan that is known got id %d, added %v", id, added)
	}
	for _, s := range want.Steps {
		if err := r.AddStep(s); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, r.Snapshot()); d != "" {
		t.Error(d)
	}
}

func TestRecorderRefusesAStepOfNoPlan(t *testing.T) {
	tr := tracetest.Llama(1, 2)
	if err := trace.NewRecorder(tr, 0).AddStep(tr.Steps[0]); err == nil {
		t.Error("a step whose plans were never added was taken")
	}
}

func TestRecorderDropsTheOldestStepsAndTheTraceStaysRight(t *testing.T) {
	chunks := []int{40}
	for i := range 60 {
		chunks = append(chunks, 1+i%7*(i%2)) // decodes and prefills in turn: dims and routes change to and fro
	}
	whole := tracetest.Run(1, chunks...)
	all := trace.NewIndex(whole)
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(30_000, 400_000).Draw(t, "budget")
		r := trace.NewRecorder(whole, budget)
		var snapshots []*trace.Trace
		var texts [][]byte
		record(t, r, whole, func() {
			s := r.Snapshot()
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			if s.DroppedSteps+len(s.Steps) != s.Steps[len(s.Steps)-1].Index+1 {
				t.Fatalf("%d dropped and %d kept, after step %d", s.DroppedSteps, len(s.Steps), s.Steps[len(s.Steps)-1].Index)
			}
			if len(snapshots) < 3 || len(s.Steps)%16 == 0 {
				snapshots, texts = append(snapshots, s), append(texts, encoded(t, s))
			}
		})
		last := r.Snapshot()
		if last.DroppedSteps == 0 {
			t.Fatal("nothing was dropped: the budget is no test")
		}
		x := trace.NewIndex(last)
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
			if a, b := x.Dispatches(i, trace.DispatchOptions{}), all.Dispatches(at, trace.DispatchOptions{}); a.Launches[5].Level != b.Launches[5].Level {
				t.Fatalf("step %d: level %d, want %d", at, a.Launches[5].Level, b.Launches[5].Level)
			}
		}
		for i, s := range snapshots {
			if !bytes.Equal(encoded(t, s), texts[i]) {
				t.Fatalf("snapshot %d changed after it was taken", i)
			}
		}
	})
}

func encoded(t interface{ Fatal(...any) }, tr *trace.Trace) []byte {
	var b bytes.Buffer
	if err := trace.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRecorderRenumbersThePlansOfHooks(t *testing.T) {
	whole := tracetest.Run(1, append([]int{40}, repeated(1, 60)...)...)
	r := trace.NewRecorder(whole, 60_000)
	next := 0
	for _, s := range whole.Steps {
		for ; next < len(whole.Plans) && planNeeded(&s, trace.PlanID(next)); next++ {
			if id, _ := r.AddPlan(whole.Plans[next]); int(id) != next {
				t.Fatalf("plan %d got id %d", next, id)
			}
		}
		// The fixture names plans by their first id; a plan that came back after it was dropped would have another one. Decode steps
		// have none that comes back.
		if err := r.AddStep(s); err != nil {
			t.Fatal(err)
		}
	}
	got := r.Snapshot()
	if err := got.Check(); err != nil {
		t.Fatal(err)
	}
	if got.DroppedSteps == 0 {
		t.Fatal("nothing was dropped")
	}
	for i, s := range got.Steps {
		want := whole.Steps[got.DroppedSteps+i]
		for p, pass := range s.Resize.Passes {
			for h, hook := range pass.Hooks {
				for k, c := range hook.Plans {
					w := want.Resize.Passes[p].Hooks[h].Plans[k]
					if got.Plans[*c.To].Params != whole.Plans[*w.To].Params || got.Plans[*c.From].Params != whole.Plans[*w.From].Params {
						t.Fatalf("step %d, op %d: the change names other plans than before", s.Index, hook.Op)
					}
				}
			}
		}
	}
}

// planNeeded says that a step is the first to need plans up to id.
func planNeeded(s *trace.Step, id trace.PlanID) bool {
	for _, d := range s.Dispatches {
		if d.Plan >= id {
			return true
		}
	}
	return false
}

func repeated(n, times int) []int {
	list := make([]int, times)
	for i := range list {
		list[i] = n
	}
	return list
}

func TestRecorderAddsSamplesWithoutTouchingSnapshots(t *testing.T) {
	tr := tracetest.Run(1, 4, 1)
	r := trace.NewRecorder(tr, 0)
	record(t, r, tr, func() {})
	before := r.Snapshot()
	text := encoded(t, before)
	samples := trace.Samples{Step: 1}
	for i := range before.Steps[1].Dispatches {
		samples.Samples = append(samples.Samples, []int64{int64(i), 7})
	}
	for range 2 {
		if err := r.AddSamples(samples); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Snapshot().Steps[1].Dispatches[3].Samples; !cmp.Equal(got, []int64{3, 7, 3, 7}) {
		t.Errorf("samples %v, want 3 7 3 7", got)
	}
	if !bytes.Equal(encoded(t, before), text) {
		t.Error("a snapshot changed")
	}
	if err := r.AddSamples(trace.Samples{Step: 9}); err == nil {
		t.Error("samples for a step that is not there were taken")
	}
}
