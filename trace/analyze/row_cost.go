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
	// LeastNS is the modelled time of the row's bytes and FLOPs at the measured ceilings. Floor reports
	// whether ceilings were measured.
	LeastNS float64
	Floor   bool
	Share   float64 // fraction of the whole step; 0 if that was not measured
	// ErrorNS is the uncertainty (±) of the cost, from costError. ErrorKnown reports whether it is known.
	ErrorNS    float64
	ErrorKnown bool
	// Mark is shown before a cost that is not significant, or instead of it. Doubt explains why the cost is
	// not significant. A cost with a mark is never named in a summary, drawn as a share or coloured.
	Mark, Doubt string
}

// Marks of costs that are not significant.
const (
	MarkNone    = "=" // the cost is within its error or the timer resolution, so not different from 0
	MarkUnknown = "?" // the error is not known, and the cost is not shown
)

// Significant reports whether the cost differs from zero by more than its error.
func (c *RowCost) Significant() bool { return c.Mark == "" }

// Few reports whether the cost has too few rounds to know its error.
func (c *RowCost) Few() bool { _, known := costError(c.Cost); return !known }

// IsZero reports whether the cost is not significantly different from 0.
func (c *RowCost) IsZero() bool { return c.Mark == MarkNone }

// judge is the only rule that separates costs from noise. Skipping a part cannot save more than the whole
// step takes. A larger difference means that the run was disturbed, so the cost is unknown.
func (c *RowCost) judge(w *trace.Whole, t *trace.Trace) {
	c.ErrorNS, c.ErrorKnown = costError(c.Cost)
	switch ns := math.Abs(float64(c.NS)); {
	case !c.ErrorKnown:
		c.Mark, c.Doubt = MarkUnknown, OfRounds(c.N)+": error not known yet"
	case w != nil && w.NS > 0 && ns > float64(w.NS):
		c.Mark, c.Doubt = MarkUnknown, "cost exceeds the time of the whole step: the run was disturbed"
		c.ErrorKnown = false
	case ns <= max(c.ErrorNS, resolutionNS(t)):
		c.Mark, c.Doubt = MarkNone, "not significant"
	}
}

// SaveNS returns the potential saving: the cost minus the time in which the device could do the row's work.
// The result is at least 0. A row whose cost is not different from 0 has no potential saving. SaveNS returns
// false if the saving is not known.
func (c *RowCost) SaveNS() (ns float64, ok bool) {
	if c.IsZero() {
		return 0, c.Floor
	}
	return max(0, float64(c.NS)-c.LeastNS), c.Floor && c.Significant()
}

// CostText describes the cost with its error and its number of rounds: "177.6 µs a step ± 9.0 (n=30)", "? 1
// of 5 rounds: error not known yet".
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

// Marked puts the mark before a text if the cost is not significant. If the error is not known, Marked
// returns the mark alone.
func (c *RowCost) Marked(text string) string {
	if !c.ErrorKnown {
		return MarkUnknown
	}
	return strings.TrimSpace(c.Mark + " " + text)
}

// Short returns the cost in few words: "178 µs", "= 4 µs".
func (c *RowCost) Short() string { return c.Marked(fmt.Sprintf("%.0f µs", float64(c.NS)/1e3)) }

// manyRounds is the number of rounds that suffice to estimate the error of a cost from quartiles. Further
// rounds do not reduce the error.
const manyRounds = 16

// OfRounds returns the number of rounds and the number needed to know the error of a cost: "1 of 5 rounds".
func OfRounds(n int) string {
	of := trace.FewestWithin
	if n >= of { // costs in older traces need more rounds
		of = manyRounds
	}
	return fmt.Sprintf("%d of %d rounds", n, of)
}

// costError returns the uncertainty (±) of a cost in ns, and whether it is known. Older traces do not record
// it. For them it is half the interquartile range, and is known only after many rounds.
func costError(c *trace.Cost) (ns float64, ok bool) {
	if off, ok := c.OffNS.NS(); ok {
		return float64(off), true
	}
	return float64(c.Q3NS-c.Q1NS) / 2, c.N >= manyRounds
}

// worth returns the potential saving of a row. If the saving is not known, worth returns the cost of the row,
// which is an upper limit of the saving. The result what is the name of the returned figure.
func (c *RowCost) worth() (ns float64, what string) {
	if save, ok := c.SaveNS(); ok {
		return save, "~save"
	}
	return float64(c.NS), "cost"
}

// CompareCosts orders rows by potential saving, largest first. Rows with a cost significantly above 0 come
// first, then rows with a cost not different from 0, then rows with a cost below 0. Rows without a known
// cost come last.
func CompareCosts(a, b *RowCost) int {
	if c := cmp.Compare(a.class(), b.class()); c != 0 || !a.Known() {
		return c
	}
	x, _ := a.worth()
	y, _ := b.worth()
	return cmp.Compare(y, x)
}

// class returns the rank of a cost's class, independent of the size of the cost. Lower classes come first.
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

// Short formats ns as µs, with the number of digits that a measured difference supports.
func Short(ns float64) string {
	us := ns / 1e3
	if us > -10 && us < 10 {
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}
