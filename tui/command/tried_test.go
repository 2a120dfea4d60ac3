package command_test

import (
	"math"
	"strings"
	"testing"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// The verdict is one line that has the numbers, a sign and a word. Its paint says the same.
func TestVerdictHasNumbersSignAndWord(t *testing.T) {
	t.Parallel()
	x := analyze.NewIndex(tracetest.Tiny())
	id, value := trace.DispatchID(1), trace.ValueID(0)
	name := x.Trace.Graph.Values[value].Name
	step := func(own, gain, q1, q3 int64, n int) session.Tried {
		return session.Tried{Dispatch: &id, Whole: &session.InTurns{
			Own: session.Spread{NS: own}, Gain: session.Spread{NS: gain, Q1NS: q1, Q3NS: q3}, N: n,
		}}
	}
	wrong := func(g trace.NumericError) session.Tried {
		out := step(100_000, 5000, 4000, 6000, 30)
		out.Gap = &g
		return out
	}
	for _, c := range []struct {
		tried session.Tried
		want  string
		paint widget.Paint
	}{
		{
			step(153_000, 12_300, 11_200, 13_000, 30),
			"✓ faster by 12.3 µs ± 1.1 per step (-8.0 %)", widget.Good,
		},
		{
			step(100_000, -20_000, -21_000, -19_500, 30),
			"! slower by 20.0 µs ± 0.5 per step (+20 %)", widget.Warn,
		},
		{step(90_000, 100, -900, 800, 30), "= equal within ± 0.90 µs per step (1.0 %)", widget.Strong},
		{
			step(90_000, 5000, 4000, 6000, 5),
			"= no difference is significant after 5 rounds; a verdict needs 12", widget.Strong,
		},
		{
			wrong(trace.NumericError{Share: 2.5, Got: 1.5, Want: 1, Element: 4096, Value: &value}),
			"✗ wrong: largest error 0.5 at element 4,096 of " + name + ", 2.5 times its tolerance",
			widget.Bad,
		},
		{
			wrong(trace.NumericError{Share: 2, Got: trace.Number(math.NaN()), Want: 1}),
			"✗ wrong: NaN at element 0, reference 1", widget.Bad,
		},
		{session.Tried{Dispatch: &id}, "! not measured: this device has no timestamps", widget.Warn},
		{session.Tried{Kernel: "add", Step: 3}, "! not measured: step 3 does not run add", widget.Warn},
	} {
		got, paint := command.TriedVerdict(x, &c.tried)
		if got != c.want || paint != c.paint {
			t.Errorf("%q in paint %d, want %q in %d", got, paint, c.want, c.paint)
		}
	}
	stray := step(100_000, 5000, 4000, 6000, 30)
	stray.Stray = true
	got, paint := command.TriedVerdict(x, &stray)
	if !strings.HasSuffix(got, stray.Wrong()) || paint != widget.Bad {
		t.Errorf("%q in paint %d", got, paint)
	}
}
