package analyze

import (
	"math"
	"slices"

	"gpuscope/trace"
)

// Times that are read from a file can be very large. A sum that would overflow is limited to the largest
// int64 instead.

// Add returns a + b, limited to the range of int64.
func Add(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < -math.MaxInt64-b:
		return -math.MaxInt64
	}
	return a + b
}

// Whole rounds a number of ns toward zero, limited to the range of int64.
func Whole(ns float64) int64 {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(max(ns, -math.MaxInt64))
}

// Stats is a summary of N times in ns. If nothing was measured, N is 0.
type Stats struct {
	N        int
	Median   float64
	Min, Max float64
	IQR      float64 // interquartile range; 0 if there are fewer than Enough times
}

// Enough is the number of times that are needed for meaningful quartiles.
const Enough = 4

// Measured reports whether there is at least one time.
func (s Stats) Measured() bool { return s.N > 0 }

// Known reports whether there are enough times for an interquartile range.
func (s Stats) Known() bool { return s.N >= Enough }

// Noise returns the largest difference between two medians that is not significant. It is the interquartile
// range, or the full range if there are too few times for quartiles.
func (s Stats) Noise() float64 {
	if s.Known() {
		return s.IQR
	}
	return s.Max - s.Min
}

// StatsOf summarizes times in ns. StatsOf sorts its argument in place.
func StatsOf[N int64 | float64](ns []N) Stats {
	if len(ns) == 0 {
		return Stats{}
	}
	slices.Sort(ns)
	s := Stats{N: len(ns), Median: trace.Quantile(ns, 0.5), Min: float64(ns[0]), Max: float64(ns[len(ns)-1])}
	if s.Known() {
		s.IQR = trace.Quantile(ns, 0.75) - trace.Quantile(ns, 0.25)
	}
	return s
}

// TimeOf returns the statistics of the time of a dispatch in a step: of its repeats, or of its single run if
// it has no repeats.
func TimeOf(d *trace.StepDispatch) Stats {
	if len(d.Samples) > 0 {
		return StatsOf(slices.Clone(d.Samples))
	}
	if ns, ok := d.GPUNS.NS(); ok {
		return StatsOf([]int64{ns})
	}
	return Stats{}
}

// MedianOf returns the median time of a dispatch in a step, in ns. It is TimeOf without the other statistics.
// `measured` is false if there is no time.
func MedianOf(d *trace.StepDispatch) (ns float64, measured bool) {
	if len(d.Samples) > 0 {
		return TimeOf(d).Median, true
	}
	only, measured := d.GPUNS.NS()
	return float64(only), measured
}

// judging is the number of repeats that are needed to tell an outlier from noise. Of a hundred equal
// dispatches, many are far from the median in one repeat by chance. Some are even far from it in two of three
// repeats, or in three of five, by chance.
const judging = 8

// outlier returns the index of the dispatch that is an outlier among equal dispatches, or -1 if there is
// none. samples[i] holds the times of dispatch i, one for each repeat. In more than half of the repeats, the
// time of an outlier differs from the median of all dispatches by more than 3 MAD. It must also differ by
// more than the resolution of the clock. `judged` is false if there are too few dispatches or repeats to
// decide.
func outlier(samples [][]int64, resolution float64) (worst int, judged bool) {
	if len(samples) < 4 {
		return -1, false
	}
	repeats := len(samples[0])
	for _, s := range samples {
		repeats = min(repeats, len(s))
	}
	if repeats < judging {
		return -1, false
	}
	times := make([]float64, len(samples))
	far := make([]int, len(samples))
	for r := range repeats {
		for i := range samples {
			times[i] = float64(samples[i][r])
		}
		median := StatsOf(slices.Clone(times)).Median
		away := make([]float64, len(times))
		for i, t := range times {
			away[i] = math.Abs(t - median)
		}
		limit := max(3*StatsOf(slices.Clone(away)).Median, resolution)
		for i := range away {
			if away[i] > limit {
				far[i]++
			}
		}
	}
	for i := range far {
		if far[i] > far[worst] {
			worst = i
		}
	}
	if 2*far[worst] <= repeats {
		worst = -1
	}
	return worst, true
}

// resolutionNS returns the smallest time difference that is meaningful: twice the timer resolution.
func resolutionNS(t *trace.Trace) float64 { return 2 * t.Clock.QuantumNS }
