package analyze

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"gpuscope/trace"
)

// RowCost is the cost of a row: the time that the step saves when the row is skipped.
type RowCost struct {
	*trace.Cost
	// LeastNS is the shortest time for the row's modelled bytes and FLOPs at the measured ceilings. Floor is
	// false if no ceilings were measured.
	LeastNS float64
	Floor   bool
	Share   float64 // cost as a fraction of the whole step; 0 if not known
	// ErrorNS is the uncertainty (±) of the cost as costError computes it. ErrorKnown is false if it is not
	// known.
	ErrorNS    float64
	ErrorKnown bool
	// Mark is empty if the cost is significant. Otherwise the views show Mark before the cost or instead of
	// the cost, and Doubt says why the cost is not significant. A cost with a mark does not appear in a
	// summary, is not drawn as a share, and has no color.
	Mark, Doubt string
}

// These are the marks of costs that are not significant.
const (
	MarkNone    = "=" // not different from 0: within the error or the timer resolution
	MarkUnknown = "?" // not known: the error is not known, so no cost is shown
)

// Significant reports whether the cost differs from zero by more than its error.
func (c *RowCost) Significant() bool { return c.Mark == "" }

// Few reports whether more rounds are needed before the error of the cost is known.
func (c *RowCost) Few() bool { _, known := costError(c.Cost); return !known }

// IsZero reports whether the cost is not significantly different from 0.
func (c *RowCost) IsZero() bool { return c.Mark == MarkNone }

// judge decides whether a cost is significant and sets the mark. No other code decides this. A cost cannot be
// larger than the time of the whole step. If a cost is larger, the run was disturbed, and the cost is marked
// as not known.
func (c *RowCost) judge(w *trace.Whole, t *trace.Trace) {
	c.ErrorNS, c.ErrorKnown = costError(c.Cost)
	switch ns := math.Abs(float64(c.NS)); {
	case !c.ErrorKnown:
		c.Mark, c.Doubt = MarkUnknown, OfRounds(c.N)+": error not known yet"
	case w != nil && w.NS > 0 && ns > float64(w.NS):
		c.Mark, c.Doubt = MarkUnknown, "larger than the whole step: the run was disturbed"
		c.ErrorKnown = false
	case ns <= max(c.ErrorNS, resolutionNS(t)):
		c.Mark, c.Doubt = MarkNone, "not significant"
	}
}

// SaveNS returns the potential saving in ns: the cost minus the shortest time in which the device could do
// the row's work, but at least 0. If the cost is not different from 0, the potential saving is 0. The bool is
// false if the potential saving is not known.
func (c *RowCost) SaveNS() (ns float64, ok bool) {
	if c.IsZero() {
		return 0, c.Floor
	}
	return max(0, float64(c.NS)-c.LeastNS), c.Floor && c.Significant()
}

// CostText returns the cost as text, with its error and its number of rounds: "177.6 µs a step ± 9.0 (n=30)".
// If the error is not known, the text is the reason: "? 1 of 5 rounds: error not known yet".
func (c *RowCost) CostText() string {
	if !c.ErrorKnown {
		return MarkUnknown + " " + c.Doubt
	}
	line := fmt.Sprintf("%.1f µs a step ± %s (n=%d)", float64(c.NS)/1e3, Short(c.ErrorNS), c.N)
	if !c.Significant() {
		line += ", " + c.Doubt
	}
	return line
}

// Marked returns the text with the mark before it. If the error of the cost is not known, it returns only the
// mark.
func (c *RowCost) Marked(text string) string {
	if !c.ErrorKnown {
		return MarkUnknown
	}
	return strings.TrimSpace(c.Mark + " " + text)
}

// Short returns the cost in few words: "178 µs", "= 4 µs".
func (c *RowCost) Short() string { return c.Marked(fmt.Sprintf("%.0f µs", float64(c.NS)/1e3)) }

// manyRounds is the number of rounds after which the quartiles give a good estimate of the error of a cost.
// More rounds do not make this error smaller.
const manyRounds = 16

// OfRounds returns a text such as "1 of 5 rounds": the number of rounds, and how many are needed before the
// error of a cost is known.
func OfRounds(n int) string {
	of := trace.FewestWithin
	if n >= of { // the cost has no error, so it is from an older trace: more rounds are needed
		of = manyRounds
	}
	return fmt.Sprintf("%d of %d rounds", n, of)
}

// costError returns the uncertainty (±) of a cost in ns. The bool is false if it is not known. Traces of
// older versions do not record the uncertainty. For such a trace, it is half the interquartile range, and
// only known after manyRounds rounds.
func costError(c *trace.Cost) (ns float64, ok bool) {
	if off, ok := c.OffNS.NS(); ok {
		return float64(off), true
	}
	return float64(c.Q3NS-c.Q1NS) / 2, c.N >= manyRounds
}

// worth returns the potential saving of a row in ns. If the potential saving is not known, worth returns the
// cost instead, which is an upper limit of the potential saving. `what` names the returned number: "~save" or
// "cost".
func (c *RowCost) worth() (ns float64, what string) {
	if save, ok := c.SaveNS(); ok {
		return save, "~save"
	}
	return float64(c.NS), "cost"
}

// CompareCosts is a sort order. Costs significantly above 0 come first, then those not different from 0, then
// those below 0, and unknown costs last. Costs of the same kind are sorted by potential saving, largest
// first.
func CompareCosts(a, b *RowCost) int {
	if c := cmp.Compare(a.class(), b.class()); c != 0 || !a.Known() {
		return c
	}
	x, _ := a.worth()
	y, _ := b.worth()
	return cmp.Compare(y, x)
}

// class returns the rank of a kind of cost in the order of CompareCosts. Costs of the same kind may have
// different sizes.
func (c *RowCost) class() int {
	switch {
	case !c.Known():
		return 3
	case c.IsZero():
		return 1
	case c.NS < 0:
		return 2
	}
	return 0
}

// Known reports whether there is a cost with a known error.
func (c *RowCost) Known() bool { return c != nil && c.ErrorKnown }

// Short returns ns as µs in digits. It has one decimal if the number is below 10, because a measured
// difference is not more precise.
func Short(ns float64) string {
	us := ns / 1e3
	if us > -10 && us < 10 {
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}
