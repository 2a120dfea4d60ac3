package trace

import (
	"math"
	"slices"
)

// Quantile returns the q-quantile of a sorted, non-empty list. It interpolates linearly between neighbours.
func Quantile[N int64 | float64](sorted []N, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	j := min(i+1, len(sorted)-1)
	return float64(sorted[i]) + (at-float64(i))*(float64(sorted[j])-float64(sorted[i]))
}

// Quartiles sorts the non-empty list ns. It returns the quartiles and the median in whole nanoseconds.
func Quartiles(ns []int64) (q1, median, q3 int64) {
	slices.Sort(ns)
	at := func(q float64) int64 { return int64(math.Round(Quantile(ns, q))) }
	return at(0.25), at(0.5), at(0.75)
}

// TrimmedMean returns the mean of a sorted list without the smallest tenth and the largest tenth. For three
// or more numbers it drops at least one number at each end.
//
// If the times form two groups, the trimmed mean lies between the groups according to their sizes, whereas
// the median lies in one of the groups. A single delayed run has no effect on the trimmed mean. The result is
// clamped to the interquartile range. This matters if more than a tenth of the numbers are outliers: the
// result is then the quartile on their side.
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

// OffBy returns the error (±) of the center of a sorted, non-empty list. The center is its mean or median,
// which the caller passes as the argument of. The error is the larger of two figures: half the interquartile
// range, and the distance from the center to the farther end of the confidence interval that MedianWithin
// returns. The second figure matters for short lists, whose quartiles may be close together by chance. The
// error is not known for fewer than FewestWithin numbers.
func OffBy(sorted []int64, of int64) Time {
	low, high, ok := MedianWithin(sorted)
	if !ok {
		return Time{}
	}
	q1, _, q3 := Quartiles(sorted)
	return Measured(max((q3-q1+1)/2, of-low, high-of))
}

// FewestWithin is the smallest number of samples for which MedianWithin returns a confidence interval.
const FewestWithin = 5

// MedianWithin returns a confidence interval for the median of a sorted, non-empty list. The interval holds
// the median with a probability of at least 90%, for any distribution of the numbers. For fewer than
// FewestWithin numbers even the whole range of the list is too narrow, and ok is false.
func MedianWithin[N int64 | float64](sorted []N) (low, high N, ok bool) {
	n, k := len(sorted), 0
	// Each number is below the median with probability 1/2. The variable term is the probability that
	// exactly k numbers are below the median, and tail is the probability that at most k are.
	term := math.Pow(0.5, float64(n))
	for tail := term; 2*tail <= 0.1; tail += term {
		k++
		term *= float64(n-k+1) / float64(k)
	}
	out := max(k-1, 0)
	return sorted[out], sorted[n-1-out], k > 0
}
