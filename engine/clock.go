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
	stamps    gpu.Timestamps
	started   time.Time
	nsPerTick float64
	offsetNS  float64 // host ns since started = ticks*nsPerTick + offsetNS
	errorNS   float64 // of the offset
	quantum   uint64  // gcd of all deltas of ticks seen
	samples   int
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
	if c.nsPerTick = dev.Info().NSPerTick; c.nsPerTick > 0 {
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
			c.nsPerTick = ns
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
	c.offsetNS = r.mid() - float64(r.tick)*c.nsPerTick
	c.errorNS = r.width() / 2
}

// calibrated says whether ticks can be told in nanoseconds.
func (c *clock) calibrated() bool { return c != nil && c.nsPerTick > 0 }

// duration is the time between two ticks.
func (c *clock) duration(begin, end uint64) trace.Time {
	if !c.calibrated() || end < begin {
		return trace.Time{}
	}
	return trace.Measured(int64(math.Round(float64(end-begin) * c.nsPerTick)))
}

// instant is a tick on the host's axis.
func (c *clock) instant(tick uint64) trace.Time {
	if !c.calibrated() {
		return trace.Time{}
	}
	return trace.Measured(int64(math.Round(float64(tick)*c.nsPerTick + c.offsetNS)))
}

// see takes the distance of two ticks into the quantum.
func (c *clock) see(delta uint64) {
	a, b := c.quantum, delta
	for b != 0 {
		a, b = b, a%b
	}
	c.quantum = a
}

func (c *clock) trace() trace.Clock {
	if !c.calibrated() {
		return trace.Clock{}
	}
	return trace.Clock{
		NSPerTick: c.nsPerTick, OffsetNS: trace.Measured(int64(c.offsetNS)),
		ErrorNS:   trace.Measured(int64(c.errorNS)),
		QuantumNS: float64(c.quantum) * c.nsPerTick, Samples: c.samples,
	}
}
