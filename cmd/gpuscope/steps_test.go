package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/engine"
	"gpuscope/model"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/tui"
)

// A recorded step lists its changes since the previous recorded step, even if unrecorded steps ran in
// between. The test runs two steps, undoes both, repeats the prompt's step, and runs a prompt of the same
// length. The plans of that last step are those of the repeat, and differ from those of the previous recorded
// step.
func TestStepAfterARepeatReportsItsChanges(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	path := filepath.Join(t.TempDir(), "run.json")
	typed := "s\ns\nS\nS\nR\np Once upon a time\nx " + path + "\nq\n"
	open := func(ctx context.Context) (session.Session, error) {
		o := model.Options{
			Driver: testProgram(nil, nil).driver, Timing: engine.TimingDispatch, IgnoreEOS: true,
		}
		return model.Open(ctx, o, nil)
	}
	if err := tui.Run(t.Context(), open, tui.Options{
		Plain: true, Prompt: "Once upon a time", Input: strings.NewReader(typed), Output: &stdout,
	}); err != nil {
		t.Fatalf("%v\n%s", err, &stdout)
	}
	rec, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Steps) != 4 || len(rec.Steps[0].Dispatches[0].Samples) == 0 {
		t.Fatalf("%d steps, want 4 with the first repeated:\n%s", len(rec.Steps), &stdout)
	}
	inForce := func(s *trace.Step) map[trace.DispatchID]trace.PlanID {
		plans := map[trace.DispatchID]trace.PlanID{}
		for _, d := range s.Dispatches {
			plans[rec.Plans[d.Plan].Dispatch] = d.Plan
		}
		return plans
	}
	before, after := inForce(&rec.Steps[2]), inForce(&rec.Steps[3])
	want := map[trace.DispatchID]bool{}
	for d, plan := range after {
		if old, ok := before[d]; !ok || old != plan {
			want[d] = true
		}
	}
	for d := range before {
		if _, ok := after[d]; !ok {
			want[d] = true
		}
	}
	if len(want) < 50 {
		t.Fatalf("only %d dispatches have different plans in prefill and decode", len(want))
	}
	for _, pass := range rec.Steps[3].Resize.Passes {
		for _, h := range pass.Hooks {
			for _, c := range h.Plans {
				if c.To != nil {
					delete(want, rec.Plans[*c.To].Dispatch)
				} else {
					delete(want, rec.Plans[*c.From].Dispatch)
				}
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("%d dispatches changed their plan, but the record does not list them", len(want))
	}
	if len(rec.Steps[3].Dims) == 0 {
		t.Error("the record says that no dims changed from one token to a prompt")
	}
	if line := report.ResizeLine(analyze.NewIndex(rec).Resize(3)); strings.HasPrefix(line,
		"nothing changed") {
		t.Errorf("the screen shows %q", line)
	}
}
