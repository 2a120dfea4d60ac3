package engine

import (
	"fmt"
	"math"
	"math/big"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// clock relates the GPU's ticks to the host's nanoseconds. No WebGPU call gives the period of a tick, and
// neither clock is true to the other for long. What is certain are readings: ticks that came between two host
// times. Two readings at the start give a first range for the period. From then on every timed step is one:
// its first tick came after its submit, its last before the wait for it ended. So the clock holds a bracket
// of host times for the latest tick, moves it along from step to step, and cuts it with what each step says;
// and brackets of some time ago give the range of the period. Nothing is fitted: both are bounds, and so is
// the error that is told.
type clock struct {
	scale   timeScale
	stamps  gpu.Timestamps
	started time.Time
	quantum uint64 // gcd of all deltas of ticks seen
	samples int

	period timeRange // of a tick
	given  bool      // by the driver
	now    bracket
	past   []bracket // some of those before, oldest first
}

// timeScale turns ticks into host nanoseconds.
type timeScale struct {
	nsPerTick float64 // 0: not known
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

func newClock(dev gpu.Device, stamps int) (*clock, error) {
	t, err := dev.NewTimestamps(max(stamps, 2))
	if err != nil {
		return nil, fmt.Errorf("timestamps: %w", err)
	}
	c := &clock{stamps: t, started: time.Now(), past: make([]bracket, 0, 16)}
	if err := c.calibrate(dev); err != nil {
		t.Release()
		return nil, fmt.Errorf("calibrate the GPU clock: %w", err)
	}
	return c, nil
}

// Release frees the timestamps.
func (c *clock) Release() { c.stamps.Release() }

// sinceStart is a host time as the clock counts them.
func (c *clock) sinceStart(t time.Time) int64 { return t.Sub(c.started).Nanoseconds() }

// reading is two GPU times, or one, that came between two host times, in ns since the clock was started.
type reading struct {
	first, last   uint64
	before, after int64
}

func (r reading) width() float64 { return float64(r.after - r.before) }

func (c *clock) read(dev gpu.Device) (reading, error) {
	best := reading{after: math.MaxInt64 / 2}
	for range 3 { // the narrowest of three: the first may meet a sleeping GPU
		var r reading
		r.before = c.sinceStart(time.Now())
		enc, err := dev.Begin("calibrate")
		if err != nil {
			return r, err
		}
		if err := enc.Timestamp(c.stamps, 0); err != nil {
			enc.Discard()
			return r, err
		}
		if err := enc.Resolve(c.stamps, 1); err != nil {
			enc.Discard()
			return r, err
		}
		if err := enc.Submit(); err != nil {
			return r, err
		}
		if err := dev.Wait(); err != nil {
			return r, err
		}
		r.after = c.sinceStart(time.Now())
		var tick [1]uint64
		if err := c.stamps.Read(tick[:]); err != nil {
			return r, err
		}
		r.first, r.last = tick[0], tick[0]
		if r.width() < best.width() {
			best = r
		}
	}
	return best, nil
}

func (c *clock) calibrate(dev gpu.Device) error {
	a, err := c.read(dev)
	if err != nil {
		return err
	}
	if p := dev.Info().NSPerTick; p > 0 {
		c.period, c.given = timeRange{p, p}, true
		c.take(a)
		return nil
	}
	for gap := calibrationGap; ; gap *= 2 {
		time.Sleep(gap)
		b, err := c.read(dev)
		if err != nil {
			return err
		}
		if b.last <= a.last {
			return nil // not a clock: the trace has raw ticks only
		}
		ticks := float64(b.last - a.last)
		c.period = timeRange{max(0, float64(b.before-a.after)) / ticks, float64(b.after-a.before) / ticks}
		if c.period.width() < c.period.mid()/5 || gap >= longestGap {
			c.take(a)
			c.take(b)
			return nil
		}
	}
}

// take cuts what is known with a reading.
func (c *clock) take(r reading) {
	if r.last < r.first || c.period.hi == 0 {
		return
	}
	c.samples++
	span := float64(r.last - r.first)
	own := bracket{r.last, timeRange{float64(r.before) + span*c.period.lo*(1-drift), float64(r.after)}}
	if own.lo > own.hi { // more ticks than the host had time for: not one clock
		own.lo, own.hi = own.hi, own.lo
	}
	moved := c.moved(r.last)
	cut := bracket{r.last, timeRange{max(own.lo, moved.lo), min(own.hi, moved.hi)}}
	if len(c.past) == 0 || r.first < c.now.tick || cut.lo > cut.hi {
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
	c.scale = timeScale{ns, r.last, int64(math.Round(c.now.mid())), c.now.width()/2 + span*off + 1}
}

// moved is the bracket of a later tick, from the one that is known.
func (c *clock) moved(tick uint64) bracket {
	ticks := float64(tick - c.now.tick)
	return bracket{tick, timeRange{
		c.now.lo + ticks*c.period.lo*(1-drift), c.now.hi + ticks*c.period.hi*(1+drift),
	}}
}

// learnPeriod takes the range of the period from brackets that are some time apart, where it is narrower than
// what is known or shows that to be wrong.
func (c *clock) learnPeriod() {
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

// known says whether ticks can be told in nanoseconds.
func (t *timeScale) known() bool { return t.nsPerTick > 0 }

// duration is the time between two ticks.
func (t *timeScale) duration(begin, end uint64) trace.Time {
	if !t.known() || end < begin {
		return trace.Time{}
	}
	return trace.Measured(int64(math.Round(float64(end-begin) * t.nsPerTick)))
}

// instant is a tick on the host's axis.
func (t *timeScale) instant(tick uint64) trace.Time {
	if !t.known() {
		return trace.Time{}
	}
	ticks := float64(int64(tick - t.tick)) // a difference: large ticks have no room in a float
	return trace.Measured(t.hostNS + int64(math.Round(ticks*t.nsPerTick)))
}

// offset is the host time of tick 0.
func (t *timeScale) offset() int64 {
	const enough = 192
	product := new(big.Float).SetPrec(enough).SetUint64(t.tick)
	product.Mul(product, big.NewFloat(t.nsPerTick))
	ns, _ := product.Int64()
	return t.hostNS - ns
}

// see takes the lengths of a step's dispatches into the quantum.
func (c *clock) see(ticks []uint64) {
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

func (c *clock) trace() trace.Clock {
	if !c.scale.known() {
		return trace.Clock{}
	}
	return trace.Clock{
		NSPerTick: c.scale.nsPerTick, OffsetNS: trace.Measured(c.scale.offset()),
		ErrorNS:   trace.Measured(int64(math.Ceil(c.scale.errorNS))),
		QuantumNS: float64(c.quantum) * c.scale.nsPerTick, Samples: c.samples,
	}
}
