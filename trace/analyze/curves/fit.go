package curves

import (
	"math"
	"slices"

	"gpuscope/trace/analyze"
)

// Fit is the least-squares line through measured times. A is the time in ns at x = 0. B is the slope in ns
// per place, and SE is its standard error. The line does not use points that are more than 3 MAD away from a
// first fit.
type Fit struct {
	A, B, SE float64
	N        int     // number of fitted points
	Out      []int   // indices of the excluded points
	First    float64 // smallest x of the points; Last is the largest
	Last     float64
}

// At returns the time of the line at a place, in ns.
func (f *Fit) At(x float64) float64 { return f.A + f.B*x }

// Time returns the time of the line at a place, in ns. The bool is false if the line is at or below 0 there.
func (f *Fit) Time(x float64) (float64, bool) {
	ns := f.At(x)
	return ns, ns > 0
}

// Significant reports whether the slope is significant: B exceeds three standard errors, and there are at
// least MinSlopePoints points.
func (f *Fit) Significant() bool { return f.N >= MinSlopePoints && math.Abs(f.B) > 3*f.SE }

// minLinePoints is the number of points that a line needs. MinSlopePoints is the number of points that a
// significant slope needs. With fewer points, a slope often exceeds three standard errors by chance.
const minLinePoints, MinSlopePoints = 4, 8

// FitLine returns the line through points, and nil if there are too few points or all are at one place.
func FitLine(xs, ys []float64) *Fit {
	f := leastSquares(xs, ys)
	if f == nil {
		return nil
	}
	off := make([]float64, len(xs))
	for i := range xs {
		off[i] = math.Abs(ys[i] - f.At(xs[i]))
	}
	limit := 3 * 1.4826 * analyze.StatsOf(slices.Clone(off)).Median
	var nearX, nearY []float64
	var out []int
	for i := range xs {
		if off[i] <= limit {
			nearX, nearY = append(nearX, xs[i]), append(nearY, ys[i])
		} else {
			out = append(out, i)
		}
	}
	if near := leastSquares(nearX, nearY); near != nil && out != nil {
		near.Out = out
		return near
	}
	return f
}

func leastSquares(xs, ys []float64) *Fit {
	n := float64(len(xs))
	if len(xs) < minLinePoints {
		return nil
	}
	var meanX, meanY float64
	for i := range xs {
		meanX, meanY = meanX+xs[i]/n, meanY+ys[i]/n
	}
	var xx, xy float64
	for i := range xs {
		xx += (xs[i] - meanX) * (xs[i] - meanX)
		xy += (xs[i] - meanX) * (ys[i] - meanY)
	}
	if xx == 0 {
		return nil
	}
	f := &Fit{B: xy / xx, N: len(xs), First: slices.Min(xs), Last: slices.Max(xs)}
	f.A = meanY - f.B*meanX
	var rest float64
	for i := range xs {
		d := ys[i] - f.At(xs[i])
		rest += d * d
	}
	f.SE = math.Sqrt(rest / (n - 2) / xx)
	return f
}

// Shift is a place at which the times change level: their mean after the place is higher, or lower, than
// before.
type Shift struct {
	At     float64 // first place after the shift
	NS, SE float64
}

// leastPart is the smallest number of points on each side of a shift.
const leastPart = 8

// Shifts finds the places where times change level. The points must be sorted by place. Shifts divides the
// points where the means of the two parts differ most relative to their variation. It then divides each part
// again in the same way.
func Shifts(xs, ys []float64) []Shift {
	f := FitLine(xs, ys)
	if f == nil {
		return nil
	}
	rest := make([]float64, len(xs))
	for i := range xs {
		rest[i] = ys[i] - f.At(xs[i])
	}
	if f.Significant() { // try a level shift instead of a line as the cause of the slope
		flat := analyze.StatsOf(slices.Clone(ys)).Median
		if s, t := cut(xs, ys); s != nil && t > 2*math.Abs(f.B)/f.SE && flat > 0 {
			copy(rest, ys)
		}
	}
	var found []Shift
	var search func(from, to, depth int)
	search = func(from, to, depth int) {
		s, t := cut(xs[from:to], rest[from:to])
		if s == nil || t < 6 || depth == 0 {
			return
		}
		found = append(found, *s)
		at := from
		for at < to && xs[at] < s.At {
			at++
		}
		search(from, at, depth-1)
		search(at, to, depth-1)
	}
	search(0, len(xs), 3)
	slices.SortFunc(found, func(a, b Shift) int { return int(math.Copysign(1, a.At-b.At)) })
	return found
}

// cut finds the place that divides the points most clearly into two levels. The second result is the
// difference between the levels divided by the standard error of the difference. The Shift is nil if there
// are too few points.
func cut(xs, ys []float64) (*Shift, float64) {
	n := len(ys)
	if n < 2*leastPart {
		return nil, 0
	}
	var sum, squares float64
	for _, y := range ys {
		sum, squares = sum+y, squares+y*y
	}
	var best *Shift
	var most, left, leftSquares float64
	for i, y := range ys[:n-leastPart] {
		left, leftSquares = left+y, leftSquares+y*y
		k := i + 1
		if k < leastPart || xs[k] == xs[i] {
			continue
		}
		a, b := float64(k), float64(n-k)
		right, rightSquares := sum-left, squares-leftSquares
		scatter := leftSquares - left*left/a + rightSquares - right*right/b
		se := math.Sqrt(max(0, scatter) / float64(n-2) * (1/a + 1/b))
		ns := right/b - left/a
		if se == 0 {
			se = math.Abs(ns) / 1e6
		}
		if t := math.Abs(ns) / se; t > most {
			most, best = t, &Shift{xs[k], ns, se}
		}
	}
	return best, most
}
