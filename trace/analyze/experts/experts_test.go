package experts

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gpuscope/trace/analyze"
	"gpuscope/trace/tracetest"
)

func mixture(tokens int, choices ...[][2]int) *analyze.Index {
	return analyze.NewIndex(tracetest.Mixture(tokens, choices...))
}

func only(t *testing.T, x *analyze.Index) *Router {
	t.Helper()
	list, err := Of(context.Background(), x, x.All())
	if err != nil || len(list) != 1 {
		t.Fatalf("%d routers, error %v", len(list), err)
	}
	return list[0]
}

func TestTilesFollowTheTokensOfEachExpert(t *testing.T) {
	// Expert 0 needs 1 tile of 4 rows, expert 2 needs 2 (5 tokens), and expert 3 needs 1 (2 tokens).
	r := only(t, mixture(5, [][2]int{{0, 3}, {2, 5}, {3, 2}}))
	d := r.Total()
	if e, n := r.Busiest(); e != 2 || n != 5 || r.Active != 3 || r.Largest != 2 || r.Modelled {
		t.Errorf("busiest %d with %v tokens, %v active, %v times the mean, modelled %v", e, n, r.Active,
			r.Largest, r.Modelled)
	}
	if d.Filled != 10 || d.Padded != 6 || d.Launched != 27 || d.Idle != 27-4*3 {
		t.Errorf("got %+v", d)
	}
	if math.Abs(d.PaddedNS-1000*6.0/16) > 1e-9 || d.NS != 1000 || d.Timed != 1 {
		t.Errorf("got %+v", d)
	}
	if !slices.Equal(r.Padded, []float64{1, 0, 3, 2}) {
		t.Errorf("padding by expert %v", r.Padded)
	}
}

func TestSeveralStepsAreAddedUp(t *testing.T) {
	r := only(t, mixture(2, [][2]int{{0, 2}, {1, 2}}, [][2]int{{0, 2}, {3, 2}}))
	if !slices.Equal(r.Tokens, []float64{4, 2, 0, 2}) || r.Steps != 2 || r.Active != 2 || r.Largest != 2 {
		t.Errorf("got %+v", r)
	}
	if d := r.Total(); d.Padded != 8 || d.Filled != 8 || d.Timed != 2 {
		t.Errorf("got %+v", d)
	}
}

// Without recorded choices the numbers are the means over uniform choices. A simulation gives the same.
func TestUnrecordedChoicesAreUniform(t *testing.T) {
	const tokens, rounds = 7, 20000
	got := only(t, mixture(tokens, nil))
	random := rand.New(rand.NewPCG(1, 2))
	var active, padded float64
	for range rounds {
		counts := make([]int, 4)
		for range tokens {
			for _, e := range random.Perm(4)[:2] {
				counts[e]++
			}
		}
		for _, n := range counts {
			if n > 0 {
				active++
			}
			padded += float64((n+3)/4*4 - n)
		}
	}
	if !got.Modelled || math.Abs(got.Active-active/rounds) > 0.02 ||
		math.Abs(got.Total().Padded-padded/rounds) > 0.1 {
		t.Errorf("%v active and %v padded rows, want about %v and %v", got.Active, got.Total().Padded,
			active/rounds, padded/rounds)
	}
	if e, _ := got.Busiest(); e >= 0 {
		t.Errorf("expert %d is the busiest of equal experts", e)
	}
}
