package session

import (
	"testing"

	"gpuscope/trace"
)

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

// The error of a gain agrees with its significance: a significant gain is larger than its error, and any
// other gain and both of its quartiles are within the error.
func TestErrorOfAGainAgreesWithItsSignificance(t *testing.T) {
	for q1 := int64(-20); q1 <= 20; q1++ {
		for q3 := q1; q3 <= 20; q3++ {
			for gain := q1; gain <= q3; gain++ {
				turns := InTurns{Gain: Spread{NS: gain, Q1NS: q1, Q3NS: q3}, N: FewestTurns}
				within := turns.Within()
				if turns.Told() != (max(gain, -gain) > within) {
					t.Errorf("%+v: told %v, error %d", turns.Gain, turns.Told(), within)
				}
				if !turns.Told() && (q3 > within || q1 < -within) {
					t.Errorf("%+v: a quartile is outside ± %d", turns.Gain, within)
				}
			}
		}
	}
}

func TestVerdictOfAnEditedKernel(t *testing.T) {
	turns := func(gain, q1, q3 int64, n int) *InTurns {
		return &InTurns{Own: Spread{NS: 1000}, Gain: Spread{NS: gain, Q1NS: q1, Q3NS: q3}, N: n}
	}
	id := trace.DispatchID(1)
	for _, c := range []struct {
		tried Tried
		want  Verdict
	}{
		{Tried{Dispatch: &id, Whole: turns(100, 90, 110, 30)}, VerdictFaster},
		{Tried{Dispatch: &id, Whole: turns(-100, -110, -90, 30)}, VerdictSlower},
		{Tried{Dispatch: &id, Whole: turns(5, -1, 9, 30)}, VerdictEqual},
		{Tried{Dispatch: &id, Whole: turns(100, 90, 110, FewestTurns-1)}, VerdictEqual},
		{Tried{Dispatch: &id, Whole: turns(100, 90, 110, 30), Stray: true}, VerdictWrong},
		{
			Tried{Dispatch: &id, Whole: turns(9, 8, 10, 30), Gap: &trace.NumericError{Share: 2}},
			VerdictWrong,
		},
		{
			Tried{Dispatch: &id, Whole: turns(9, 8, 10, 30), Outputs: []Rewritten{{Unwritten: 1}}},
			VerdictWrong,
		},
		{Tried{Dispatch: &id, Alone: turns(100, 90, 110, 30)}, VerdictUntimed},
		{Tried{}, VerdictUntimed},
	} {
		if got := c.tried.Verdict(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.tried, got, c.want)
		}
	}
}
