package trace

import (
	"math"
	"slices"
)

// Quantile of a sorted list that is not empty, between neighbours by proportion.
func Quantile[N int64 | float64](sorted []N, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	j := min(i+1, len(sorted)-1)
	return float64(sorted[i]) + (at-float64(i))*(float64(sorted[j])-float64(sorted[i]))
}

// Quartiles sorts ns, which is not empty, and returns its median and quartiles in whole ns.
func Quartiles(ns []int64) (q1, median, q3 int64) {
	slices.Sort(ns)
	at := func(q float64) int64 { return int64(math.Round(Quantile(ns, q))) }
	return at(0.25), at(0.5), at(0.75)
}

// TrimmedMean is the mean of numbers in rising order without the least and the greatest tenth, of three or
// more without one of each at least. Of times that fall into two groups it lies between them by how many are
// in each, where the median is in the one or the other; and one that was held up says nothing.
func TrimmedMean(ns []int64) int64 {
	cut := len(ns) / 10
	if len(ns) >= 3 {
		cut = max(cut, 1)
	}
	kept := ns[cut : len(ns)-cut]
	sum := int64(0)
	for _, n := range kept {
		sum += n
	}
	return int64(math.Round(float64(sum) / float64(len(kept))))
}
