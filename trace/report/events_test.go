package report_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
)

// events returns the steps and the texts of the events of a kind.
func events(t *testing.T, tr *trace.Trace, kind string) (steps []int, texts []string) {
	t.Helper()
	list, err := report.Events(ctx, analyze.NewIndex(tr))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range list {
		if i > 0 && e.Step < list[i-1].Step {
			t.Errorf("event %d belongs to step %d but comes after one of step %d", i, e.Step, list[i-1].Step)
		}
		if e.Kind == kind {
			steps, texts = append(steps, e.Step), append(texts, e.Text)
		}
	}
	return steps, texts
}

// run returns a run without recorded events in which all steps take the same time.
func run(chunks ...int) *trace.Trace {
	tr := tracetest.Run(2, chunks...)
	for i := range tr.Steps {
		tr.Steps[i].Cold, tr.Steps[i].CPU.TotalNS = false, trace.Measured(1e6)
	}
	return tr
}

func TestAGridThatChangesUnaskedIsAnEvent(t *testing.T) {
	tr := run(60, 1, 1, 1, 1, 1, 1)
	steps, texts := events(t, tr, analyze.GridEvent)
	x := analyze.NewIndex(tr)
	for i := 2; i < len(tr.Steps); i++ { // a change in the number of tokens is expected to change grids
		changed := false
		for d := range tr.Graph.Dispatches {
			before, now := x.PlanOf(i-1, trace.DispatchID(d)), x.PlanOf(i, trace.DispatchID(d))
			changed = changed || before != nil && now != nil && before.Workgroups != now.Workgroups
		}
		if changed != slices.Contains(steps, i) {
			t.Errorf("step %d: a grid changed %v, events are at %v", i, changed, steps)
		}
	}
	if len(steps) == 0 || steps[0] < 2 || !strings.Contains(texts[0], " → ") {
		t.Errorf("events at %v: %q", steps, texts)
	}
}

func TestAStepOfAnotherShapeIsAnEvent(t *testing.T) {
	tr := run(60, 60, 7, 1, 1)
	steps, texts := events(t, tr, analyze.ShapeEvent)
	if !slices.Equal(steps, []int{2, 3}) {
		t.Fatalf("events at %v, want one at the shorter prompt chunk and one at the first token", steps)
	}
	for i, want := range []string{
		"prefill of 7 tokens, after prefill of 60 tokens: ", "decode of 1 token, after prefill of 7 tokens: ",
	} {
		if !strings.HasPrefix(texts[i], want) || strings.Contains(texts[i], ": 0 grids") {
			t.Errorf("%q, want %q and the grids that changed", texts[i], want)
		}
	}
}

// If a grid changes by itself, the event says how the step's time changed, or that the change is within
// noise.
func TestGridEventHasTheTimeOfTheStep(t *testing.T) {
	tr := run(append([]int{60}, slices.Repeat([]int{1}, 24)...)...)
	steps, _ := events(t, tr, analyze.GridEvent)
	if len(steps) == 0 || steps[0] < 5 || steps[0] > 20 {
		t.Fatalf("grids change at %v, want steps on both sides", steps)
	}
	for want, now := range map[string]int64{
		", step time +5.0 %": 1_050_000, ", step time unchanged within": 1_000_400,
	} {
		for i := range tr.Steps {
			ns := int64(1_000_000)
			if i >= steps[0] {
				ns = now
			}
			tr.Steps[i].CPU.TotalNS, tr.Steps[i].GPU = trace.Measured(ns+int64(i%3)*500), nil
		}
		if _, texts := events(t, tr, analyze.GridEvent); !strings.Contains(texts[0], want) {
			t.Errorf("%q, want %q", texts[0], want)
		}
	}
}

func TestEventComparesOnlyStepsOfTheSameRoutesAndText(t *testing.T) {
	chunks := append([]int{60}, slices.Repeat([]int{1}, 24)...)
	for name, change := range map[string]func(tr *trace.Trace, at int){
		"unchanged": nil,
		"set back at the change": func(tr *trace.Trace, at int) {
			for i := range tr.Steps[:at] {
				tr.Steps[i].Position += 1000
			}
		},
		"set back two steps before": func(tr *trace.Trace, at int) {
			for i := range tr.Steps[:at-2] {
				tr.Steps[i].Position += 1000
			}
		},
		"other routes before": func(tr *trace.Trace, at int) {
			p := tr.Plans[tr.Steps[at-1].Dispatches[0].Plan]
			p.ID, p.Route = trace.PlanID(len(tr.Plans)), "other"
			tr.Plans = append(tr.Plans, p)
			for i := range tr.Steps[:at-2] {
				tr.Steps[i].Dispatches[0].Plan = p.ID
			}
		},
	} {
		tr := run(chunks...)
		for i := range tr.Steps {
			tr.Steps[i].GPU = nil
		}
		steps, _ := events(t, tr, analyze.GridEvent)
		if change != nil {
			change(tr, steps[0])
		}
		_, texts := events(t, tr, analyze.GridEvent)
		if compared := strings.Contains(texts[0], "step time"); compared != (change == nil) {
			t.Errorf("%s: %q", name, texts[0])
		}
	}
}

func TestSlowStepIsAnOutlierEvent(t *testing.T) {
	tr := run(7, 1, 1, 1, 1, 1, 1)
	tr.Steps[4].CPU.TotalNS = trace.Measured(3e6)
	if steps, texts := events(t, tr, analyze.OutlierEvent); !slices.Equal(steps, []int{4}) ||
		texts[0] != "took 3.0 times the median of similar steps: 3.00 ms instead of 1.00 ms" {
		t.Errorf("%v %q", steps, texts)
	}
	tr.Steps[4].Cold = true // being cold explains it
	if steps, _ := events(t, tr, analyze.OutlierEvent); steps != nil {
		t.Errorf("a cold step is an outlier at %v", steps)
	}
	if steps, _ := events(t, tr, analyze.ColdEvent); !slices.Equal(steps, []int{4}) {
		t.Errorf("cold steps are at %v", steps)
	}
	tr.Steps[5].Cold, tr.Steps[4].Canary = true, 0.41
	if steps, texts := events(t, tr, analyze.ColdEvent); !slices.Equal(steps, []int{4}) ||
		!strings.Contains(texts[0], " 0.41 ") {
		t.Errorf("consecutive cold steps: events at %v: %q", steps, texts)
	}
	for i := range tr.Steps { // all times differ, so there is no usual time
		tr.Steps[i].CPU.TotalNS = trace.Measured(int64(1+i) * 1e6)
	}
	if steps, _ := events(t, tr, analyze.OutlierEvent); steps != nil {
		t.Errorf("all times differ, but %v are outliers", steps)
	}
}

func TestWhatWasRecordedIsAmongTheEvents(t *testing.T) {
	tr := run(7, 1, 1)
	id := trace.DispatchID(1)
	tr.Events = []trace.Event{
		{Step: 2, Dispatch: &id, Kind: "breakpoint", Text: "grid changed"},
		{Step: 1, Kind: "log", Text: "talk"},
		{Step: 99, Kind: "breakpoint", Text: "of a step that was dropped"},
	}
	list, err := report.Events(ctx, analyze.NewIndex(tr))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(e analyze.Event) bool { return e.Kind == "breakpoint" })
	if i < 0 || list[i].Step != 2 || *list[i].Dispatch != 1 || list[i].Text != "grid changed" {
		t.Errorf("%v", list)
	}
	if slices.ContainsFunc(list, func(e analyze.Event) bool { return e.Kind == "log" }) {
		t.Error("a log message is an event")
	}
}

func TestEventsAreCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := report.Events(ctx, analyze.NewIndex(run(1, 1))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
