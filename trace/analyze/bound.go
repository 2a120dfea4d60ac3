package analyze

import (
	"fmt"

	"gpuscope/trace"
)

// FloorFactor: a dispatch within this factor of a timed empty pass has no time of its own that could be
// judged.
const FloorFactor = 1.3

// BoundKind is a reason why a dispatch is not faster.
type BoundKind int

// The kinds of limits.
const (
	NotBound   BoundKind = iota // not measured, or nothing to compare with
	FirstBound                  // the first dispatch of a step absorbs what came before
	FloorBound                  // within 1.3 times of a timed empty pass
	FillBound                   // fewer workgroups than fill the device
	MemoryBound
	ComputeBound
)

// Bound is what keeps a dispatch from being faster, and how close it is to that. It is modelled from bytes,
// FLOPs and measured ceilings.
type Bound struct {
	Kind       BoundKind
	Workgroups int64   // of FillLimit
	Share      float64 // of the copy rate or the FLOP rate
	// BytesPerS and FlopsPerS are modelled work over the time without what timing adds; 0 where there is
	// none, or at the floor.
	BytesPerS, FlopsPerS float64
	ExcessNS             float64 // time over what the device could do it in; 0 where that cannot be said
}

// String is the short text of the limit column.
func (l Bound) String() string {
	switch l.Kind {
	case FirstBound:
		return "first"
	case FloorBound:
		return "≈floor"
	case FillBound:
		return fmt.Sprintf("%d wg", l.Workgroups)
	case MemoryBound, ComputeBound:
		name, over := "mem", " cached?"
		if l.Kind == ComputeBound {
			name, over = "fp", " clock?"
		}
		if l.Share <= 1 {
			over = ""
		}
		return fmt.Sprintf("%s %.0f%%%s", name, 100*l.Share, over)
	}
	return ""
}

// atFloor reports that a dispatch takes no longer than an empty timed pass.
func atFloor(d *trace.Device, t Stats) bool {
	if !t.Measured() || d.Software() || d.Ceilings == nil {
		return false
	}
	floor, measured := d.Ceilings.TimedPassNS.NS()
	return measured && t.Median <= FloorFactor*float64(floor)
}

// boundOf judges a dispatch. The device must be a GPU with measured ceilings, and the dispatch timed in
// isolation.
func boundOf(d *trace.Device, w *Launch, t Stats, first bool) Bound {
	var l Bound
	if !t.Measured() || d.Software() || d.Ceilings == nil {
		return l
	}
	if first {
		l.Kind = FirstBound
		return l
	}
	if atFloor(d, t) {
		l.Kind = FloorBound
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
		l.ExcessNS = max(0, t.Median-best)
	}
	switch groups := Product(w.Most); {
	case groups < int64(c.FillWorkgroups):
		l.Kind, l.Workgroups = FillBound, groups
	case mem > 0 && mem >= fp:
		l.Kind, l.Share = MemoryBound, mem/work
	case fp > 0:
		l.Kind, l.Share = ComputeBound, fp/work
	}
	return l
}
