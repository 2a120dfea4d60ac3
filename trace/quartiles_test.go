package trace

import "testing"

func TestTrimmedMeanLeavesOutTheEnds(t *testing.T) {
	for _, c := range []struct {
		of   []int64
		want int64
	}{
		{[]int64{7}, 7},
		{[]int64{1, 2}, 2},
		{[]int64{-100, 10, 20, 900}, 15},
		{[]int64{0, 0, 0, 0, 0, 14, 14, 14}, 5}, // of two groups it lies between, by how many are in each
		{[]int64{-1e9, -1e6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 1e6, 1e9}, 2},
	} {
		if got := TrimmedMean(c.of); got != c.want {
			t.Errorf("of %v it is %d, want %d", c.of, got, c.want)
		}
	}
}
