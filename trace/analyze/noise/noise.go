// Package noise decides whether the difference between two measured times is significant. It is used by
// every comparison of gpuscope: with the baseline on the screen, in trace show --base and in trace diff.
//
// A difference is significant if it exceeds a limit, its noise. The noise is the sum of three parts.
//
//  1. The error of the two medians. Neighbouring steps are correlated, because clocks and caches drift, so
//     the steps are divided into at most 8 blocks of consecutive steps, and the error is computed from the
//     medians of the blocks. A block median also removes single slow steps. For a group of dispatches, the
//     medians of a block are added up. The error is multiplied by a quantile of Student's t distribution,
//     with Bonferroni's correction for the number of compared rows. With few blocks the error of one row is
//     uncertain, so it is averaged with the usual relative error of all rows.
//  2. The differences between two runs of the same program. In each run, memory and kernel code have
//     different addresses, which changes times by a constant factor. Repeats within a run do not show this.
//     Band holds the assumed size of these factors. If rows with the same kernel differ by more than
//     assumed, the band is widened.
//  3. The difference of the GPU clocks, if the clock probe measured both. It counts only if it explains the
//     direction of the change: a slower clock explains a longer time, and a faster clock a shorter time.
//
// docs/guide/diff.md describes the same for users, with the source of the constants.
package noise

import (
	"cmp"
	"math"
	"slices"

	"gpuscope/trace"
)

// FamilyError is the probability that a comparison of two equal runs reports any significant difference, if
// the assumptions of the package hold.
const FamilyError = 0.01

// Series holds the times of one row in ns, in the order in which they were measured.
type Series struct {
	NS []float64
	// Keys identifies what each time belongs to, such as the position of the step. Times of both sides with
	// equal keys are compared with each other, so a trend along the keys does not count as noise. Keys is nil
	// if the times are repeats of one step.
	Keys []int64
}

// Key returns the key of the times of a step: steps of two runs with the same position and the same number of
// tokens do the same work.
func Key(s *trace.Step) int64 { return int64(s.Position)<<20 + int64(len(s.Tokens)) }

// Pair is a row or a group of rows that is compared. Base and Now have a series for each dispatch of the row.
type Pair struct {
	Base, Now []Series
	// BaseNS and NowNS are the two times that are compared: the sums of the medians of the series.
	BaseNS, NowNS float64
	// Members is the number of dispatches that the two times include. 0 means 1.
	Members int
	// MoreNS is a time of work that NowNS may include and BaseNS does not, because the baseline has it in
	// other dispatches. It explains a longer time. MoreBaseNS is the same for the baseline.
	MoreNS, MoreBaseNS float64
	// Kernel groups rows that a change of one kernel affects alike. Rows without a kernel have "".
	Kernel string
}

// Band is the assumed difference between two runs of the same program. Run is the part that all rows of a run
// share. Row is the part that differs between rows: in a group of n rows it averages out, to Row / √n. Both
// are fractions of the time.
type Band struct{ Run, Row float64 }

// The bands were chosen as described in docs/guide/diff.md.
var (
	SameRun  = Band{0.01, 0.02} // two selections of one trace
	OtherRun = Band{0.02, 0.06} // two runs on a GPU
	Software = Band{1, 0.25}    // a CPU that emulates a GPU, for one run or two
)

// SpanBand is the assumed relative difference of the GPU span of a step between two runs on a GPU. A span
// takes one of a few values, which depend on where the commands of the step are in memory.
const SpanBand = 0.04

// hostBand is the assumed relative difference between the host times of a step in two runs. The host time is
// the wall time without the GPU span. With nothing changed, one process needs up to 1.7 times as long as
// another to encode and submit a step. Bands are logarithmic, and log 1.7 is 0.53.
const hostBand = 0.55

// unknownWallBand is the assumed relative difference between the wall times of a step in two runs, if the GPU
// span of the step is not known.
const unknownWallBand = 0.15

// WallBand returns the assumed relative difference between the wall times of a step in two runs on a GPU.
// `wall` is the wall time, and `span` is the GPU span, or 0 if it is not known.
func WallBand(wall, span float64) float64 {
	if span <= 0 || wall <= 0 {
		return unknownWallBand
	}
	span = min(span, wall)
	return (SpanBand*span + hostBand*(wall-span)) / wall
}

// For returns a copy of the noise model with Bonferroni's correction for this number of tests.
func (m *Model) For(tests int) *Model {
	c := *m
	c.Tests, c.quants = tests, [maxDF + 1]float64{}
	return &c
}

// WholeBand returns the band for a time that covers whole steps. `band` is the band that applies to two
// runs on a GPU. WholeBand adapts it if m compares two selections of one trace, or software devices.
func (m *Model) WholeBand(band float64) float64 {
	switch m.Band {
	case Software:
		return Software.Run
	case SameRun:
		return band / 2
	}
	return band
}

// Model holds what is known about the noise of a comparison. It is computed once for all rows.
type Model struct {
	Band Band
	// ResolutionNS is the smallest difference that the clocks of both sides can measure.
	ResolutionNS float64
	// Clock is the logarithm of the factor by which times are longer because the GPU clock is slower than
	// at the baseline. It is 0 if the clock probe did not run on both sides.
	Clock float64
	// Tests is the number of rows, groups and totals that are compared.
	Tests int

	usual  float64 // usual relative variation of a block median; 0 if there are too few rows
	excess float64 // relative variation between rows of one kernel beyond the error of their medians
	quants [maxDF + 1]float64
}

// fewRows is the smallest number of rows from which the usual variation and the excess are computed.
const fewRows = 8

// priorDF is the weight, in degrees of freedom, that the usual variation has when it is averaged with that of
// a row.
const priorDF = 4

// maxDF is the largest number of degrees of freedom that occurs. It is reached if each side has maxBlocks
// blocks and the usual variation is known, which adds priorDF.
const maxDF = 2*(maxBlocks-1) + priorDF

// Learn computes the usual variation of the rows and widens the band if rows with the same kernel differ by
// more than the band allows.
func (m *Model) Learn(rows []Pair) {
	var usual []float64
	type residual struct{ shift, error float64 }
	of := map[string][]residual{}
	for i := range rows {
		r := &rows[i]
		if r.BaseNS <= 0 || r.NowNS <= 0 {
			continue
		}
		e := m.errorOf(r)
		if e.df >= 2 {
			usual = append(usual, e.sd)
		}
		if e.known && r.Kernel != "" {
			of[r.Kernel] = append(of[r.Kernel], residual{math.Log(r.NowNS / r.BaseNS), e.relative})
		}
	}
	if len(usual) >= fewRows {
		m.usual = median(usual)
	}
	var away, errors []float64
	for _, list := range of {
		if len(list) < 4 {
			continue
		}
		shifts := make([]float64, len(list))
		for i := range list {
			shifts[i] = list[i].shift
		}
		center := median(shifts)
		for _, r := range list {
			away, errors = append(away, math.Abs(r.shift-center)), append(errors, r.error)
		}
	}
	if len(away) >= fewRows {
		sd, error := median(away)*madToSD, median(errors)
		m.excess = math.Sqrt(max(0, sd*sd-error*error))
	}
}

// widening is a number of standard deviations. The band of one dispatch is at least widening times
// Model.excess.
const widening = 4

// RowBand returns the relative band of a row or of a group with this number of dispatches.
func (m *Model) RowBand(members int) float64 {
	return m.Band.Run + max(m.Band.Row, widening*m.excess)/math.Sqrt(float64(max(1, members)))
}

// Verdict is the result of a comparison.
type Verdict struct {
	DeltaNS float64 // now minus the baseline
	// NoiseNS is the largest difference that is not significant. Known reports whether there are enough times
	// to compute NoiseNS. If there are not, no difference is significant.
	NoiseNS     float64
	Known       bool
	Significant bool
	// MovedNS is the part of NoiseNS that moved work can explain (Pair.MoreNS).
	MovedNS float64
}

// Judge decides whether a row or a group differs from the baseline.
func (m *Model) Judge(p *Pair) Verdict { return m.Within(p, m.RowBand(p.Members)) }

// Within decides whether a time differs from the baseline. `band` is the largest relative difference that is
// expected between two equal runs.
func (m *Model) Within(p *Pair, band float64) Verdict {
	if p.BaseNS <= 0 || p.NowNS <= 0 {
		return Verdict{DeltaNS: p.NowNS - p.BaseNS}
	}
	v := m.verdict(p.BaseNS, p.NowNS, m.errorOf(p), band)
	if v.DeltaNS > 0 {
		return v.beyond(p.MoreNS)
	}
	return v.beyond(p.MoreBaseNS)
}

// beyond returns the verdict if a time in ns of the difference has another explanation than noise.
func (v Verdict) beyond(explained float64) Verdict {
	v.MovedNS = explained
	v.NoiseNS += explained
	v.Significant = v.Significant && math.Abs(v.DeltaNS) > v.NoiseNS
	return v
}

// verdict decides whether two times differ. `e` is the error of their difference.
func (m *Model) verdict(base, now float64, e medianError, band float64) Verdict {
	v := Verdict{DeltaNS: now - base, Known: e.known}
	if !e.known {
		return v
	}
	// The difference of the clocks explains changes in one direction only.
	clock := 0.0
	if m.Clock*v.DeltaNS > 0 {
		clock = math.Abs(m.Clock)
	}
	relative := m.quantile(e.df)*e.relative + band + clock
	// The noise is a factor. It is applied to the shorter of the two times, so that it is the same for both
	// directions and remains meaningful if it is large.
	v.NoiseNS = max(m.ResolutionNS, min(base, now)*math.Expm1(min(relative, 20)))
	v.Significant = math.Abs(v.DeltaNS) > v.NoiseNS
	return v
}

// Estimate is a median of N times with its error as trace.OffBy defines it: at least half of a 90 %
// confidence interval.
type Estimate struct {
	NS, ErrorNS float64
	N           int
}

// intervalToSD is half of the 90 % confidence interval of a normal distribution, in standard deviations.
const intervalToSD = 1.645

// Medians decides whether two medians differ. It uses only the medians and their errors, not the times from
// which the medians were computed. `band` is the largest relative difference that is expected between two
// equal runs.
func (m *Model) Medians(base, now Estimate, band float64) Verdict {
	if base.NS <= 0 || now.NS <= 0 || min(base.N, now.N) < trace.FewestWithin {
		return Verdict{DeltaNS: now.NS - base.NS}
	}
	e := medianError{known: true, df: min(base.N, maxBlocks) + min(now.N, maxBlocks) - 2}
	e.relative = math.Hypot(base.ErrorNS/base.NS, now.ErrorNS/now.NS) / intervalToSD
	return m.verdict(base.NS, now.NS, e, band)
}

// medianError is the error of one block median, or of the difference between two lists of block medians.
type medianError struct {
	sd       float64 // relative standard deviation of a block median
	relative float64 // relative standard error of the difference
	df       int
	known    bool
}

// fewPairs is the smallest number of common keys with which times are compared key by key.
const fewPairs = 5

// errorOf returns the relative error of the difference between the two times of a row.
func (m *Model) errorOf(p *Pair) medianError {
	base, now := aligned(p.Base), aligned(p.Now)
	if a, b := base.common(now); len(a.keys) >= fewPairs {
		ratios := a.blocks()
		for i, v := range b.blocks() {
			ratios[i] = v - ratios[i]
		}
		e := m.moderate(max(deviation(ratios), m.rounding(p)), len(ratios)-1)
		e.relative = e.sd * medianToMean / math.Sqrt(float64(len(ratios)))
		return e
	}
	a, b := base.blocks(), now.blocks()
	if len(a) < 2 || len(b) < 2 {
		return medianError{}
	}
	x, y := deviation(a), deviation(b)
	df := len(a) + len(b) - 2
	sd := math.Sqrt((float64(len(a)-1)*x*x + float64(len(b)-1)*y*y) / float64(df))
	e := m.moderate(max(sd, x/2, y/2, m.rounding(p)), df)
	e.relative = e.sd * medianToMean * math.Sqrt(1/float64(len(a))+1/float64(len(b)))
	return e
}

// rounding returns the relative standard deviation of a time that is rounded to ticks of the clock. A few
// times may be equal only because of this rounding. ResolutionNS is two ticks.
func (m *Model) rounding(p *Pair) float64 {
	return m.ResolutionNS / 2 / math.Sqrt(12) / min(p.BaseNS, p.NowNS)
}

// moderate averages the variation of a row with the usual variation of all rows.
func (m *Model) moderate(sd float64, df int) medianError {
	if df < 1 {
		return medianError{}
	}
	e := medianError{sd: sd, df: df, known: true}
	if m.usual > 0 {
		e.df += priorDF
		e.sd = math.Sqrt((priorDF*m.usual*m.usual + float64(df)*sd*sd) / float64(e.df))
	}
	return e
}

// times holds the times of the dispatches of a row, for the steps or repeats in which all of them were timed.
type times struct {
	of   [][]float64 // for each dispatch, its times
	n    int         // number of times of each dispatch
	keys []int64     // nil for repeats
}

// aligned returns the times of those steps or repeats that all series have.
func aligned(list []Series) times {
	if len(list) == 0 {
		return times{}
	}
	t := times{of: make([][]float64, len(list)), n: math.MaxInt, keys: list[0].Keys}
	same := slices.IsSorted(t.keys)
	for i, s := range list {
		t.of[i], t.n = s.NS, min(t.n, len(s.NS))
		same = same && slices.Equal(s.Keys, t.keys)
	}
	if same || t.keys == nil {
		return t
	}
	counts := map[int64]int{}
	for _, s := range list {
		for _, k := range s.Keys {
			counts[k]++
		}
	}
	return t.pick(list, func(k int64) bool { return counts[k] == len(list) })
}

// pick returns the times whose keys satisfy a condition, in the order of the keys.
func (t times) pick(list []Series, ok func(int64) bool) times {
	out := times{of: make([][]float64, len(list)), n: math.MaxInt}
	for i, s := range list {
		at := make([]int, 0, len(s.Keys))
		for k, key := range s.Keys {
			if ok(key) {
				at = append(at, k)
			}
		}
		slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(s.Keys[a], s.Keys[b]) })
		out.keys = out.keys[:0]
		for _, k := range at {
			out.of[i], out.keys = append(out.of[i], s.NS[k]), append(out.keys, s.Keys[k])
		}
		out.n = min(out.n, len(at)) // lists of steps that were run again may differ in length
	}
	out.keys = out.keys[:min(out.n, len(out.keys))]
	return out
}

// series returns the times as a list of series with equal keys.
func (t times) series() []Series {
	list := make([]Series, len(t.of))
	for i := range t.of {
		list[i] = Series{t.of[i][:t.n], t.keys}
	}
	return list
}

// common returns the times of both sides that have the same keys. If less than four fifths of the longer side
// have a counterpart, it returns no times.
func (t times) common(u times) (a, b times) {
	if t.keys == nil || u.keys == nil || slices.Equal(t.keys, u.keys) {
		if t.keys == nil || u.keys == nil {
			return times{}, times{}
		}
		return t, u
	}
	in := make(map[int64]int, len(t.keys))
	for _, k := range t.keys {
		in[k] |= 1
	}
	for _, k := range u.keys {
		in[k] |= 2
	}
	both := func(k int64) bool { return in[k] == 3 }
	a, b = t.pick(t.series(), both), u.pick(u.series(), both)
	if a.n != b.n || 5*a.n < 4*max(t.n, u.n) {
		return times{}, times{}
	}
	return a, b
}

// maxBlocks is the largest number of blocks.
const maxBlocks = 8

// blocks divides the times into at most maxBlocks runs of consecutive times. It returns, for each block, the
// logarithm of the sum of the medians of the dispatches.
func (t times) blocks() []float64 {
	n := min(t.n, maxBlocks)
	out := make([]float64, n)
	for i := range out {
		for _, list := range t.of {
			out[i] += median(slices.Clone(list[i*t.n/n : (i+1)*t.n/n]))
		}
		out[i] = math.Log(max(out[i], 1))
	}
	return out
}

// These factors hold for normally distributed numbers. madToSD is the standard deviation divided by the
// median absolute deviation (MAD). iqrToSD is the standard deviation divided by the interquartile range.
// medianToMean is the error of a median divided by the error of a mean.
const (
	madToSD      = 1.4826
	iqrToSD      = 0.7413
	medianToMean = 1.2533
)

// deviation returns a robust estimate of the standard deviation. It is the larger of two estimates, from the
// MAD and from the interquartile range, because each of them may be too small. For numbers that form two
// groups, for example, the MAD can be 0.
func deviation(list []float64) float64 {
	if len(list) < 2 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	center := trace.Quantile(sorted, 0.5)
	away := make([]float64, len(sorted))
	for i, v := range sorted {
		away[i] = math.Abs(v - center)
	}
	if len(list) < 4 { // too few for quartiles: the deviation of the smallest and the largest
		return (sorted[len(sorted)-1] - sorted[0]) / math.Sqrt2
	}
	return max(madToSD*median(away), iqrToSD*(trace.Quantile(sorted, 0.75)-trace.Quantile(sorted, 0.25)))
}

// median returns the median of a list that is not empty. It sorts the list.
func median(list []float64) float64 {
	slices.Sort(list)
	return trace.Quantile(list, 0.5)
}

// quantile returns how many standard errors a difference with `df` degrees of freedom must exceed to be
// significant.
func (m *Model) quantile(df int) float64 {
	df = min(max(df, 1), maxDF)
	if m.quants[df] == 0 {
		m.quants[df] = studentQuantile(FamilyError/float64(max(1, m.Tests)), df)
	}
	return m.quants[df]
}

// studentQuantile returns the t that a variable with Student's distribution exceeds, in absolute value, with
// probability p.
func studentQuantile(p float64, df int) float64 {
	low, high := 0.0, 1.0
	for studentTail(high, df) > p && high < 1e12 {
		low, high = high, 2*high
	}
	for range 60 {
		mid := (low + high) / 2
		if studentTail(mid, df) > p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// studentTail returns the probability that the absolute value of a variable with Student's distribution
// exceeds t. It is the finite series for a whole number of degrees of freedom (Abramowitz and Stegun, 26.7.3
// and 26.7.4).
func studentTail(t float64, df int) float64 {
	angle := math.Atan2(t, math.Sqrt(float64(df)))
	sin, cos := math.Sincos(angle)
	var inside float64
	if df%2 == 1 {
		term, sum := cos, 0.0
		for k := 1; k <= df-2; k += 2 {
			sum += term
			term *= cos * cos * float64(k+1) / float64(k+2)
		}
		inside = 2 / math.Pi * (angle + sin*sum)
	} else {
		term, sum := 1.0, 0.0
		for k := 0; k <= df-2; k += 2 {
			sum += term
			term *= cos * cos * float64(k+1) / float64(k+2)
		}
		inside = sin * sum
	}
	return max(0, 1-inside)
}

// ClockShift returns the logarithm of the factor by which times are longer now, from the speeds that the
// clock probe measured at the baseline and now. It returns 0 if one of the speeds is not known.
func ClockShift(base, now float64) float64 {
	if !(base > 0 && now > 0) {
		return 0
	}
	return math.Log(base / now)
}

// BySize is a sort order of verdicts. Significant ones come before all others. Within both groups, the
// largest difference without moved work comes first.
func BySize(a, b Verdict) int {
	if a.Significant != b.Significant {
		if a.Significant {
			return -1
		}
		return 1
	}
	return cmp.Compare(math.Abs(b.DeltaNS)-b.MovedNS, math.Abs(a.DeltaNS)-a.MovedNS)
}

// ClockFactor returns the factor by which times are longer now because of the GPU clock. It is 1 if the clock
// probe did not measure both sides.
func (m *Model) ClockFactor() float64 { return math.Exp(m.Clock) }
