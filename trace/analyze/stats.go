package analyze

import (
	"math"
	"slices"

	"gpuscope/trace"
)

// A file may hold any time. What is made of several stays at the largest that there is: no sum turns round.

// Add is a + b.
func Add(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < -math.MaxInt64-b:
		return -math.MaxInt64
	}
	return a + b
}

// Whole is a number of ns without its fraction.
func Whole(ns float64) int64 {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(max(ns, -math.MaxInt64))
}

// Stats sums up times in ns: their number, median, range and interquartile range. N = 0: not measured.
type Stats struct {
	N        int
	Median   float64
	Min, Max float64
	IQR      float64 // between the quartiles; 0 where they are not Known
}

// Enough is how many times have quartiles that mean something.
const Enough = 4

// Measured reports whether there is a time at all.
func (s Stats) Measured() bool { return s.N > 0 }

// Known reports whether there are times enough for an IQR.
func (s Stats) Known() bool { return s.N >= Enough }

// Noise is the largest difference between medians that is not significant: the IQR, or with too few times
// for one the whole range.
func (s Stats) Noise() float64 {
	if s.Known() {
		return s.IQR
	}
	return s.Max - s.Min
}

// StatsOf sorts ns.
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

// TimeOf is the time of a dispatch of a step: of its repeats in place where there are any, else of its one
// run.
func TimeOf(d *trace.StepDispatch) Stats {
	if len(d.Samples) > 0 {
		return StatsOf(slices.Clone(d.Samples))
	}
	if ns, ok := d.GPUNS.NS(); ok {
		return StatsOf([]int64{ns})
	}
	return Stats{}
}

// MedianOf is the median of timeOf, and whether anything was measured.
func MedianOf(d *trace.StepDispatch) (ns float64, measured bool) {
	if len(d.Samples) > 0 {
		return TimeOf(d).Median, true
	}
	only, measured := d.GPUNS.NS()
	return float64(only), measured
}

// judging is how many repeats tell an outlier from noise. In one of them many of a hundred members are far
// out, in two of three or three of five still some.
const judging = 8

// outlier finds the one of several equal runs that stands out: samples[i] are the repeats of the i-th. It
// must be more than 3 MAD, and more than the resolution of the clock, from the median of all in most of as
// many repeats as it takes. worst is -1 where none does, judged reports whether there were runs and repeats
// enough to tell.
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

// resolutionNS is the smallest difference of two times that means anything: two quanta of the clock.
func resolutionNS(t *trace.Trace) float64 { return 2 * t.Clock.QuantumNS }
