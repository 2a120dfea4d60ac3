package advice_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/report/advice"
	"gpuscope/trace/tracetest"
)

func TestGainNamesBothRates(t *testing.T) {
	t.Parallel()
	h := &headline.Headline{
		Basis: headline.Costs, Rate: 46.2, CostStep: 9, Rounds: 30,
		Pace: headline.Pace{Tokens: 1, Untimed: analyze.Untimed{N: 20}},
		First: &headline.Row{
			Name: "mlp.gate+up", NS: 5.6e6, ErrorNS: 1e5, Share: 0.26, Twice: 53.1, SaveKnown: true,
			SaveNS: 1e6, AtLimit: 46.2,
		},
	}
	a := advice.Of(h)
	if want := "Fix first: mlp.gate+up, 26 % of the GPU time of a step."; a.First != want {
		t.Errorf("first: %q, want %q", a.First, want)
	}
	if want := "Twice as fast there: 46.2 to ~53.1 tokens/s."; a.Gain != want {
		t.Errorf("gain: %q, want %q", a.Gain, want)
	}
	h.Idle = &headline.Idle{NS: 9e6, ErrorNS: 2e5, Rate: 60}
	a = advice.Of(h)
	if !strings.Contains(a.Gain, "~60.0 tokens/s") || !strings.Contains(a.First, "mlp.gate+up") {
		t.Errorf("with idle time: %+v", a)
	}
}

// Where there is room for one speed only, it is not one that the device cannot reach.
func TestShortLinesStateAReachableSpeed(t *testing.T) {
	t.Parallel()
	row := headline.Row{Name: "mlp.gate+up", NS: 5.6e6, Share: 0.26, Twice: 53.1}
	for limit, want := range map[float64]string{0: "~53.1", 50: "~50.0", 60: "~53.1"} {
		row.AtLimit = limit
		h := &headline.Headline{
			Basis: headline.Costs, Rate: 46.2, First: &row, Pace: headline.Pace{Tokens: 1},
		}
		lines := advice.Lines(h)
		for _, line := range lines[1 : len(lines)-1] {
			if !strings.Contains(line, want) || strings.Count(line, "~") != 1 {
				t.Errorf("ceilings at %g: %q, want %s alone", limit, line, want)
			}
		}
	}
}

func TestUnknownCostsSayHowToMeasureThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		x := analyze.NewIndex(tracetest.Random(r))
		steps := headline.Steps(x)
		if len(steps.Steps) == 0 {
			return
		}
		h, err := headline.Of(context.Background(), x, steps)
		if err != nil {
			r.Fatal(err)
		}
		a := advice.Of(h)
		if a.First == "" || slices.Contains(a.Basis, advice.Measure) != (h.Why != headline.NoReason) {
			r.Fatalf("reason %d: %+v", h.Why, a)
		}
	})
}
