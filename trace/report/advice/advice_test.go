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
