package engine

import (
	"fmt"
	"math"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// clock relates the GPU's ticks to the host's nanoseconds. No WebGPU call gives the period of a tick, so two
// readings some time apart are held against the host's clock, each reading bracketed by host times.
type clock struct {
	scale   timeScale
	stamps  gpu.Timestamps
	started time.Time
	quantum uint64 // gcd of all deltas of ticks seen
	samples int
}

// timeScale turns ticks into host nanoseconds.
type timeScale struct {
	nsPerTick float64 // 0: not known
	offsetNS  float64 // host ns since started = ticks*nsPerTick + offsetNS
	errorNS   float64 // of the offset
}

// The two readings are calibrationGap apart: a tick period is then known to about a part in a hundred, enough
// to tell the periods that exist (1, 10, 52.08, 83.33 ns) apart. Where readings are slow, as on a loaded
// software device, the gap is doubled, up to longestGap.
const (
	calibrationGap = 5 * time.Millisecond
	longestGap     = 80 * time.Millisecond
)

func newClock(dev gpu.Device, stamps int) (*clock, error) {
	t, err := dev.NewTimestamps(max(stamps, 2))
	if err != nil {
		return nil, fmt.Errorf("timestamps: %w", err)
	}
	c := &clock{stamps: t, started: time.Now()}
	if err := c.calibrate(dev); err != nil {
		t.Release()
		return nil, fmt.Errorf("calibrate the GPU clock: %w", err)
	}
	return c, nil
}

// Release frees the timestamps.
func (c *clock) Release() { c.stamps.Release() }

// reading is a GPU time between two host times, in ns since the clock was started.
type reading struct {
	tick          uint64
	before, after int64
}

func (r reading) mid() float64   { return float64(r.before+r.after) / 2 }
func (r reading) width() float64 { return float64(r.after - r.before) }

func (c *clock) read(dev gpu.Device) (reading, error) {
	best := reading{after: math.MaxInt64 / 2}
	for range 3 { // the narrowest of three: the first may meet a sleeping GPU
		var r reading
		r.before = time.Since(c.started).Nanoseconds()
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
		r.after = time.Since(c.started).Nanoseconds()
		var tick [1]uint64
		if err := c.stamps.Read(tick[:]); err != nil {
			return r, err
		}
		r.tick = tick[0]
		c.samples++
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
	if c.scale.nsPerTick = dev.Info().NSPerTick; c.scale.nsPerTick > 0 {
		c.fix(a)
		return nil
	}
	for gap := calibrationGap; ; gap *= 2 {
		time.Sleep(gap)
		b, err := c.read(dev)
		if err != nil {
			return err
		}
		if b.tick <= a.tick {
			return nil // not a clock: the trace has raw ticks only
		}
		ns, sure := period(a, b)
		if sure || gap >= longestGap {
			c.scale.nsPerTick = ns
			c.fix(b)
			return nil
		}
	}
}

// period is the time of a tick, from two readings. Most GPUs tick in ns: where that is within the error it is
// so. It is sure where the error is under a tenth.
func period(a, b reading) (ns float64, sure bool) {
	ticks := float64(b.tick - a.tick)
	ns = (b.mid() - a.mid()) / ticks
	slack := (a.width() + b.width()) / 2 / ticks
	sure = slack < ns/10
	if math.Abs(ns-1) <= slack {
		ns = 1
	}
	return ns, sure
}

// fix takes a reading as the point at which both clocks meet.
func (c *clock) fix(r reading) {
	c.scale.offsetNS = r.mid() - float64(r.tick)*c.scale.nsPerTick
	c.scale.errorNS = r.width() / 2
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
	return trace.Measured(int64(math.Round(float64(tick)*t.nsPerTick + t.offsetNS)))
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
		NSPerTick: c.scale.nsPerTick, OffsetNS: trace.Measured(int64(c.scale.offsetNS)),
		ErrorNS:   trace.Measured(int64(c.scale.errorNS)),
		QuantumNS: float64(c.quantum) * c.scale.nsPerTick, Samples: c.samples,
	}
}
