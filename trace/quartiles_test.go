package trace

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTrimmedMeanLeavesOutTheEnds(t *testing.T) {
	for _, c := range []struct {
		of   []int64
		want int64
	}{
		{[]int64{7}, 7},
		{[]int64{1, 2}, 2},
		{[]int64{-100, 10, 20, 900}, 15},
		{[]int64{0, 0, 0, 0, 0, 14, 14, 14}, 5},             // between two groups
		{[]int64{0, 0, 0, 0, 0, 0, 0, 0, 0, 9000, 9000}, 0}, // it would lie beyond
		{[]int64{-1e9, -1e6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 1e6, 1e9}, 2},
	} {
		if got := TrimmedMean(c.of); got != c.want {
			t.Errorf("of %v it is %d, want %d", c.of, got, c.want)
		}
	}
}

func TestTrimmedMeanIsWithinTheQuartiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.SliceOfN(rapid.Int64Range(-1e12, 1e12), 1, 40).Draw(t, "ns")
		slices.Sort(ns)
		if q1, _, q3 := Quartiles(ns); TrimmedMean(ns) < q1 || TrimmedMean(ns) > q3 {
			t.Fatalf("%d is not within %d and %d", TrimmedMean(ns), q1, q3)
		}
	})
}

// So many of the least and of the greatest are left out that the median is among them less than once in ten.
func TestTheMedianLiesBetweenNumbersOfItsRank(t *testing.T) {
	for n, out := range map[int]int{5: 0, 7: 0, 8: 1, 11: 2, 16: 4, 20: 5, 1000: 473} {
		sorted := make([]int64, n)
		for i := range sorted {
			sorted[i] = int64(i)
		}
		low, high, ok := MedianWithin(sorted)
		if low != int64(out) || high != int64(n-1-out) || !ok {
			t.Errorf("of %d it is between %d and %d (%t), want %d left out", n, low, high, ok, out)
		}
	}
	if low, high, ok := MedianWithin([]int64{1, 2, 3, 9}); low != 1 || high != 9 || ok {
		t.Errorf("of four between %d and %d, known: %t", low, high, ok)
	}
}
