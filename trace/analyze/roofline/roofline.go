// Package roofline compares the kernels of a run with the ceilings of the device. In the roofline model the
// arithmetic intensity of a kernel, in FLOPs per byte, decides which of two ceilings limits it: the copy
// bandwidth or the FLOP rate.
//
// Bytes and FLOPs come from plans. Times are isolated times, from which the overhead of timing is subtracted.
// Ceilings were measured on the device.
package roofline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Reason says why a trace has no roofline.
type Reason int

// The reasons.
const (
	NoDevice   Reason = iota // the steps were only planned
	Software                 // the device is software, whose rates say nothing about a GPU
	NoCeilings               // the ceilings of the device were not measured
	NoTimes                  // no step has times of its dispatches
)

// Refusal is the error for a trace without a roofline.
type Refusal struct {
	Why    Reason
	Device string
}

func (e *Refusal) Error() string {
	device := printable.Short(e.Device, 60)
	switch e.Why {
	case NoDevice:
		return "roofline: the steps were planned without a device, so no rate was measured. Record a run on a GPU"
	case Software:
		return fmt.Sprintf("roofline: %s is a software device, whose rates say nothing about a GPU. Record a run "+
			"on a GPU", device)
	case NoCeilings:
		return fmt.Sprintf("roofline: the ceilings of %s were not measured. Run gpuscope devices --measure, then "+
			"record the run again", device)
	}
	return "roofline: no dispatch was timed. Record with --profile alone, --profile both or --timing dispatch"
}

// Roofline holds the points of all kernels, for each phase.
type Roofline struct {
	FlopsPerS float64 // measured FLOP rate of the device; 0 if not known
	Phases    []Phase // phases with timed steps, prefill first
}

// Phase is the roofline of the timed steps of one phase.
type Phase struct {
	Phase trace.Phase
	Steps int // number of timed steps
	// SetBytes is the modelled number of bytes that a step moves: the working set. BytesPerS is the measured
	// copy bandwidth for a working set of this size.
	SetBytes, BytesPerS float64
	Points              []Point // in the order of their time, longest first
	// Excluded is the number of dispatches that are in no point: the first of each step, whose time includes
	// waiting, and dispatches without bytes and FLOPs.
	Excluded int
}

// Point is a kernel: all of its timed dispatches in the steps of a phase, except the first dispatch of each
// step.
type Point struct {
	Kernel     string
	Dispatches int     // number of timed dispatches
	Bytes      float64 // modelled, of all these dispatches
	FLOPs      float64
	NS         float64 // isolated time of all these dispatches without the overhead of timing
	// AtFloor reports that the dispatches take about as long as an empty timed pass. Their time says little
	// about them, so the rates are 0.
	AtFloor bool
	// BytesPerS and FlopsPerS are the modelled work divided by the measured time.
	BytesPerS, FlopsPerS float64
	// Bound is MemoryBound or ComputeBound, whichever ceiling is lower at the intensity of the kernel. It is
	// FloorBound if AtFloor is set. Share is the achieved fraction of this ceiling.
	Bound analyze.BoundKind
	Share float64
}

// Intensity returns the arithmetic intensity in FLOPs per byte. The bool is false if the kernel moves no
// bytes.
func (p *Point) Intensity() (flopsPerByte float64, ok bool) {
	if p.Bytes <= 0 {
		return 0, false
	}
	return p.FLOPs / p.Bytes, true
}

// Roof returns the highest FLOP rate that the ceilings allow at an arithmetic intensity. It returns 0 if no
// ceiling is known.
func (r *Roofline) Roof(p *Phase, intensity float64) float64 {
	memory := p.BytesPerS * intensity
	switch {
	case r.FlopsPerS <= 0:
		return memory
	case p.BytesPerS <= 0:
		return r.FlopsPerS
	}
	return min(memory, r.FlopsPerS)
}

// Ridge returns the arithmetic intensity at which both ceilings allow the same rate. It is 0 if one of them
// is not known.
func (r *Roofline) Ridge(p *Phase) float64 {
	if p.BytesPerS <= 0 {
		return 0
	}
	return r.FlopsPerS / p.BytesPerS
}

// Of returns the roofline of a trace. The error is a *Refusal if the trace has none.
func Of(ctx context.Context, x *analyze.Index) (*Roofline, error) {
	d := &x.Trace.Device
	switch {
	case d.None():
		return nil, &Refusal{NoDevice, d.Name}
	case d.Software():
		return nil, &Refusal{Software, d.Name}
	case d.Ceilings == nil, d.Ceilings.FlopsPerS <= 0 && len(d.Ceilings.CopyBytesPerS) == 0:
		return nil, &Refusal{NoCeilings, d.Name}
	}
	r := &Roofline{FlopsPerS: d.Ceilings.FlopsPerS}
	for _, phase := range trace.Phases {
		p, err := phaseOf(ctx, x, phase)
		if err != nil {
			return nil, err
		}
		if len(p.Points) > 0 {
			r.Phases = append(r.Phases, *p)
		}
	}
	if r.Phases == nil {
		return nil, &Refusal{NoTimes, d.Name}
	}
	return r, nil
}

func phaseOf(ctx context.Context, x *analyze.Index, phase trace.Phase) (*Phase, error) {
	t, p, at := x.Trace, &Phase{Phase: phase}, map[string]int{}
	timing := t.Device.TimingNS()
	for _, step := range x.Phase(phase).Steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s := &t.Steps[step]
		if !analyze.EachTimed(s) {
			continue
		}
		p.Steps++
		for i := range s.Dispatches {
			plan := &t.Plans[s.Dispatches[i].Plan]
			p.SetBytes += float64(plan.Bytes)
			ns, ok := analyze.MedianOf(&s.Dispatches[i])
			if !ok || i == 0 || plan.Bytes <= 0 && plan.FLOPs <= 0 {
				p.Excluded++
				continue
			}
			k, there := at[plan.Kernel]
			if !there {
				k = len(p.Points)
				at[plan.Kernel] = k
				p.Points = append(p.Points, Point{Kernel: plan.Kernel})
			}
			q := &p.Points[k]
			q.Dispatches++
			q.Bytes += float64(plan.Bytes)
			q.FLOPs += float64(plan.FLOPs)
			q.NS += ns
		}
	}
	if p.Steps == 0 {
		return p, nil
	}
	p.SetBytes /= float64(p.Steps)
	p.BytesPerS = t.Device.Ceilings.CopyAt(int64(p.SetBytes))
	for i := range p.Points {
		p.Points[i].rate(t.Device.Ceilings, timing, p)
	}
	slices.SortStableFunc(p.Points, func(a, b Point) int { return cmp.Compare(b.NS, a.NS) })
	return p, nil
}

// rate sets the rates and the bound of a point, and subtracts the overhead of timing from its time. `timing`
// is the overhead for one dispatch in ns.
func (q *Point) rate(c *trace.Ceilings, timing float64, p *Phase) {
	floor, known := c.TimedPassNS.NS()
	q.AtFloor = known && q.NS <= analyze.FloorFactor*float64(floor)*float64(q.Dispatches)
	q.NS -= timing * float64(q.Dispatches)
	if q.NS <= 0 {
		q.NS, q.AtFloor = 0, true
	}
	if q.AtFloor {
		q.Bound = analyze.FloorBound
		return
	}
	q.BytesPerS, q.FlopsPerS = q.Bytes*1e9/q.NS, q.FLOPs*1e9/q.NS
	switch memory, flops := c.Roofs(q.Bytes, q.FLOPs, p.SetBytes); {
	case memory > 0 && memory >= flops:
		q.Bound, q.Share = analyze.MemoryBound, memory/q.NS
	case flops > 0:
		q.Bound, q.Share = analyze.ComputeBound, flops/q.NS
	}
}
