package ops

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/measure"
	"gpuscope/ops/kind"
	"gpuscope/trace"
)

// scripted returns a fake device of known speed. The duration of a kernel follows from its params and its
// grid.
func scripted(units uint32, flopsPerNS, cachedPerNS, copyPerNS float64, cache int64) *fake.Device {
	dev := fake.New(fake.Options{NoLog: true})
	play(dev, units, flopsPerNS, cachedPerNS, copyPerNS, cache)
	return dev
}

// play gives a fake device a known speed.
func play(dev *fake.Device, units uint32, flopsPerNS, cachedPerNS, copyPerNS float64, cache int64) {
	var words [2]uint32
	dev.OnDispatch = func(d fake.Dispatch) {
		params := d.Bound[len(d.Bound)-1].Bytes
		words[0], words[1] = binary.LittleEndian.Uint32(params), binary.LittleEndian.Uint32(params[4:])
	}
	dev.PassNS = 3000
	dev.Duration = func(kernel string, x, _, _ uint32) int64 {
		switch kernel {
		case "ceiling_fma":
			waves := (x + units - 1) / units
			perUnit := flopsPerNS / float64(units)
			return int64(float64(waves) * 256 * 256 * float64(words[0]) / perUnit)
		case "ceiling_copy":
			rate := copyPerNS
			if 32*int64(words[0]) <= cache {
				rate = cachedPerNS
			}
			return int64(32 * 256 * float64(x) * float64(words[1]) / rate)
		}
		return 1700
	}
}

func ceilings(t testing.TB, dev gpu.Device, ctx context.Context, p engine.Progress) (*trace.Ceilings, error) {
	k, err := kind.Ceilings()
	if err != nil {
		t.Fatal(err)
	}
	if p == nil {
		p = func(string, int, int) error { return nil }
	}
	return measure.Ceilings(ctx, dev, k, p)
}

func near(a, b, part float64) bool { return math.Abs(a/b-1) < part }

func TestCeilingsAreThoseOfTheDevice(t *testing.T) {
	for _, units := range []uint32{1, 3, 132, 200} {
		dev := scripted(units, 50_000, 9000, 4240, 32<<20)
		c, err := ceilings(t, dev, context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.FillWorkgroups != int(units) {
			t.Errorf("%d workgroups fill the device, want %d", c.FillWorkgroups, units)
		}
		if !near(c.FlopsPerS, 50_000e9, 0.02) {
			t.Errorf("%.3g FLOP/s, want 5e13", c.FlopsPerS)
		}
		if ns, _ := c.DispatchNS.NS(); ns != 1700 {
			t.Errorf("an empty dispatch takes %d ns, want 1700", ns)
		}
		if ns, _ := c.TimedPassNS.NS(); ns != 4700 {
			t.Errorf("a timed pass takes %d ns, want 4700", ns)
		}
		for i, r := range c.CopyBytesPerS {
			want := 4240e9
			if r.Bytes <= 32<<20 {
				want = 9000e9
			}
			if !near(r.PerS, want, 0.02) || i > 0 && r.Bytes != 4*c.CopyBytesPerS[i-1].Bytes {
				t.Errorf("%d bytes are copied at %.4g a second, want %.4g", r.Bytes, r.PerS, want)
			}
		}
		if n := dev.Live().Total(); n != 0 || len(c.CopyBytesPerS) < 4 {
			t.Errorf("%d objects were not released; %d sizes", n, len(c.CopyBytesPerS))
		}
	}
}

// If the clock of a GPU rises during the measurement, the ceilings are those at the highest clock. The clock
// may rise during the warm-up or later.
func TestCeilingsAreMeasuredAtTheRaisedClock(t *testing.T) {
	var began time.Time
	copies := 0
	for name, clock := range map[string]func() float64{
		"slowly": func() float64 { return min(1, 0.2+0.8*time.Since(began).Seconds()/0.4) },
		"at once, in the middle": func() float64 {
			if copies < 20 {
				return 0.57
			}
			return 1
		},
	} {
		info := gpu.AdapterInfo{Name: "Big GPU", Type: gpu.Discrete}
		dev := fake.New(fake.Options{NoLog: true, Info: info})
		play(dev, 132, 50_000, 9000, 4240, 32<<20)
		takes := dev.Duration
		dev.Duration = func(kernel string, x, y, z uint32) int64 {
			if kernel == "ceiling_copy" {
				copies++
			}
			return int64(float64(takes(kernel, x, y, z)) / clock())
		}
		began, copies = time.Now(), 0
		c, err := ceilings(t, dev, context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		last := c.CopyBytesPerS[len(c.CopyBytesPerS)-1]
		ns, _ := c.DispatchNS.NS()
		if !near(c.FlopsPerS, 50_000e9, 0.02) || !near(last.PerS, 4240e9, 0.02) || c.FillWorkgroups != 132 ||
			ns != 1700 || !near(c.CopyBytesPerS[0].PerS, 9000e9, 0.02) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// Memory that was only cleared may be read faster than other memory. Therefore both buffers are filled before
// they are copied.
func TestMemoryIsFilledBeforeItIsCopied(t *testing.T) {
	dev := scripted(8, 1000, 100, 100, 0)
	compute, filled := dev.OnDispatch, map[string]uint32{}
	dev.OnDispatch = func(d fake.Dispatch) {
		compute(d)
		switch d.Pipeline {
		case "ceiling_fill":
			filled[d.Bound[0].Buffer] = 16 * binary.LittleEndian.Uint32(d.Bound[1].Bytes)
		case "ceiling_copy":
			for _, b := range d.Bound[:2] {
				if n := filled[b.Buffer]; int(n) != len(b.Bytes) {
					t.Fatalf("%s is copied: %d bytes, of which %d are filled", b.Buffer, len(b.Bytes), n)
				}
			}
		}
	}
	if _, err := ceilings(t, dev, context.Background(), nil); err != nil {
		t.Fatal(err)
	}
}

func TestMeasuringCeilingsIsCancelledAndLeavesNothing(t *testing.T) {
	dev := scripted(8, 1000, 100, 100, 0)
	ctx, cancel := context.WithCancel(context.Background())
	stages := 0
	_, err := ceilings(t, dev, ctx, func(_ string, done, total int) error {
		if stages++; done == 3 {
			cancel()
		}
		if done > total {
			t.Errorf("%d of %d", done, total)
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || stages != 4 {
		t.Errorf("after %d stages: %v", stages, err)
	}
	if n := dev.Live().Total(); n != 0 {
		t.Errorf("%d objects were not released", n)
	}
}

func TestCeilingsTakeAsMuchMemoryAsThereIs(t *testing.T) {
	dev := scripted(8, 1000, 100, 100, 0)
	dev.Fault = func(c fake.Call) error {
		if c.Kind == fake.NewBuffer && c.Size > 1<<20 {
			return gpu.ErrOutOfMemory
		}
		return nil
	}
	c, err := ceilings(t, dev, context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if last := c.CopyBytesPerS[len(c.CopyBytesPerS)-1].Bytes; last != 1<<20 {
		t.Errorf("the largest set has %d bytes", last)
	}
	if _, err := ceilings(t, fake.New(fake.Options{NoTimestamps: true}), context.Background(),
		nil); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("a device without timestamps: %v", err)
	}
}

func TestCeilingsOnTheDevice(t *testing.T) {
	dev := gputest.Open(t)
	defer dev.Release()
	c, err := ceilings(t, dev, context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", c)
	pass, ok := c.TimedPassNS.NS()
	if c.FlopsPerS < 1e8 || c.FillWorkgroups < 1 || !ok || pass <= 0 || len(c.CopyBytesPerS) < 3 {
		t.Errorf("%+v", c)
	}
	for _, r := range c.CopyBytesPerS {
		if r.PerS < 1e7 {
			t.Errorf("%d bytes at %.3g a second", r.Bytes, r.PerS)
		}
	}
}
