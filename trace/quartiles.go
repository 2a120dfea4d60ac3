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
// in each, where the median is in the one or the other; and one that was held up says nothing. Where more
// than a tenth lie far out it is the quartile on their side: what stands between quartiles is never outside
// them.
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
	q1, _, q3 := Quartiles(ns)
	return min(max(int64(math.Round(float64(sum)/float64(len(kept)))), q1), q3)
}

// OffBy is what a mean or median of numbers in rising order, at least one, may be off by: half the distance
// between their quartiles, or as much as reaches both numbers between which their median lies (MedianWithin),
// whichever is larger. The second is what few numbers have, whose quartiles may be close together by chance;
// of fewer than FewestWithin it is not known.
func OffBy(sorted []int64, of int64) Time {
	low, high, ok := MedianWithin(sorted)
	if !ok {
		return Time{}
	}
	q1, _, q3 := Quartiles(sorted)
	return Measured(max((q3-q1+1)/2, of-low, high-of))
}

// FewestWithin is how many numbers say between which two of them their median lies.
const FewestWithin = 5

// MedianWithin is between which two of numbers in rising order, at least one, their median lies, nine times
// of ten or more and however they scatter. Of fewer than FewestWithin not even the least and the greatest are
// so far apart, which ok says.
func MedianWithin[N int64 | float64](sorted []N) (low, high N, ok bool) {
	n, k := len(sorted), 0
	// Each is below the median as often as above it: term is how likely k of them are, tail k or fewer.
	term := math.Pow(0.5, float64(n))
	for tail := term; 2*tail <= 0.1; tail += term {
		k++
		term *= float64(n-k+1) / float64(k)
	}
	out := max(k-1, 0)
	return sorted[out], sorted[n-1-out], k > 0
}
