package curves

import (
	"math"
	"slices"

	"gpuscope/trace/analyze"
)

// Fit is the least-squares line through measured times. A is the time in ns at x = 0. B is the slope in ns
// per place, and SE is its standard error. The line does not use points that are more than 3 MAD away from a
// first line, which a few slow points at one end do not tilt.
type Fit struct {
	A, B, SE float64
	N        int     // number of fitted points
	Out      []int   // indices of the excluded points
	First    float64 // smallest x of the points; Last is the largest
	Last     float64
	// Level is a change of level that explains the times much better than a slope, or nil. The line then
	// changes by Level.NS at this place and has the same slope on both sides.
	Level *Shift
}

// At returns the time of the line at a place, in ns.
func (f *Fit) At(x float64) float64 {
	ns := f.A + f.B*x
	if f.Level != nil && x >= f.Level.At {
		ns += f.Level.NS
	}
	return ns
}

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

// FitLine returns the line through points that are sorted by place. It returns nil if there are too few
// points or all are at one place.
func FitLine(xs, ys []float64) *Fit {
	all := leastSquares(xs, ys)
	if all == nil {
		return nil
	}
	near, nearX, nearY, out := all, xs, ys, []int(nil)
	off := distances(xs, ys)
	for range 2 { // the second time with the distances from the least-squares line, which is more exact
		nearX, nearY, out = nil, nil, nil
		for limit, i := farFrom(off), 0; i < len(xs); i++ {
			if off[i] <= limit {
				nearX, nearY = append(nearX, xs[i]), append(nearY, ys[i])
			} else {
				out = append(out, i)
			}
		}
		if near = leastSquares(nearX, nearY); near == nil {
			near, nearX, nearY, out = all, xs, ys, nil
		}
		for i := range xs {
			off[i] = math.Abs(ys[i] - near.At(xs[i]))
		}
	}
	if near.Significant() {
		if s, t := cut(nearX, nearY, leastLevel); s != nil && t > 2*math.Abs(near.B)/near.SE {
			near = leveled(nearX, nearY, s.At)
		}
	}
	near.Out = out
	return near
}

// farFrom returns the largest distance, in ns, of a point that is not an outlier: 3 MAD.
func farFrom(distances []float64) float64 {
	sd := 1.4826 * analyze.StatsOf(slices.Clone(distances)).Median
	if sd == 0 { // more than half of the times are equal, so use the mean distance
		for _, d := range distances {
			sd += 1.2533 * d / float64(len(distances))
		}
	}
	return max(3*sd, 1) // times are whole ns
}

// distances returns the distance of each point from a first line, in ns. The slope of this line is the median
// of the slopes between points that are half of the points apart (Theil's incomplete method). Up to a quarter
// of the points can be far off, at one end too, and hardly tilt it.
func distances(xs, ys []float64) []float64 {
	half := len(xs) / 2
	var slopes []float64
	for i, x := range xs[half:] {
		if x != xs[i] {
			slopes = append(slopes, (ys[half+i]-ys[i])/(x-xs[i]))
		}
	}
	slope := analyze.StatsOf(slopes).Median
	off := make([]float64, len(xs))
	for i := range xs {
		off[i] = ys[i] - slope*xs[i]
	}
	middle := analyze.StatsOf(slices.Clone(off)).Median
	for i := range off {
		off[i] = math.Abs(off[i] - middle)
	}
	return off
}

// leveled returns the least-squares fit of two parallel lines: one through the points before a place, one
// through the others. Both parts must have points.
func leveled(xs, ys []float64, at float64) *Fit {
	n := 0
	for n < len(xs) && xs[n] < at {
		n++
	}
	mean := func(v []float64) float64 {
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		return sum / float64(len(v))
	}
	x1, y1, x2, y2 := mean(xs[:n]), mean(ys[:n]), mean(xs[n:]), mean(ys[n:])
	var xx, xy, rest float64
	center := func(i int) (x, y float64) {
		if i < n {
			return xs[i] - x1, ys[i] - y1
		}
		return xs[i] - x2, ys[i] - y2
	}
	for i := range xs {
		x, y := center(i)
		xx, xy = xx+x*x, xy+x*y
	}
	f := &Fit{N: len(xs), First: slices.Min(xs), Last: slices.Max(xs)}
	if xx > 0 {
		f.B = xy / xx
	}
	for i := range xs {
		x, y := center(i)
		rest += (y - f.B*x) * (y - f.B*x)
	}
	variance := rest / float64(max(1, len(xs)-3))
	if xx > 0 {
		f.SE = math.Sqrt(variance / xx)
	}
	f.A = y1 - f.B*x1
	f.Level = &Shift{At: at, NS: y2 - y1 - f.B*(x2-x1)}
	f.Level.SE = math.Sqrt(variance * (1/float64(n) + 1/float64(len(xs)-n)))
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

// leastPart is the smallest number of points on each side of a shift. leastLevel is this number for a shift
// that replaces a significant slope: such a shift must also explain the times much better than the slope.
const leastPart, leastLevel = 8, 3

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
	var found []Shift
	var search func(from, to, depth int)
	divide := func(from, to, depth int, place float64) {
		at := from
		for at < to && xs[at] < place {
			at++
		}
		search(from, at, depth-1)
		search(at, to, depth-1)
	}
	search = func(from, to, depth int) {
		s, t := cut(xs[from:to], rest[from:to], leastPart)
		if s == nil || t < 6 || depth == 0 {
			return
		}
		found = append(found, *s)
		divide(from, to, depth, s.At)
	}
	if f.Level != nil { // the distances from the line do not contain this change
		found = append(found, *f.Level)
		divide(0, len(xs), 3, f.Level.At)
	} else {
		search(0, len(xs), 3)
	}
	slices.SortFunc(found, func(a, b Shift) int { return int(math.Copysign(1, a.At-b.At)) })
	return found
}

// cut finds the place that divides the points most clearly into two levels. The second result is the
// difference between the levels divided by the standard error of the difference. The Shift is nil if there
// are too few points for `least` points on each side.
func cut(xs, ys []float64, least int) (*Shift, float64) {
	n := len(ys)
	if n < 2*least {
		return nil, 0
	}
	var sum, squares float64
	for _, y := range ys {
		sum, squares = sum+y, squares+y*y
	}
	var best *Shift
	var most, left, leftSquares float64
	for i, y := range ys[:n-least] {
		left, leftSquares = left+y, leftSquares+y*y
		k := i + 1
		if k < least || xs[k] == xs[i] {
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
