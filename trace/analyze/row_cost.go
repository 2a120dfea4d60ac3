package analyze

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"gpuscope/trace"
)

// RowCost is what a row costs a step.
type RowCost struct {
	*trace.Cost
	// LeastNS is what its bytes and FLOPs take at measured rates, modelled. Floor reports whether there are
	// such rates.
	LeastNS float64
	Floor   bool
	Share   float64 // of the whole step; 0 where that was not measured
	// ErrorNS is what it may be off by, as costSpread has it. Spread reports whether that is known.
	ErrorNS    float64
	ErrorKnown bool
	// Mark stands before a cost that is not significant, or in its place, wherever it is shown, and Doubt
	// says why it is none. By such a cost nothing is named, drawn as a share or coloured.
	Mark, Doubt string
}

// The marks of costs that are no figures.
const (
	MarkNone    = "=" // it is within its ±, or what the clock can tell: not different from 0
	MarkUnknown = "?" // what it may be off by is not known, and it is not shown
)

// Significant reports that the cost is a figure: more or less than zero by more than it may be off by.
func (c *RowCost) Significant() bool { return c.Mark == "" }

// Few reports that the cost is of too few rounds to say what it may be off by.
func (c *RowCost) Few() bool { _, known := costError(c.Cost); return !known }

// IsZero reports that the cost is not different from 0.
func (c *RowCost) IsZero() bool { return c.Mark == MarkNone }

// judge is the one rule by which costs are told from noise. What is left out of a step takes no more than the
// whole step: a run that took so much longer or shorter was held up, and says nothing.
func (c *RowCost) judge(w *trace.Whole, t *trace.Trace) {
	c.ErrorNS, c.ErrorKnown = costError(c.Cost)
	switch ns := math.Abs(float64(c.NS)); {
	case !c.ErrorKnown:
		c.Mark, c.Doubt = MarkUnknown, OfRounds(c.N)+": error not known yet"
	case w != nil && w.NS > 0 && ns > float64(w.NS):
		c.Mark, c.Doubt = MarkUnknown, "more than the whole step: the run was disturbed"
		c.ErrorKnown = false
	case ns <= max(c.ErrorNS, resolutionNS(t)):
		c.Mark, c.Doubt = MarkNone, "not significant"
	}
}

// SaveNS is what is left of the cost over what the device can do the row's work in, and never below 0: in a
// row that takes no longer, or costs nothing that can be told, there is nothing to save. False where that is
// not known.
func (c *RowCost) SaveNS() (ns float64, ok bool) {
	if c.IsZero() {
		return 0, c.Floor
	}
	return max(0, float64(c.NS)-c.LeastNS), c.Floor && c.Significant()
}

// CostText is the cost in words, with what it may be off by and of how many rounds:
// "177.6 µs a step ± 9.0 (n=30)", "? 1 of 5 rounds, too few for a ±".
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

// Marked is a text with the mark before it of a cost that is not significant; of one of which nothing is
// known there is the mark alone.
func (c *RowCost) Marked(text string) string {
	if !c.ErrorKnown {
		return MarkUnknown
	}
	return strings.TrimSpace(c.Mark + " " + text)
}

// Short is the cost in few words: "178 µs", "= 4 µs".
func (c *RowCost) Short() string { return c.Marked(fmt.Sprintf("%.0f µs", float64(c.NS)/1e3)) }

// manyRounds have quartiles that say what a cost may be off by, which more rounds do not make smaller.
const manyRounds = 16

// OfRounds says how many rounds there are of those that tell what a cost may be off by: "1 of 5 rounds".
func OfRounds(n int) string {
	of := trace.FewestWithin
	if n >= of { // of a trace of before
		of = manyRounds
	}
	return fmt.Sprintf("%d of %d rounds", n, of)
}

// costError is what a cost may be off by, as the trace has it. One of before traces had it is known by the
// quartiles of many rounds.
func costError(c *trace.Cost) (ns float64, ok bool) {
	if off, ok := c.OffNS.NS(); ok {
		return float64(off), true
	}
	return float64(c.Q3NS-c.Q1NS) / 2, c.N >= manyRounds
}

// worth is what there is to save, and where that is not known the cost, which is the most there is; and which
// of them it is.
func (c *RowCost) worth() (ns float64, what string) {
	if save, ok := c.SaveNS(); ok {
		return save, "~save"
	}
	return float64(c.NS), "cost"
}

// CompareCosts orders rows by what there is to save in them, falling: first those whose cost is above 0 by
// more than it may be off by, then those within that, then those below 0, and last those of which it is not
// known, or that have none.
func CompareCosts(a, b *RowCost) int {
	if c := cmp.Compare(a.class(), b.class()); c != 0 || !a.Known() {
		return c
	}
	x, _ := a.worth()
	y, _ := b.worth()
	return cmp.Compare(y, x)
}

// class is the place of a cost among others, whatever its size.
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

// Known reports that there is a cost of which it is known what it may be off by.
func (c *RowCost) Known() bool { return c != nil && c.ErrorKnown }

// Short writes ns as µs with as many digits as a measured difference has.
func Short(ns float64) string {
	us := ns / 1e3
	if us > -10 && us < 10 {
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}
