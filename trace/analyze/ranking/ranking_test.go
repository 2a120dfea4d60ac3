package ranking_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze/ranking"
)

// whole is a step of 1 ms, in which a difference of up to 10 µs is not interesting.
var whole = trace.Whole{NS: 1e6, N: 100}

// measure returns the costs of rows after a number of rounds. The rounds of a row vary around its true cost
// with a standard deviation of `noise` ns.
func measure(random *rand.Rand, costs []int64, noise float64, rounds int) (list []trace.Cost) {
	for _, ns := range costs {
		gains := make([]int64, rounds)
		for i := range gains {
			gains[i] = ns + int64(noise*random.NormFloat64())
		}
		c := trace.Cost{N: rounds}
		c.Q1NS, _, c.Q3NS = trace.Quartiles(gains)
		c.NS = trace.TrimmedMean(gains)
		c.OffNS = trace.OffBy(gains, c.NS)
		list = append(list, c)
	}
	return list
}

// rows returns parts that may be fixed first, named by their index.
func rows(n int) []trace.Part {
	parts := make([]trace.Part, n)
	for i := range parts {
		parts[i] = trace.Part{Name: fmt.Sprint(i), Rival: true}
	}
	return parts
}

// first returns the names of the rows with the largest savings, largest first.
func first(parts []trace.Part, costs []trace.Cost) (names []string) {
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(costs[b].NS - parts[b].LeastNS - costs[a].NS + parts[a].LeastNS)
	})
	for _, i := range order[:ranking.Top] {
		names = append(names, parts[i].Name)
	}
	return names
}

func TestOrderIsDecidedAsRoundsAdd(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	savings, parts := []int64{60_000, 220_000, 190_000, 150_000, 3_000, 0}, rows(6)
	for _, c := range []struct {
		rounds int
		noise  float64
		want   bool
	}{
		{15, 2_000, false},     // too few rounds
		{16, 2_000, true},      // the rows are far apart
		{16, 200_000, false},   // the noise hides the order
		{3_000, 200_000, true}, // enough rounds average the noise
	} {
		costs := measure(random, savings, c.noise, c.rounds)
		if got := ranking.Decided(whole, parts, costs); got != c.want {
			t.Errorf("%d rounds, noise %.0f ns: decided %v: %+v", c.rounds, c.noise, got, costs)
		}
	}
}

func TestTwoDecidedRunsNameTheSameFirstRows(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	savings, parts := []int64{40_000, 90_000, 130_000, 0, 70_000, 2_000, 110_000, 55_000}, rows(8)
	parts[2].LeastNS = 100_000 // a row at the limit of the device is not worth fixing
	want := []string{"6", "1", "4"}
	for run := range 100 {
		rounds := ranking.Fewest
		costs := measure(random, savings, 15_000, rounds)
		for !ranking.Decided(whole, parts, costs) {
			rounds += 5
			costs = measure(random, savings, 15_000, rounds)
		}
		if got := first(parts, costs); !slices.Equal(got, want) {
			t.Errorf("run %d, %d rounds: first rows %v, want %v", run, rounds, got, want)
		}
		if rounds > 200 {
			t.Errorf("run %d took %d rounds", run, rounds)
		}
	}
}

func TestRowsOfEqualSavingsAreDecided(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	parts := rows(4)
	equal := []int64{100_000, 100_300, 99_800, 100_000}
	if costs := measure(random, equal, 5_000, 40); !ranking.Decided(whole, parts, costs) {
		t.Errorf("rows that differ by less than 10 µs are not decided: %+v", costs)
	}
	if costs := measure(random, equal, 60_000, 20); ranking.Decided(whole, parts, costs) {
		t.Errorf("rows that may differ by more than 10 µs are decided: %+v", costs)
	}
	nothing := []int64{0, 0, 0, 0}
	if costs := measure(random, nothing, 5_000, 40); !ranking.Decided(whole, parts, costs) {
		t.Errorf("rows that save nothing are not decided: %+v", costs)
	}
	if costs := measure(random, nothing, 90_000, 20); ranking.Decided(whole, parts, costs) {
		t.Errorf("rows that may save something are decided: %+v", costs)
	}
}

func TestOnlyRivalsAreCompared(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	parts, savings := rows(4), []int64{500_000, 501_000, 100_000, 50_000}
	costs := measure(random, savings, 30_000, 20)
	if ranking.Decided(whole, parts, costs) {
		t.Error("two rows within the noise are decided")
	}
	parts[0].Rival = false // such as the heading of row 1
	if !ranking.Decided(whole, parts, costs) {
		t.Error("a heading is compared with its rows")
	}
	costs[0].N, costs[0].OffNS = 0, trace.Time{}
	if !ranking.Decided(whole, parts, costs) {
		t.Error("a heading without a cost delays the decision")
	}
	for i := range parts {
		parts[i].Rival = false
	}
	if ranking.Decided(whole, parts, costs) {
		t.Error("an order of no rows is decided")
	}
}
