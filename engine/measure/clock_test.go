package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// gpuClock returns the GPU's tick at a host time in ns.
type gpuClock func(ns float64) uint64

func ticking(period, start float64) gpuClock {
	return func(ns float64) uint64 { return uint64(start) + uint64(ns/period) }
}

// drifting returns a clock that warms up and cools down: its period varies by 20 ppm with a cycle of 20
// minutes.
func drifting(period float64) gpuClock {
	const swing, turn = 20e-6, 1200e9 / (2 * math.Pi)
	return func(ns float64) uint64 {
		return 1<<40 + uint64((ns+swing*turn*(1-math.Cos(ns/turn)))/period)
	}
}

// Simulates hours of steps with pauses. At every step the error of an instant is at most the error that the
// clock reports. That is about as small as the times from submit to first tick and from last tick to the end
// of the wait.
func TestInstantsStayWithinTheReportedError(t *testing.T) {
	for _, test := range []struct {
		name   string
		gpu    gpuClock
		period float64
	}{
		{"52.08 ns", ticking(1e3/19.2, 12345), 1e3 / 19.2},
		{"1 ns", ticking(1, 0), 1},
		{"1 ns, since 1970", ticking(1, 1.7e18), 1},
		{"1 ns by a crystal that is off", ticking(1.00003, 99), 1},
		{"83.33 ns", ticking(1e3/12, 1e15), 1e3 / 12},
		{"10 ns, drifting", drifting(10), 10},
		{"an unusual period", ticking(1.01, 5), 1.01},
	} {
		t.Run(test.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			c := &Clock{past: make([]bracket, 0, 16)}
			now := 1e6
			read := func(first, last float64, slack float64) {
				r := Reading{test.gpu(first), test.gpu(last), int64(first - slack*rnd.Float64() - 5e3), 0}
				r.After = int64(last + slack*rnd.Float64() + 5e3)
				c.Take(r)
			}
			ticks := float64(test.gpu(now+5e6) - test.gpu(now))
			c.period = timeRange{4.6e6 / ticks, 5.4e6 / ticks} // as measured by two readings
			read(now, now, 1e5)
			worst := 0.0
			for step := range 40_000 {
				pause := 1e6 * rnd.Float64()
				switch {
				case step%1000 == 0:
					pause = 300e9 * rnd.Float64()
				case step%100 == 0:
					pause = 20e9 * rnd.Float64()
				}
				first := now + pause
				now = first + 1.3e6 + 30e6*float64(step%2)
				read(first, now, 6e4)
				for _, at := range []float64{first, (first + now) / 2, now} {
					got, _ := c.Scale.Instant(test.gpu(at)).NS()
					if off := math.Abs(float64(got) - at); off > c.Scale.errorNS+test.period {
						t.Fatalf("step %d, at %.0f s: an instant is off by %.0f ns, the reported error is %.0f", step,
							at/1e9, off, c.Scale.errorNS)
					}
				}
				if step > 1000 {
					worst = max(worst, c.Scale.errorNS)
				}
				if off := c.Scale.NsPerTick/test.period - 1; step > 1000 && math.Abs(off) > 2*drift {
					t.Fatalf("step %d: a tick of %v ns, want %v", step, c.Scale.NsPerTick, test.period)
				}
			}
			if worst > 1e5 {
				t.Errorf("the reported error was up to %.0f ns, but one step limits it to less", worst)
			}
			if c.Scale.NsPerTick != 1 && test.period == 1 {
				t.Errorf("a tick of %v ns, want 1", c.Scale.NsPerTick)
			}
		})
	}
}

// After one reading, the period has an error of some percent. The first tick of a long step is then less
// certain than its last tick. The error reported for the step's instants must cover its first tick.
func TestFirstTickOfLongStepIsWithinError(t *testing.T) {
	for _, period := range []float64{0.96, 1.01, 1.04, 47, 52.5} {
		c := &Clock{past: make([]bracket, 0, 16), period: timeRange{period * 0.95, period * 1.07}}
		gpu := ticking(period, 77)
		const first, last = 5e9, 6e9
		c.Take(Reading{gpu(first), gpu(last), first - 1e3, last + 1e3})
		got, _ := c.Scale.Instant(gpu(first)).NS()
		off := math.Abs(float64(got) - first)
		if off > c.Scale.errorNS+period {
			t.Errorf("a tick of %v ns: the first tick is off by %.0f ns, the reported error is %.0f", period,
				off, c.Scale.errorNS)
		}
		if off < 5e6 {
			t.Errorf("a tick of %v ns: the first tick is off by %.0f ns: the test shows nothing", period, off)
		}
	}
}

// If the GPU was reset, or slept while the host did not, the clock starts anew with the first step after
// that.
func TestClockThatJumpsBeginsAnew(t *testing.T) {
	for _, jump := range []float64{-3e9, 3600e9} {
		c := &Clock{past: make([]bracket, 0, 16), period: timeRange{0.9, 1.1}}
		at := func(ns, tick float64) {
			c.Take(Reading{uint64(tick), uint64(tick + 1e6), int64(ns - 2e4), int64(ns + 1e6 + 2e4)})
		}
		for i := range 100 {
			at(float64(i)*1e8, 1e12+float64(i)*1e8)
		}
		for i := range 3 {
			ns := 1e10 + float64(i)*1e8
			at(ns, 1e12+ns+jump)
			if got, _ := c.Scale.Instant(uint64(1e12 + ns + jump)).NS(); math.Abs(float64(got)-ns) > 4e4 {
				t.Errorf("jump of %.0f s: the first tick is reported at %d, want %.0f", jump/1e9, got, ns)
			}
		}
	}
}

// The greatest common divisor of one duration is the duration itself, which says nothing about the timer.
func TestTimerResolutionNeedsSeveralDurations(t *testing.T) {
	for _, c := range []struct {
		ticks []uint64
		want  uint64
	}{
		{nil, 0},
		{[]uint64{0, 1920}, 0},
		{[]uint64{0, 1920, 5000, 5640}, 0}, // 640 divides both
		{[]uint64{0, 1920, 5000, 5640, 0, 672}, 32},
	} {
		var clock Clock
		clock.See(c.ticks)
		if got := clock.resolution(); got != c.want {
			t.Errorf("%v: resolution of %d ticks, want %d", c.ticks, got, c.want)
		}
	}
	var clock Clock
	for range 20 {
		clock.See([]uint64{0, 1})
	}
	if got := clock.resolution(); got != 1 {
		t.Errorf("20 durations of one tick: resolution of %d ticks, want 1", got)
	}
}
