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
		{[]int64{0, 0, 0, 0, 0, 0, 0, 0, 0, 9000, 9000}, 0}, // limited to the quartiles
		{[]int64{-1e9, -1e6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 1e6, 1e9}, 2},
	} {
		if got := TrimmedMean(c.of); got != c.want {
			t.Errorf("mean of %v is %d, want %d", c.of, got, c.want)
		}
	}
}

func TestTrimmedMeanIsWithinTheQuartiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.SliceOfN(rapid.Int64Range(-1e12, 1e12), 1, 40).Draw(t, "ns")
		slices.Sort(ns)
		if q1, _, q3 := Quartiles(ns); TrimmedMean(ns) < q1 || TrimmedMean(ns) > q3 {
			t.Fatalf("%d is not between %d and %d", TrimmedMean(ns), q1, q3)
		}
	})
}

// A few samples may be close together by chance. So their error includes the range in which their median may
// be. The error of many samples is the distance to their quartiles.
func TestErrorCoversTheScatterOfFewSamples(t *testing.T) {
	for _, c := range []struct {
		sorted []int64
		of     int64
		want   Time
	}{
		{[]int64{-300}, -300, Time{}},
		{[]int64{1, 2, 3, 9}, 2, Time{}},
		{[]int64{0, 10, 11, 12, 13}, 11, Measured(11)},               // the fewest samples
		{[]int64{-90, 0, 10, 11, 12, 13, 14, 300}, 11, Measured(11)}, // without the extremes
		{[]int64{0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}, 6, Measured(2)},
	} {
		if got := OffBy(c.sorted, c.of); got != c.want {
			ns, ok := got.NS()
			t.Errorf("error of %d from %v is %d (known: %t)", c.of, c.sorted, ns, ok)
		}
	}
}

// The range drops so many of the lowest and the highest samples that the median is outside of it less than
// one time in ten.
func TestTheMedianLiesBetweenNumbersOfItsRank(t *testing.T) {
	for n, out := range map[int]int{
		FewestWithin: 0, 7: 0, 8: 1, 11: 2, 16: 4, 20: 5, 1000: 473, 1075: 510, 2000: 962, 20000: 9883,
	} {
		sorted := make([]int64, n)
		for i := range sorted {
			sorted[i] = int64(i)
		}
		low, high, ok := MedianWithin(sorted)
		if low != int64(out) || high != int64(n-1-out) || !ok {
			t.Errorf("%d samples: between %d and %d (known: %t), want %d dropped", n, low, high, ok, out)
		}
	}
	if low, high, ok := MedianWithin([]int64{1, 2, 3, 9}[:FewestWithin-1]); low != 1 || high != 9 || ok {
		t.Errorf("four samples: between %d and %d, known: %t", low, high, ok)
	}
}
