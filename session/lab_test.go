package session

import "testing"

func TestGainsNeedTheirQuartilesAndEnoughRuns(t *testing.T) {
	for _, c := range []struct {
		q1, q3 int64
		n      int
		told   bool
	}{
		{5, 9, FewestTurns, true},
		{-9, -5, 30, true},
		{-1, 9, 30, false},
		{0, 0, 30, false},
		{5, 9, FewestTurns - 1, false},
	} {
		turns := InTurns{Gain: Spread{NS: 1, Q1NS: c.q1, Q3NS: c.q3}, N: c.n}
		if turns.Told() != c.told {
			t.Errorf("quartiles %d and %d of %d runs: told %v", c.q1, c.q3, c.n, turns.Told())
		}
	}
}
