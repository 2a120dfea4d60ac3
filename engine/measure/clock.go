package measure

import (
	"fmt"
	"math"
	"math/big"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Clock converts GPU timestamps, which are ticks, to host time in nanoseconds.
//
// No WebGPU call returns the period of a tick, and the GPU clock and the host clock drift apart. A Clock
// therefore learns from readings. A reading consists of two GPU ticks, and of two host times between which
// both ticks came. The first two readings yield a first range for the period of a tick. After that, every
// timed step yields a reading. The first tick of the reading came after the host submitted the step, and the
// last tick came before the host's wait for the step ended.
//
// The clock keeps a bracket: the range of host times in which the latest tick came. For each step, the clock
// extrapolates the bracket to the step's last tick. Then it narrows the bracket to the times that the step's
// reading allows too. The current bracket and some older ones yield bounds for the period of a tick. The
// clock never guesses by fitting a curve: the bracket, the period and the reported error are strict bounds.
type Clock struct {
	Scale   TimeScale
	Stamps  gpu.Timestamps
	started time.Time
	quantum uint64 // timer resolution in ticks: the greatest common divisor of all durations
	samples int    // number of readings

	shortest  uint64 // the shortest duration, in ticks
	durations int    // number of durations

	period timeRange // bounds for the period of a tick
	given  bool      // the driver reports the period
	now    bracket
	past   []bracket // some of the earlier brackets, oldest first
}

// TimeScale converts ticks to host time in nanoseconds.
type TimeScale struct {
	NsPerTick float64 // 0 if the period is unknown
	tick      uint64  // reference tick
	hostNS    int64   // host time of the reference tick, in ns since the start of the clock
	errorNS   float64 // maximum error of host times in the latest step
}

// timeRange is a range of times in ns.
type timeRange struct{ lo, hi float64 }

func (r timeRange) mid() float64   { return (r.lo + r.hi) / 2 }
func (r timeRange) width() float64 { return r.hi - r.lo }

// bracket is a GPU tick together with the range of host times in which it came.
type bracket struct {
	tick uint64
	timeRange
}

// calibrationGap is the time between the first two readings of a clock. On a loaded software device, for
// example, readings may take so long that they yield no good range for the period. The gap is then doubled,
// up to longestGap.
const (
	calibrationGap = 5 * time.Millisecond
	longestGap     = 80 * time.Millisecond
)

const (
	// drift is the maximum relative change of a tick's period that the bounds take into account. The period
	// changes because crystals warm up and because the operating system slews the host clock. If the period
	// changes by more than drift, the clock starts again from the latest reading.
	drift = 50e-6
	// The brackets that bound the period are saved every pastEvery ns and dropped after pastFor ns.
	pastEvery = 8e9
	pastFor   = 64e9
)

// NewClock creates a clock and calibrates it. The clock allocates at least `stamps` timestamp slots on the
// device. If the device's timestamps do not increase, the period of a tick stays unknown.
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

// Release frees the clock's timestamps on the device.
func (c *Clock) Release() { c.Stamps.Release() }

// SinceStart converts a host time to ns since the start of the clock.
func (c *Clock) SinceStart(t time.Time) int64 { return t.Sub(c.started).Nanoseconds() }

// Reading consists of two GPU ticks, and two host times between which both ticks came.
type Reading struct {
	First, Last   uint64 // equal if only one tick was read
	Before, After int64  // host times in ns since the start of the clock
}

func (r Reading) width() float64 { return float64(r.After - r.Before) }

func (c *Clock) read(dev gpu.Device) (Reading, error) {
	best := Reading{After: math.MaxInt64 / 2}
	for range 3 { // the narrowest of three readings is used, because the first one may wake a sleeping GPU
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
			return nil // the timestamps do not increase; traces then have raw ticks only
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

// Take narrows the clock's bounds with a reading and updates Scale. If the reading contradicts the bounds,
// the clock starts again from this reading.
func (c *Clock) Take(r Reading) {
	if r.Last < r.First || c.period.hi == 0 {
		return
	}
	c.samples++
	span := float64(r.Last - r.First)
	own := bracket{r.Last, timeRange{float64(r.Before) + span*c.period.lo*(1-drift), float64(r.After)}}
	if own.lo > own.hi { // the two host times are too close for this many ticks
		own.lo, own.hi = own.hi, own.lo
	}
	moved := c.moved(r.Last)
	cut := bracket{r.Last, timeRange{max(own.lo, moved.lo), min(own.hi, moved.hi)}}
	if len(c.past) == 0 || r.First < c.now.tick || cut.lo > cut.hi {
		c.past, c.now = append(c.past[:0], own), own // start again from this reading
	} else {
		c.now = cut
		c.learnPeriod()
	}
	ns := c.period.mid()
	if c.period.lo*(1-drift) <= 1 && 1 <= c.period.hi*(1+drift) {
		// Most GPUs have ticks of 1 ns, and the host clock is not exact enough to exclude this period.
		ns = 1
	}
	off := max(ns-c.period.lo*(1-drift), c.period.hi*(1+drift)-ns)
	c.Scale = TimeScale{ns, r.Last, int64(math.Round(c.now.mid())), c.now.width()/2 + span*off + 1}
}

// moved returns the current bracket, extrapolated to a later tick.
func (c *Clock) moved(tick uint64) bracket {
	ticks := float64(tick - c.now.tick)
	return bracket{tick, timeRange{
		c.now.lo + ticks*c.period.lo*(1-drift), c.now.hi + ticks*c.period.hi*(1+drift),
	}}
}

// learnPeriod computes bounds of the tick period from the current bracket and the saved ones. The new bounds
// replace the known bounds if they are narrower or contradict them. learnPeriod also saves the current
// bracket if the last saved one is old enough.
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

// Known reports whether ticks can be converted to nanoseconds.
func (t *TimeScale) Known() bool { return t.NsPerTick > 0 }

// Duration returns the time between two ticks. The result is an unmeasured time if the period is unknown or
// `end` is before `begin`.
func (t *TimeScale) Duration(begin, end uint64) trace.Time {
	if !t.Known() || end < begin {
		return trace.Time{}
	}
	return trace.Measured(int64(math.Round(float64(end-begin) * t.NsPerTick)))
}

// Instant returns the host time of a tick, in ns since the start of the clock. The result is an unmeasured
// time if the period is unknown.
func (t *TimeScale) Instant(tick uint64) trace.Time {
	if !t.Known() {
		return trace.Time{}
	}
	ticks := float64(int64(tick - t.tick)) // subtract first: a float64 cannot hold large ticks exactly
	return trace.Measured(t.hostNS + int64(math.Round(ticks*t.NsPerTick)))
}

// offset returns the host time of tick 0, in ns since the start of the clock.
func (t *TimeScale) offset() int64 {
	const enough = 192
	product := new(big.Float).SetPrec(enough).SetUint64(t.tick)
	product.Mul(product, big.NewFloat(t.NsPerTick))
	ns, _ := product.Int64()
	return t.hostNS - ns
}

// See improves the known timer resolution with the durations in a step. The slice `ticks` holds pairs: the
// begin and the end of each duration.
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
		if d := ticks[i+1] - ticks[i]; c.durations == 0 || d < c.shortest {
			c.shortest = d
		}
		c.durations++
	}
}

// resolution returns the timer resolution in ticks. It returns 0 as long as too few durations are known,
// because their greatest common divisor may then be a multiple of the resolution.
func (c *Clock) resolution() uint64 {
	const enough = 16
	if c.quantum == c.shortest && c.durations < enough {
		return 0
	}
	return c.quantum
}

// Describe returns the clock in trace format. It returns the zero Clock if the period is unknown.
func (c *Clock) Describe() trace.Clock {
	if !c.Scale.Known() {
		return trace.Clock{}
	}
	return trace.Clock{
		NSPerTick: c.Scale.NsPerTick, OffsetNS: trace.Measured(c.Scale.offset()),
		ErrorNS:   trace.Measured(int64(math.Ceil(c.Scale.errorNS))),
		QuantumNS: float64(c.resolution()) * c.Scale.NsPerTick, Samples: c.samples,
	}
}
