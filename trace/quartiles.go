package trace

import (
	"math"
	"slices"
)

// Quantile returns the q-quantile of a sorted list that is not empty. Between two elements of the list it
// interpolates linearly.
func Quantile[N int64 | float64](sorted []N, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	j := min(i+1, len(sorted)-1)
	return float64(sorted[i]) + (at-float64(i))*(float64(sorted[j])-float64(sorted[i]))
}

// Quartiles returns the quartiles and the median of a list of times that is not empty, in whole ns. It sorts
// the list.
func Quartiles(ns []int64) (q1, median, q3 int64) {
	slices.Sort(ns)
	at := func(q float64) int64 { return int64(math.Round(Quantile(ns, q))) }
	return at(0.25), at(0.5), at(0.75)
}

// TrimmedMean returns the mean of a sorted list without its smallest tenth and its largest tenth. It leaves
// out at least one number at each end if there are three or more. If the times form two groups, the trimmed
// mean is between the groups and depends on their sizes, whereas the median is inside one group. A single
// delayed run has no effect. If the trimmed mean is outside of the interquartile range, because more than a
// tenth of the numbers are outliers, the nearer quartile is returned.
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

// OffBy returns the error (±) of `center`, the mean or the median of a sorted list that is not empty. The
// error is the larger of two numbers: half of the interquartile range, and the distance from `center` to the
// farther end of the confidence interval that MedianWithin returns. The confidence interval matters for short
// lists, whose quartiles may be close together by chance. If there are fewer than FewestWithin numbers, the
// error is not measured.
func OffBy(sorted []int64, center int64) Time {
	low, high, ok := MedianWithin(sorted)
	if !ok {
		return Time{}
	}
	q1, _, q3 := Quartiles(sorted)
	return Measured(max((q3-q1+1)/2, center-low, high-center))
}

// FewestWithin is the number of samples that MedianWithin needs for a confidence interval.
const FewestWithin = 5

// MedianWithin returns a confidence interval for the median of the distribution from which the numbers of a
// sorted list come. It contains the median with a probability of at least 90%, whatever the distribution is.
// The bool is false if there are fewer than FewestWithin numbers. Even the range from the smallest to the
// largest number is then too narrow.
func MedianWithin[N int64 | float64](sorted []N) (low, high N, ok bool) {
	n, k := len(sorted), 0
	// A number is below the median of the distribution with probability 1/2. exp(term) is the probability
	// that exactly k numbers are below it, which may be too small for a float. tail is the probability that
	// at most k are.
	term := -float64(n) * math.Ln2
	for tail := math.Exp(term); 2*tail <= 0.1; tail += math.Exp(term) {
		k++
		term += math.Log(float64(n-k+1) / float64(k))
	}
	out := max(k-1, 0)
	return sorted[out], sorted[n-1-out], k > 0
}
