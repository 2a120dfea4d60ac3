package analyze

import (
	"fmt"

	"gpuscope/trace"
)

// FloorFactor decides which dispatches are at the floor: those that take less than FloorFactor times as long
// as an empty timed pass. The time of such a dispatch is mostly overhead and says little about the dispatch.
const FloorFactor = 1.3

// BoundKind is what keeps a dispatch from being faster.
type BoundKind int

// The kinds of bounds.
const (
	NotBound   BoundKind = iota // not measured, or no measured ceiling to compare with
	FirstBound                  // first dispatch of a step, whose time includes waiting for earlier work
	FloorBound                  // takes less than FloorFactor times as long as an empty timed pass
	FillBound                   // fewer workgroups than are needed to fill the device
	MemoryBound
	ComputeBound
)

// Bound is what keeps a dispatch from being faster, and how close the dispatch comes to that limit. A Bound
// is computed from modelled bytes and FLOPs, the measured time, and the measured ceilings of the device.
type Bound struct {
	Kind       BoundKind
	Workgroups int64   // number of launched workgroups, only if Kind is FillBound
	Share      float64 // fraction of the copy rate or of the FLOP rate
	// BytesPerS and FlopsPerS are the modelled bytes and FLOPs divided by the measured time, from which the
	// timing overhead is subtracted. A rate is 0 if the dispatch has no bytes or no FLOPs, or if it is at the
	// floor.
	BytesPerS, FlopsPerS float64
	ExcessNS             float64 // measured time minus the shortest possible time; 0 if not known
}

// String returns the short text for the column "limit".
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

// atFloor reports whether a dispatch is at the floor (see FloorFactor).
func atFloor(d *trace.Device, t Stats) bool {
	if !t.Measured() || d.Software() || d.Ceilings == nil {
		return false
	}
	floor, measured := d.Ceilings.TimedPassNS.NS()
	return measured && t.Median <= FloorFactor*float64(floor)
}

// boundOf returns the bound of a dispatch. The bound is NotBound unless the device is a GPU with measured
// ceilings and the dispatch was timed in isolation.
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
