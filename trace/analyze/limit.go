package analyze

import (
	"fmt"

	"gpuscope/trace"
)

// FloorFactor: a dispatch within this factor of a timed empty pass has no time of its own that could be
// judged.
const FloorFactor = 1.3

// LimitKind says what keeps a dispatch from being faster.
type LimitKind int

// The kinds of limits.
const (
	NoLimit    LimitKind = iota // not measured, or nothing to compare with
	FirstLimit                  // the first dispatch of a step absorbs what came before
	FloorLimit                  // within 1.3 times of a timed empty pass
	FillLimit                   // fewer workgroups than fill the device
	MemLimit
	FPLimit
)

// Limit is how far a dispatch is from what the device can do. It is modelled from bytes, FLOPs and measured
// ceilings.
type Limit struct {
	Kind       LimitKind
	Workgroups int64   // of FillLimit
	Share      float64 // of the copy rate or the FLOP rate
	// BytesPerS and FlopsPerS are modelled work over the time without what timing adds; 0 where there is
	// none, or at the floor.
	BytesPerS, FlopsPerS float64
	LostNS               float64 // time over what the device could do it in; 0 where that cannot be said
}

// String is the short text of the limit column.
func (l Limit) String() string {
	switch l.Kind {
	case FirstLimit:
		return "first"
	case FloorLimit:
		return "≈floor"
	case FillLimit:
		return fmt.Sprintf("%d wg", l.Workgroups)
	case MemLimit, FPLimit:
		name, over := "mem", " cached?"
		if l.Kind == FPLimit {
			name, over = "fp", " clock?"
		}
		if l.Share <= 1 {
			over = ""
		}
		return fmt.Sprintf("%s %.0f%%%s", name, 100*l.Share, over)
	}
	return ""
}

// atFloor says that a dispatch takes no longer than an empty timed pass.
func atFloor(d *trace.Device, t Spread) bool {
	if !t.Measured() || d.Software() || d.Ceilings == nil {
		return false
	}
	floor, measured := d.Ceilings.TimedPassNS.NS()
	return measured && t.Median <= FloorFactor*float64(floor)
}

// limitOf judges a dispatch. The device must be a GPU with measured ceilings, and the dispatch timed alone.
func limitOf(d *trace.Device, w *Launch, t Spread, first bool) Limit {
	var l Limit
	if !t.Measured() || d.Software() || d.Ceilings == nil {
		return l
	}
	if first {
		l.Kind = FirstLimit
		return l
	}
	if atFloor(d, t) {
		l.Kind = FloorLimit
		return l
	}
	c := d.Ceilings
	floor, _ := c.TimedPassNS.NS()
	timing := d.TimingNS()
	work := t.Median - timing
	if work <= 0 {
		return l
	}
	l.BytesPerS, l.FlopsPerS = w.bytes*1e9/work, w.flops*1e9/work
	best := float64(floor)
	mem, fp := c.Roofs(w.bytes, w.flops, w.streamed)
	if roof := max(mem, fp); roof > 0 {
		best = max(best, timing+roof)
	}
	if best > 0 {
		l.LostNS = max(0, t.Median-best)
	}
	switch groups := Product(w.Most); {
	case groups < int64(c.FillWorkgroups):
		l.Kind, l.Workgroups = FillLimit, groups
	case mem > 0 && mem >= fp:
		l.Kind, l.Share = MemLimit, mem/work
	case fp > 0:
		l.Kind, l.Share = FPLimit, fp/work
	}
	return l
}
