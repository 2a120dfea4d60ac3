package measure

import (
	"fmt"
	"math"
	"math/big"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Clock relates the GPU's ticks to the host's nanoseconds. No WebGPU call gives the period of a tick, and
// neither clock is true to the other for long. What is certain are readings: ticks that came between two host
// times. Two readings at the start give a first range for the period. From then on every timed step is one:
// its first tick came after its submit, its last before the wait for it ended. So the clock holds a bracket
// of host times for the latest tick, moves it along from step to step, and cuts it with what each step says;
// and brackets of some time ago give the range of the period. Nothing is fitted: both are bounds, and so is
// the error that is told.
type Clock struct {
	Scale   TimeScale
	Stamps  gpu.Timestamps
	started time.Time
	quantum uint64 // gcd of all deltas of ticks seen
	samples int

	period timeRange // of a tick
	given  bool      // by the driver
	now    bracket
	past   []bracket // some of those before, oldest first
}

// TimeScale turns ticks into host nanoseconds.
type TimeScale struct {
	NsPerTick float64 // 0: not known
	tick      uint64  // that came at hostNS, as the clock has been running
	hostNS    int64
	errorNS   float64 // of the instants of the last step
}

// timeRange is a range of ns.
type timeRange struct{ lo, hi float64 }

func (r timeRange) mid() float64   { return (r.lo + r.hi) / 2 }
func (r timeRange) width() float64 { return r.hi - r.lo }

// bracket is the range of host times in which a tick came.
type bracket struct {
	tick uint64
	timeRange
}

// The two readings at the start are calibrationGap apart. Where readings are slow, as on a loaded software
// device, the gap is doubled, up to longestGap.
const (
	calibrationGap = 5 * time.Millisecond
	longestGap     = 80 * time.Millisecond
)

const (
	// drift is by how much of itself a period may be another than it was: crystals warm up, and the host's
	// clock is slewed. One that moves more begins anew.
	drift = 50e-6
	// Brackets are kept pastEvery ns for the period, for pastFor ns.
	pastEvery = 8e9
	pastFor   = 64e9
)

func NewClock(dev gpu.Device, stamps int) (*Clock, error) {
	t, err := dev.NewTimestamps(max(stamps, 2))
	if err != nil {
		return nil, fmt.Errorf("timestamps: %w", err)
	}
	c := &Clock{Stamps: t, started: time.Now(), past: make([]bracket, 0, 16)}
	if err := c.calibrate(dev); err != nil {
		t.Release()
		return nil, fmt.Errorf("calibrate the GPU clock: %w", err)
	}
	return c, nil
}

// Release frees the timestamps.
func (c *Clock) Release() { c.Stamps.Release() }

// SinceStart is a host time as the clock counts them.
func (c *Clock) SinceStart(t time.Time) int64 { return t.Sub(c.started).Nanoseconds() }

// Reading is two GPU times, or one, that came between two host times, in ns since the clock was started.
type Reading struct {
	First, Last   uint64
	Before, After int64
}

func (r Reading) width() float64 { return float64(r.After - r.Before) }

func (c *Clock) read(dev gpu.Device) (Reading, error) {
	best := Reading{After: math.MaxInt64 / 2}
	for range 3 { // the narrowest of three: the first may meet a sleeping GPU
		var r Reading
		r.Before = c.SinceStart(time.Now())
		enc, err := dev.Begin("calibrate")
		if err != nil {
			return r, err
		}
		if err := enc.Timestamp(c.Stamps, 0); err != nil {
			enc.Discard()
			return r, err
		}
		if err := enc.Resolve(c.Stamps, 1); err != nil {
			enc.Discard()
			return r, err
		}
		if err := enc.Submit(); err != nil {
			return r, err
		}
		if err := dev.Wait(); err != nil {
			return r, err
		}
		r.After = c.SinceStart(time.Now())
		var tick [1]uint64
		if err := c.Stamps.Read(tick[:]); err != nil {
			return r, err
		}
		r.First, r.Last = tick[0], tick[0]
		if r.width() < best.width() {
			best = r
		}
	}
	return best, nil
}

func (c *Clock) calibrate(dev gpu.Device) error {
	a, err := c.read(dev)
	if err != nil {
		return err
	}
	if p := dev.Info().NSPerTick; p > 0 {
		c.period, c.given = timeRange{p, p}, true
		c.Take(a)
		return nil
	}
	for gap := calibrationGap; ; gap *= 2 {
		time.Sleep(gap)
		b, err := c.read(dev)
		if err != nil {
			return err
		}
		if b.Last <= a.Last {
			return nil // not a clock: the trace has raw ticks only
		}
		ticks := float64(b.Last - a.Last)
		c.period = timeRange{max(0, float64(b.Before-a.After)) / ticks, float64(b.After-a.Before) / ticks}
		if c.period.width() < c.period.mid()/5 || gap >= longestGap {
			c.Take(a)
			c.Take(b)
			return nil
		}
	}
}

// Take cuts what is known with a reading.
func (c *Clock) Take(r Reading) {
	if r.Last < r.First || c.period.hi == 0 {
		return
	}
	c.samples++
	span := float64(r.Last - r.First)
	own := bracket{r.Last, timeRange{float64(r.Before) + span*c.period.lo*(1-drift), float64(r.After)}}
	if own.lo > own.hi { // more ticks than the host had time for: not one clock
		own.lo, own.hi = own.hi, own.lo
	}
	moved := c.moved(r.Last)
	cut := bracket{r.Last, timeRange{max(own.lo, moved.lo), min(own.hi, moved.hi)}}
	if len(c.past) == 0 || r.First < c.now.tick || cut.lo > cut.hi {
		c.past, c.now = append(c.past[:0], own), own // it is another clock than it was
	} else {
		c.now = cut
		c.learnPeriod()
	}
	ns := c.period.mid()
	if c.period.lo*(1-drift) <= 1 && 1 <= c.period.hi*(1+drift) {
		ns = 1 // as most GPUs tick; the host's clock is no better
	}
	off := max(ns-c.period.lo*(1-drift), c.period.hi*(1+drift)-ns)
	c.Scale = TimeScale{ns, r.Last, int64(math.Round(c.now.mid())), c.now.width()/2 + span*off + 1}
}

// moved is the bracket of a later tick, from the one that is known.
func (c *Clock) moved(tick uint64) bracket {
	ticks := float64(tick - c.now.tick)
	return bracket{tick, timeRange{
		c.now.lo + ticks*c.period.lo*(1-drift), c.now.hi + ticks*c.period.hi*(1+drift),
	}}
}

// learnPeriod takes the range of the period from brackets that are some time apart, where it is narrower than
// what is known or shows that to be wrong.
func (c *Clock) learnPeriod() {
	p := timeRange{0, math.Inf(1)}
	for _, b := range c.past {
		if ticks := float64(c.now.tick - b.tick); ticks > 0 {
			p.lo, p.hi = max(p.lo, (c.now.lo-b.hi)/ticks), min(p.hi, (c.now.hi-b.lo)/ticks)
		}
	}
	wrong := p.lo > c.period.hi*(1+drift) || p.hi < c.period.lo*(1-drift)
	if !c.given && p.lo <= p.hi && (wrong || p.width() < c.period.width()) {
		c.period = p
	}
	if c.now.lo-c.past[len(c.past)-1].lo < pastEvery {
		return
	}
	for len(c.past) > 1 && c.now.lo-c.past[1].lo > pastFor || len(c.past) == cap(c.past) {
		c.past = c.past[:copy(c.past, c.past[1:])]
	}
	c.past = append(c.past, c.now)
}

// Known says whether ticks can be told in nanoseconds.
func (t *TimeScale) Known() bool { return t.NsPerTick > 0 }

// Duration is the time between two ticks.
func (t *TimeScale) Duration(begin, end uint64) trace.Time {
	if !t.Known() || end < begin {
		return trace.Time{}
	}
	return trace.Measured(int64(math.Round(float64(end-begin) * t.NsPerTick)))
}

// Instant is a tick on the host's axis.
func (t *TimeScale) Instant(tick uint64) trace.Time {
	if !t.Known() {
		return trace.Time{}
	}
	ticks := float64(int64(tick - t.tick)) // a difference: large ticks have no room in a float
	return trace.Measured(t.hostNS + int64(math.Round(ticks*t.NsPerTick)))
}

// offset is the host time of tick 0.
func (t *TimeScale) offset() int64 {
	const enough = 192
	product := new(big.Float).SetPrec(enough).SetUint64(t.tick)
	product.Mul(product, big.NewFloat(t.NsPerTick))
	ns, _ := product.Int64()
	return t.hostNS - ns
}

// See takes the lengths of a step's dispatches into the quantum.
func (c *Clock) See(ticks []uint64) {
	for i := 0; i+1 < len(ticks); i += 2 {
		if ticks[i+1] < ticks[i] {
			continue
		}
		a, b := c.quantum, ticks[i+1]-ticks[i]
		for b != 0 {
			a, b = b, a%b
		}
		c.quantum = a
	}
}

func (c *Clock) Describe() trace.Clock {
	if !c.Scale.Known() {
		return trace.Clock{}
	}
	return trace.Clock{
		NSPerTick: c.Scale.NsPerTick, OffsetNS: trace.Measured(c.Scale.offset()),
		ErrorNS:   trace.Measured(int64(math.Ceil(c.Scale.errorNS))),
		QuantumNS: float64(c.quantum) * c.Scale.NsPerTick, Samples: c.samples,
	}
}
