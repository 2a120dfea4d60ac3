package slopes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/tracetest"
)

// The changes of a dispatch are the positions where its plan differs from the previous one.
func TestChangesAreWherePlansDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := tracetest.Random(t)
		if tr.Forecast == nil {
			t.Skip("no forecast")
		}
		for i := range tr.Forecast.Lines {
			l := &tr.Forecast.Lines[i]
			for id := range l.Dispatches {
				var want, got []int
				for at := l.From + 1; at <= l.To; at++ {
					id := trace.DispatchID(id)
					if trace.LaunchesOtherwise(curves.PlanOn(l, id, at-1), curves.PlanOn(l, id, at)) {
						want = append(want, at)
					}
				}
				for _, c := range curves.ChangesOn(l, trace.DispatchID(id)) {
					for at := c.At; at <= c.Until; at++ {
						got = append(got, at)
					}
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("dispatch %d (-plans +changes):\n%s", id, d)
				}
			}
		}
	})
}

// splitsForecast is the forecast of a dispatch that decodes with a workgroup for every 64 positions. It does
// not run in prompts of more than one token.
func splitsForecast() *trace.Trace {
	one := trace.Rule{1}
	grid := func(x int64) [3]trace.Rule { return [3]trace.Rule{{x}, one, one} }
	var decode []trace.Stretch
	for i := range 4 {
		decode = append(decode, trace.Stretch{
			From: 64 * i, Kernel: "split", Route: "flash", Workgroups: grid(int64(i + 1)),
			NeededGroups: trace.Rule{int64(i + 1)}, Bytes: trace.Rule{4096 * int64(i), 64},
		})
	}
	token := func(i, position, tokens int) trace.Step {
		return trace.Step{
			Index: i, Phase: trace.Decode, Timing: trace.TimingOff, Position: position, Tokens: make([]int,
				tokens),
			Dispatches: []trace.StepDispatch{{Plan: 0}},
		}
	}
	return &trace.Trace{
		Schema: trace.Schema,
		Graph: trace.Graph{
			Ops:        []trace.Op{{Name: "sdpa", Kind: "sdpa"}},
			Dispatches: []trace.Dispatch{{Label: "split", MaxWorkgroups: [3]int{4, 1, 1}}},
		},
		Plans: []trace.Plan{{Kernel: "split", Workgroups: [3]int{1, 1, 1}, NeededGrid: [3]int{1, 1, 1}}},
		Steps: []trace.Step{
			token(0, 10, 1), token(1, 64, 1), token(2, 130, 1), token(3, 200, 1), token(4, 0, 7),
		},
		Forecast: &trace.Forecast{Lines: []trace.Line{
			{
				Along: trace.AlongPosition, At: 1, To: 255, Courses: []trace.Course{{Stretches: decode}},
				Dispatches: []int{0},
			},
			{
				Along: trace.AlongTokens, From: 1, To: 32, Dispatches: []int{0},
				Courses: []trace.Course{{Stretches: []trace.Stretch{
					{From: 1, Kernel: "split", Route: "flash", Workgroups: grid(1)}, {From: 2},
				}}},
			},
		}},
	}
}

func TestChangesAroundAStep(t *testing.T) {
	tr := splitsForecast()
	if err := tr.Check(); err != nil {
		t.Fatal(err)
	}
	x := analyze.NewIndex(tr)
	type around struct{ Previous, Next int } // 0 for none
	of := func(c curves.Changes) (a around) {
		if c.Previous != nil {
			a.Previous = c.Previous.At
		}
		if c.Next != nil {
			a.Next = c.Next.At
		}
		return a
	}
	for step, want := range []around{{0, 64}, {64, 128}, {128, 192}, {192, 0}} {
		c, ok := curves.Around(x, step, 0, trace.AlongPosition)
		if got := of(c); !ok || got != want {
			t.Errorf("s%d: changes %+v %v, want %+v", step, got, ok, want)
		}
		c, ok = curves.Around(x, step, 0, trace.AlongTokens)
		if !ok || of(c) != (around{0, 2}) || c.Next.To != nil || c.Next.From.Route != "flash" {
			t.Errorf("s%d along the tokens: %+v %v", step, c, ok)
		}
	}
	if c, ok := curves.Around(x, 2, 0, trace.AlongPosition); !ok || c.Next.From.Workgroups[0] != 3 ||
		c.Next.To.Workgroups[0] != 4 {
		t.Errorf("the next change of s2 is %+v, want 3 to 4", c.Next)
	}
	if _, ok := curves.Around(x, 4, 0, trace.AlongPosition); ok {
		t.Error("a step of 7 tokens has changes along the position, where it has no line")
	}
	if c, ok := curves.Around(x, 4, 0, trace.AlongTokens); !ok || of(c) != (around{2, 0}) {
		t.Errorf("a step of 7 tokens: %+v %v", c, ok)
	}
	tr.Forecast = nil
	if _, ok := curves.Around(analyze.NewIndex(tr), 0, 0, trace.AlongPosition); ok {
		t.Error("a trace without a forecast has changes")
	}
}
