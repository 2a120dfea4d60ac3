package ops

import (
	"math"
	"testing"

	"gpuscope/ops/basic"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
)

func TestNothingIsNearAnInfinityButItself(t *testing.T) {
	near := reference.Tolerance{Rel: 1e-6, Row: 1e-6, Abs: 1e-6}
	for _, want := range []float64{math.Inf(1), math.Inf(-1)} {
		if most := near.At(want, 1); most != 0 {
			t.Errorf("%v has tolerance %v, want 0", want, most)
		}
	}
}

// Some devices multiply by the inverse to divide. For a divisor above 2^126 that inverse is 0.
func TestSiLUFarBelowZeroMayBeZero(t *testing.T) {
	const gate, up = -88, 3
	for _, r := range basic.Gates {
		c := gatedTrial(&r, 1, 4)
		c.fill = map[string]func(int) float64{
			"gate": func(int) float64 { return gate }, "up": func(int) float64 { return up },
		}
		g := finish(t, c)
		x := reference.NewInterpreter(g)
		if err := x.Step(c.input(t, g, step{"gate": {1, 4}, "up": {1, 4}}), nil); err != nil {
			t.Fatal(err)
		}
		want := r.F(gate, up)
		near := x.Tolerance(0, g.Outputs()[0])
		if most := near.At(want, want); most < math.Abs(want) {
			t.Errorf("%s of %d and %d is %v with tolerance %v, want at least its size",
				r.Kind, gate, up, want, most)
		}
	}
}

// An element that is not finite does not loosen the tolerance of rows and heads that it does not reach.
// Errors there must still show.
func TestTolerancesAreFiniteBesideWhatIsNot(t *testing.T) {
	heads := attention{qHeads: 2, kvHeads: 2, headDim: 8, tokens: 3, context: 9, live: [][2]int{{3, 2}}}
	for _, odd := range []float64{math.NaN(), math.Inf(1)} {
		fill := func(i int) float64 {
			if i == 0 {
				return odd
			}
			return noise("x", i)
		}
		for _, c := range []*trial{
			heads.trial(),
			{name: "linear", build: linearOf(32, 8, 2, weight.Q8_0), steps: []step{{"x": {2, 32}}}},
		} {
			c.fill = map[string]func(int) float64{"q": fill, "k": fill, "v": fill, "x": fill}
			g := finish(t, c)
			x := reference.NewInterpreter(g)
			if err := x.Step(c.input(t, g, c.steps[0]), nil); err != nil {
				t.Fatal(err)
			}
			near := x.Tolerance(0, g.Outputs()[0])
			if most := near.At(1, 1); !(most > 0 && most < 1e-2) {
				t.Errorf("%s next to %v: tolerance %v", c.name, odd, most)
			}
		}
	}
}
