// Package ranking decides whether costs were measured long enough to say which rows of a step to fix first. A
// session uses it to end a measurement early, so it depends on nothing but package trace.
package ranking

import (
	"cmp"
	"math"
	"slices"

	"gpuscope/trace"
)

const (
	// Top is the number of rows whose order matters.
	Top = 3
	// Fewest is the number of rounds that every row needs before the order can be decided. From about this
	// number on, the quartiles of the rounds give a good estimate of the error of a cost.
	Fewest = 16
	// Interesting is the smallest interesting difference between two potential savings, as a fraction of the
	// GPU time of the step. A user does not care which of two rows that are closer than this comes first.
	Interesting = 0.01
)

// Decided reports whether the order of the first Top rows by potential saving is known, so that more rounds
// would not change what to fix first. It compares each of these rows with each row after it. The order of two
// rows is known if their savings differ by more than the combined error. The order does not matter if their
// savings are known to differ by at most Interesting. For the same reasons, each of the first rows must be
// known to save something, or to save at most Interesting.
//
// `costs` are the costs of `parts`, in the same order. Only parts with Rival set count. If one of them has
// fewer than Fewest rounds, Decided returns false.
func Decided(whole trace.Whole, parts []trace.Part, costs []trace.Cost) bool {
	rows := []row{{}} // the zero row is compared too: it saves nothing, and has no error
	for i := range costs {
		if !parts[i].Rival {
			continue
		}
		off, ok := errorNS(&costs[i])
		if !ok {
			return false
		}
		rows = append(rows, row{max(0, float64(costs[i].NS-parts[i].LeastNS)), off})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.saving, a.saving) })
	same := Interesting * float64(whole.NS)
	for i := range min(Top, len(rows)) {
		for _, next := range rows[i+1:] {
			apart, off := rows[i].saving-next.saving, math.Hypot(rows[i].off, next.off)
			if apart <= off && apart+off > same {
				return false
			}
		}
	}
	return len(rows) > 1
}

// row is the potential saving of a row and its error, in ns.
type row struct{ saving, off float64 }

// errorNS returns the error of a cost as an estimate of the true cost, in ns: about 90 % of such estimates
// are within their error. Unlike the ± on the screen, which describes how much the rounds vary, this error
// shrinks with every round. The bool is false if there are fewer than Fewest rounds.
func errorNS(c *trace.Cost) (ns float64, ok bool) {
	off, known := c.OffNS.NS()
	if !known || c.N < Fewest {
		return 0, false
	}
	// The half-width of the 90 % confidence interval of the median of n normally distributed samples with
	// standard deviation s is 1.645 × 1.253 × s / √n, and s is their interquartile range / 1.349.
	const perIQR = 1.645 * 1.253 / 1.349
	return min(float64(off), perIQR*float64(c.Q3NS-c.Q1NS)/math.Sqrt(float64(c.N))), true
}
