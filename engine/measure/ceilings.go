package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// Ceilings: what a device can do at best, as far as the kernels of this program can show it. A dispatch is
// judged against them, so each is the best of its runs, and those of a dispatch and of a timed pass, which
// are added to everything, the median. A clock that was still rising would make a share of over 100 % of what
// runs later: the GPU is kept busy until it becomes no faster, and where the FLOP rate at the end is not that
// at the beginning everything is measured again.

// CeilingsVersion rises when ceilings are measured in another way, so that those of before are not taken for
// these.
const CeilingsVersion = 3

const (
	// ceilingRuns is how often each is measured.
	ceilingRuns = 5
	// A run is made as long as longEnough ns, so that the timestamps around it, which take some µs, do not
	// count.
	longEnough = 300e3
	// mostCeilings is how often all are measured at most, where the clock moves each time.
	mostCeilings = 4

	// Workgroups of the copy: as many as its elements ask for, within this.
	leastCopyGroups, mostCopyGroups = 256, 4096

	element     = 16      // bytes that the copy takes at a time
	mostRounds  = 1 << 12 // of the copy: what it counts is in 32 bits
	smallestSet = 1 << 18 // bytes, of a working set
	largestSet  = 1 << 30
	mostGroups  = 4096 // that are tried
	// slower is how many times as long as one workgroup more of them take when they do not all run at once.
	slower = 1.25
	// chain is how many empty dispatches stand one after another.
	chain = 64
)

// Ceilings measures a device. It takes a fraction of a second on a GPU, some seconds on software.
func Ceilings(
	ctx context.Context,
	dev gpu.Device,
	k *graph.CeilingKernels,
	progress func(phase string, done, total int) error,
) (
	c *trace.Ceilings, err error,
) {
	if !dev.Info().Timestamps {
		return nil, fmt.Errorf("ceilings: the device has no timestamps: %w", gpu.ErrUnsupported)
	}
	clock, err := NewClock(dev, 2*chain)
	if err != nil {
		return nil, err
	}
	defer clock.Release()
	m, err := newMeter(dev, clock, 2*chain)
	if err != nil {
		return nil, fmt.Errorf("ceilings: %w", err)
	}
	defer m.Free()
	r := ceilingRun{Meter: m, ctx: ctx, kernels: k, progress: progress}
	if err := r.measure(); err != nil {
		return nil, fmt.Errorf("ceilings: %w", err)
	}
	return &r.found, nil
}

// ceilingRun is one measurement of a device.
type ceilingRun struct {
	*Meter
	ctx      context.Context
	kernels  *graph.CeilingKernels
	progress func(phase string, done, total int) error
	found    trace.Ceilings

	src, dst gpu.Buffer
	fma      Metered
	copying  Metered
	empty    Metered
	rounds   int // in which one workgroup of fma takes long enough
}

func (r *ceilingRun) measure() error {
	if err := r.allocate(); err != nil {
		return err
	}
	for range mostCeilings {
		best := r.found
		moved, err := r.round()
		if err != nil {
			return err
		}
		if r.found = *r.found.Best(&best); !moved {
			break
		}
	}
	return nil
}

// round measures each of them once, and says whether the clock moved meanwhile. That of a processor that
// stands in for a GPU always does.
func (r *ceilingRun) round() (moved bool, err error) {
	r.found = trace.Ceilings{N: ceilingRuns}
	var first, last float64
	steps := []func() error{r.ready, r.fill, r.flops(&first), r.dispatch, r.timedPass}
	for _, n := range r.sets() {
		steps = append(steps, func() error { return r.copyRate(n) })
	}
	steps = append(steps, r.flops(&last))
	for i, step := range steps {
		if err := r.progress("measure ceilings", i, len(steps)); err != nil {
			return false, err
		}
		if err := step(); err != nil {
			return false, err
		}
	}
	r.found.FlopsPerS = max(first, last)
	moved = r.found.FlopsPerS > (1+trace.ClockMoved)*min(first, last) && r.Dev.Info().Type != gpu.CPU
	return moved, r.progress("measure ceilings", len(steps), len(steps))
}

// allocate makes the two halves of the largest working set, or of the largest there is room for.
func (r *ceilingRun) allocate() error {
	limits := r.Dev.Info().Limits
	half := uint64(largestSet / 2)
	if r.Dev.Info().Type == gpu.CPU {
		half = largestSet / 64
	}
	for half > min(limits.MaxBufferSize, limits.MaxStorageBinding) {
		half /= 2
	}
	for ; ; half /= 2 {
		src, err := r.Dev.NewBuffer("ceiling source", half, gpu.Storage)
		if err == nil {
			r.owned = append(r.owned, src)
			r.src = src
			r.dst, err = r.Dev.NewBuffer("ceiling destination", half, gpu.Storage)
		}
		if err == nil {
			r.owned = append(r.owned, r.dst)
			break
		}
		if !errors.Is(err, gpu.ErrOutOfMemory) || half <= smallestSet {
			return err
		}
	}
	var err error
	if r.fma, err = r.bind(r.kernels.FMA, r.dst); err != nil {
		return err
	}
	if r.empty, err = r.bind(r.kernels.Empty, r.dst); err != nil {
		return err
	}
	if r.copying, err = r.bind(r.kernels.Copy, r.src, r.dst); err != nil {
		return err
	}
	if err := r.set(uint32(r.src.Size() / element)); err != nil {
		return err
	}
	for _, b := range []gpu.Buffer{r.src, r.dst} {
		k, err := r.bind(r.kernels.Fill, b)
		if err != nil {
			return err
		}
		if _, err := r.one(k, mostCopyGroups); err != nil {
			return err
		}
	}
	return nil
}

// sets are the sizes of the working sets: both halves together.
func (r *ceilingRun) sets() []int64 {
	var list []int64
	for n := int64(smallestSet); n <= 2*int64(r.dst.Size()); n *= 4 {
		list = append(list, n)
	}
	return list
}

// best is the least of several times of one dispatch.
func (r *ceilingRun) best(k Metered, groups uint32) (float64, error) {
	least := 0.0
	for i := range ceilingRuns {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		ns, err := r.one(k, groups)
		if err != nil {
			return 0, err
		}
		if i == 0 || ns < least {
			least = ns
		}
	}
	return max(least, 1), nil
}

// long finds in how many rounds a dispatch takes long enough, and leaves the params at that.
func (r *ceilingRun) long(k Metered, groups uint32, rounds, most int, set func(rounds int) error) (
	int, error,
) {
	for {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		if err := set(rounds); err != nil {
			return 0, err
		}
		ns, err := r.one(k, groups)
		if err != nil || ns >= longEnough || rounds >= most {
			return rounds, err
		}
		rounds = min(most, rounds*min(16, 1+int(longEnough/max(ns, 1))))
	}
}

// ready warms the GPU up, and finds how long the multiplications have to be.
func (r *ceilingRun) ready() error {
	var err error
	if r.rounds, err = r.long(r.fma, 1, 16, 1<<20, r.setFMA); err != nil || r.Dev.Info().Type == gpu.CPU {
		return err
	}
	if err := r.warm(r.ctx, r.fma); err != nil {
		return err
	}
	// By the clock as it is now.
	r.rounds, err = r.long(r.fma, 1, 16, 1<<20, r.setFMA)
	return err
}

// fill finds the largest number of busy workgroups that take no longer than one.
func (r *ceilingRun) fill() error {
	alone, err := r.best(r.fma, 1)
	if err != nil {
		return err
	}
	fits, over := 1, mostGroups+1 // the largest known to fit, the least known not to
	for fits+1 < over {
		try := (fits + over) / 2
		if over > mostGroups {
			try = min(2*fits, mostGroups)
		}
		ns, err := r.best(r.fma, uint32(try))
		if err != nil {
			return err
		}
		if ns <= slower*alone {
			fits = try
		} else {
			over = try
		}
		if fits == mostGroups {
			break
		}
	}
	r.found.FillWorkgroups = fits
	return nil
}

// flops measures the rate of a device that is full several times over.
func (r *ceilingRun) flops(rate *float64) func() error {
	return func() error {
		if err := r.setFMA(r.rounds); err != nil {
			return err
		}
		groups := uint32(min(16*r.found.FillWorkgroups, 4*mostGroups))
		ns, err := r.best(r.fma, groups)
		if err != nil {
			return err
		}
		lanes := float64(groups) * float64(product(r.kernels.FMA.WorkgroupSize))
		*rate = lanes * float64(r.rounds) * float64(r.kernels.FlopsPerRound) * 1e9 / ns
		return nil
	}
}

// product is how many there are in three dimensions.
func product(n [3]uint32) uint64 { return uint64(n[0]) * uint64(n[1]) * uint64(n[2]) }

// dispatch is what one more empty dispatch takes after a barrier.
func (r *ceilingRun) dispatch() error {
	var list []int64
	for range ceilingRuns {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		short, err := r.run(r.empty, 1, 1, 1)
		if err != nil {
			return err
		}
		long, err := r.run(r.empty, 1, chain+1, 1)
		if err != nil {
			return err
		}
		list = append(list, int64(max(0, long[0]-short[0])/chain))
	}
	slices.Sort(list)
	r.found.DispatchNS = trace.Measured(list[len(list)/2])
	return nil
}

// timedPass is what an empty dispatch takes in a pass of its own between two timestamps.
func (r *ceilingRun) timedPass() error {
	var list []float64
	for range ceilingRuns {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		times, err := r.run(r.empty, 1, 1, chain)
		if err != nil {
			return err
		}
		list = append(list, times...)
	}
	slices.Sort(list)
	r.found.TimedPassNS = trace.Measured(int64(list[len(list)/2]))
	return nil
}

// copyRate is how fast a working set of so many bytes is read and written.
func (r *ceilingRun) copyRate(bytes int64) error {
	n := bytes / 2 / element
	inGroup := int64(product(r.kernels.Copy.WorkgroupSize))
	groups := min(max(n/inGroup, leastCopyGroups), mostCopyGroups)
	lanes := groups * inGroup
	set := func(rounds int) error { return r.set(uint32(n), uint32(rounds)) }
	rounds, err := r.long(r.copying, uint32(groups), int(max(1, n/lanes)), mostRounds-1, set)
	if err != nil {
		return err
	}
	ns, err := r.best(r.copying, uint32(groups))
	if err != nil {
		return err
	}
	moved := 2 * element * float64(lanes) * float64(rounds)
	rate := trace.CopyRate{Bytes: bytes, PerS: moved * 1e9 / ns}
	r.found.CopyBytesPerS = append(r.found.CopyBytesPerS, rate)
	return nil
}
