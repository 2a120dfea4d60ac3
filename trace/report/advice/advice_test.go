package advice_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/costs"
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
			SaveNS: 1e6, AtLimit: 60,
		},
	}
	a := advice.Of(h)
	if want := "Fix first: mlp.gate+up, 26 % of the GPU time of a step."; a.First != want {
		t.Errorf("first: %q, want %q", a.First, want)
	}
	for limit, want := range map[float64]string{
		0:     "Twice as fast there: 46.2 to ~53.1 tokens/s.",
		60:    "Twice as fast there: 46.2 to ~53.1 tokens/s. At the device's ceilings there: 46.2 to ~60.0 tokens/s.",
		50:    "The device's ceilings allow 46.2 to ~50.0 tokens/s; twice as fast there (~53.1) is beyond them.",
		53.09: "At the device's ceilings there: 46.2 to ~53.1 tokens/s.",
		46.2:  "The device's ceilings allow no more than 46.2 tokens/s; twice as fast there (~53.1) is beyond them.",
	} {
		h.First.AtLimit = limit
		if got := advice.Of(h).Gain; got != want {
			t.Errorf("ceilings at %g: gain %q, want %q", limit, got, want)
		}
	}
	h.Idle = &headline.Idle{NS: 9e6, ErrorNS: 2e5, Rate: 61}
	a = advice.Of(h)
	if !strings.Contains(a.Gain, "~61.0 tokens/s") || !strings.Contains(a.First, "mlp.gate+up") {
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

// A screen of 80 columns has room for the whole name and both speeds, even for a long name.
func TestLineOf78CellsHasNameAndSpeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		atLimit float64
		want    []string
	}{
		{"mlp.gate+up+silu_mul.product", 787, []string{" 731 ", "~787 ", "ceilings"}},
		{"layers 1–2 attn.rope+sdpa.decode", 0, []string{" 731 ", "~820 ", "2×"}},
		{"layers 1–2 attn.rope+sdpa.decode+spread_sum.product", 787, []string{", 38 %"}},
	} {
		h := &headline.Headline{
			Basis: headline.Costs, Rate: 731, Pace: headline.Pace{Tokens: 1},
			First: &headline.Row{Name: c.name, NS: 5e6, Share: 0.38, Twice: 820, AtLimit: c.atLimit},
		}
		lines := advice.Lines(h)
		line := lines[slices.IndexFunc(lines, func(l string) bool {
			return utf8.RuneCountInString(l) <= 78 || l == lines[len(lines)-1]
		})]
		for _, want := range append(c.want, c.name) {
			if !strings.Contains(line, want) {
				t.Errorf("%q of %q has no %q", line, lines, want)
			}
		}
	}
}

// If only groups have significant costs, the largest is named with its cost, wherever no row is named.
func TestLargestGroupIsNamedInsteadOfARow(t *testing.T) {
	t.Parallel()
	h := &headline.Headline{Why: headline.NotSignificant, Rounds: 6, Group: &costs.Row{
		Kind: costs.Layers, Name: "layers 0–2",
		Cost: &analyze.RowCost{
			Cost: &trace.Cost{NS: 1_232_000, N: 6}, ErrorNS: 1_049_000, ErrorKnown: true, Share: 0.673,
		},
	}}
	said := func() string { a := advice.Of(h); return a.First + " " + a.Paragraph() }
	if got := said(); !strings.Contains(got, "layers 0–2: 1232 ± 1049 µs, 67 %") ||
		strings.Contains(got, "no cost exceeds") {
		t.Errorf("a group exceeds the noise: %s", got)
	}
	h.Group.Kind, h.Group.Name = costs.Kernel, "add"
	if got := said(); !strings.Contains(got, "kernel add: 1232") {
		t.Errorf("a kernel exceeds the noise: %s", got)
	}
	h.Group = nil
	if got := said(); !strings.Contains(got, "no cost exceeds the noise") || strings.Contains(got, "group") {
		t.Errorf("nothing exceeds the noise: %s", got)
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
		first, more := slices.Contains(a.Basis, advice.Measure), slices.Contains(a.Basis, advice.MeasureMore)
		if a.First == "" || first && more || (first || more) != (h.Why != headline.NoReason) {
			r.Fatalf("reason %d: %+v", h.Why, a)
		}
	})
}
