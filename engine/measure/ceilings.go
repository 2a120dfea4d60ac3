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

// A ceiling is the best rate that a device reaches with the kernels of this program. It is the best of
// several runs, because reports show the rate of a dispatch as a percentage of its ceiling. The durations of
// an empty dispatch and of a timed pass are measured too. They are medians, because reports add them to
// other times.
//
// If the GPU clock rose after the measurement, dispatches could be faster than their ceilings, and reports
// would show more than 100 %. Therefore the measurement first keeps the GPU busy until the measured kernels
// no longer get faster. The measurement is repeated if the FLOP rates at its beginning and at its end
// differ.

// CeilingsVersion is the version of the measurement method. It is increased whenever the method changes, so
// that ceilings of different methods are not compared.
const CeilingsVersion = 3

const (
	// ceilingRuns is the number of runs of each measurement.
	ceilingRuns = 5
	// longEnough is the minimum duration of a run in ns. The two timestamps around a run take some µs; in a
	// run of this length that does not matter.
	longEnough = 300e3
	// mostCeilings is the maximum number of times that all ceilings are measured. A measurement is repeated
	// if the GPU clock changed during it.
	mostCeilings = 4

	// A dispatch of the copy kernel has one lane per element, in at least leastCopyGroups and at most
	// mostCopyGroups workgroups.
	leastCopyGroups, mostCopyGroups = 256, 4096

	element     = 16      // bytes that a lane copies at a time
	mostRounds  = 1 << 12 // maximum number of rounds of the copy kernel, which uses 32-bit counters
	smallestSet = 1 << 18 // bytes of the smallest working set
	largestSet  = 1 << 30 // bytes of the largest working set
	mostGroups  = 4096    // maximum number of workgroups that fill tries
	// If a dispatch takes more than `slower` times as long as a dispatch with one workgroup, its workgroups
	// do not all run at the same time.
	slower = 1.25
	// chain is the number of empty dispatches that are timed together, one after another.
	chain = 64
)

// Ceilings measures the peak rates of a device with the kernels k. It takes a fraction of a second on a GPU
// and some seconds on a software device. It calls progress before each measurement.
func Ceilings(
	ctx context.Context,
	dev gpu.Device,
	k *graph.CeilingKernels,
	progress func(phase string, done, total int) error,
) (
	c *trace.Ceilings, err error,
) {
	if !dev.Info().Timestamps {
		return nil, fmt.Errorf("ceilings: the device does not support timestamps: %w", gpu.ErrUnsupported)
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
	rounds   int // number of rounds with which a workgroup of the kernel fma takes longEnough
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

// round measures all ceilings once and reports whether the GPU clock changed during the measurement. For a
// software device round always reports false, because the clock of a CPU changes all the time.
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

// allocate creates the source buffer and the destination buffer of the copy, for the largest working set that
// fits into the device's memory. It also binds the kernels to the buffers and fills the buffers.
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

// sets lists the sizes of the working sets in bytes. The size of a working set is the sum of the sizes of
// source and destination.
func (r *ceilingRun) sets() []int64 {
	var list []int64
	for n := int64(smallestSet); n <= 2*int64(r.dst.Size()); n *= 4 {
		list = append(list, n)
	}
	return list
}

// best runs a dispatch several times and returns the shortest time in ns.
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

// long returns a number of rounds with which a dispatch takes at least longEnough ns, or `most` if no number
// up to `most` is enough. It tries increasing numbers, beginning with `rounds`. When it returns, the kernel's
// params contain the returned number.
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

// ready warms up the GPU and finds the number of rounds for the FMA kernel.
func (r *ceilingRun) ready() error {
	var err error
	if r.rounds, err = r.long(r.fma, 1, 16, 1<<20, r.setFMA); err != nil || r.Dev.Info().Type == gpu.CPU {
		return err
	}
	if err := r.warm(r.ctx, r.fma); err != nil {
		return err
	}
	// The GPU is warm now, with a higher clock, so the kernel may need more rounds.
	r.rounds, err = r.long(r.fma, 1, 16, 1<<20, r.setFMA)
	return err
}

// fill finds out how many busy workgroups the device can run at the same time. A dispatch with this many
// workgroups takes about as long as one with a single workgroup.
func (r *ceilingRun) fill() error {
	alone, err := r.best(r.fma, 1)
	if err != nil {
		return err
	}
	// The search keeps two numbers of workgroups. As far as is known, `fits` workgroups run at the same time
	// and `over` workgroups do not. The search ends when the two are adjacent, and the result is `fits`.
	fits, over := 1, mostGroups+1
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

// flops measures the FLOP rate of a dispatch with many more workgroups than the device can run at the same
// time.
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

// product returns the number of lanes in a workgroup whose dimensions are n.
func product(n [3]uint32) uint64 { return uint64(n[0]) * uint64(n[1]) * uint64(n[2]) }

// dispatch measures by how much one more empty dispatch, with its barrier, prolongs a pass.
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

// timedPass measures the time between the two timestamps of a timed pass that has only one empty dispatch.
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

// copyRate measures the copy rate of a working set of the given size. It counts both the bytes read and the
// bytes written.
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
