package measure

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
)

const (
	// Warming up keeps the GPU busy. It ends when the shortest run time has not improved by more than the
	// fraction warmNoise for the duration warmFor, and at the latest after mostWarm. An idle GPU needs about
	// 100 ms to reach its full clock, and sometimes several times as long.
	warmFor   = 150 * time.Millisecond
	warmNoise = 0.01
	mostWarm  = 2 * time.Second
	// warmGroups is the number of workgroups of a warm-up dispatch. It is more than a GPU runs at the same
	// time, because a single workgroup does not raise the GPU clock.
	warmGroups = mostGroups / 8
)

// ErrNoPeriod reports that a device cannot be measured, because the period of its ticks is unknown.
var ErrNoPeriod = errors.New("the period of the GPU clock is unknown, so GPU times cannot be measured")

// Meter times single kernels on a device outside of steps. It owns the GPU objects that it creates, and Free
// releases them.
type Meter struct {
	Dev    gpu.Device
	clock  *Clock // clock whose timestamp slots the measurements use
	params gpu.Buffer
	owned  []interface{ Release() }
	ticks  []uint64
	bytes  []byte // content of params
}

func newMeter(dev gpu.Device, c *Clock, stamps int) (*Meter, error) {
	m := &Meter{Dev: dev, clock: c, ticks: make([]uint64, stamps), bytes: make([]byte, 16)}
	if !c.Scale.Known() {
		return nil, ErrNoPeriod
	}
	var err error
	m.params, err = dev.NewBuffer("ceiling params", uint64(len(m.bytes)), gpu.Uniform)
	if err != nil {
		return nil, err
	}
	m.owned = append(m.owned, m.params)
	return m, nil
}

// Free releases all GPU objects that the meter created.
func (m *Meter) Free() {
	for i := len(m.owned) - 1; i >= 0; i-- {
		m.owned[i].Release()
	}
	m.owned = nil
}

// Metered is a compiled kernel with its bind group.
type Metered struct {
	Pipe  gpu.Pipeline
	Group gpu.BindGroup
}

// bind compiles a kernel and binds it to buffers.
func (m *Meter) bind(k *graph.Kernel, buffers ...gpu.Buffer) (Metered, error) {
	pipe, err := m.Compile(k)
	if err != nil {
		return Metered{}, err
	}
	group, err := m.Group(k, pipe, buffers...)
	return Metered{pipe, group}, err
}

// Compile creates the pipeline of a kernel.
func (m *Meter) Compile(k *graph.Kernel) (gpu.Pipeline, error) {
	pipe, err := m.Dev.NewPipeline(gpu.PipelineDesc{
		Label: k.Name, Source: k.Source, Entry: "main", Bindings: k.Bindings(),
	})
	if err != nil {
		return nil, fmt.Errorf("compile kernel %s: %w", k.Name, err)
	}
	m.owned = append(m.owned, pipe)
	return pipe, nil
}

// Group creates the bind group of a compiled kernel. It binds the buffers, and then the meter's params buffer
// if the kernel has params.
func (m *Meter) Group(k *graph.Kernel, pipe gpu.Pipeline, buffers ...gpu.Buffer) (gpu.BindGroup, error) {
	var bindings []gpu.Binding
	for _, b := range buffers {
		bindings = append(bindings, gpu.Binding{Buffer: b})
	}
	if len(k.Params) > 0 {
		bindings = append(bindings, gpu.Binding{Buffer: m.params})
	}
	group, err := m.Dev.NewBindGroup(k.Name, pipe, bindings)
	if err != nil {
		return nil, fmt.Errorf("bind kernel %s: %w", k.Name, err)
	}
	m.owned = append(m.owned, group)
	return group, nil
}

// set writes the kernel params that the following runs use.
func (m *Meter) set(words ...uint32) error {
	for i, w := range words {
		binary.LittleEndian.PutUint32(m.bytes[4*i:], w)
	}
	return m.Dev.Write(m.params, 0, m.bytes)
}

// setFMA writes the params of the FMA kernel: the number of rounds, and constants that keep the kernel's sums
// near 1 after any number of rounds.
func (m *Meter) setFMA(rounds int) error {
	return m.set(uint32(rounds), math.Float32bits(0.5), math.Float32bits(0.5), math.Float32bits(-7))
}

// run executes a kernel in several compute passes, with the given number of dispatches in each pass. It
// returns the time of each pass in ns.
func (m *Meter) run(k Metered, groups uint32, dispatches, passes int) ([]float64, error) {
	sent, err := m.send(k, groups, dispatches, passes)
	if err != nil {
		return nil, err
	}
	return m.times(sent, passes)
}

// send submits the passes that run would execute, without waiting for them.
func (m *Meter) send(k Metered, groups uint32, dispatches, passes int) (gpu.Recording, error) {
	enc, err := m.Dev.Begin("measure")
	if err != nil {
		return nil, err
	}
	for p := range passes {
		if err = m.encode(enc, k, groups, dispatches, p); err != nil {
			enc.Discard()
			return nil, err
		}
	}
	if err := enc.Resolve(m.clock.Stamps, 2*passes); err != nil {
		enc.Discard()
		return nil, err
	}
	r, err := enc.Finish()
	if err != nil {
		return nil, err
	}
	if err := r.Submit(); err != nil {
		return nil, err
	}
	return r, nil
}

// times waits for a submitted recording and returns the time of each pass in ns. It does not wait for work
// that was submitted later.
func (m *Meter) times(sent gpu.Recording, passes int) ([]float64, error) {
	if err := sent.Wait(); err != nil {
		return nil, err
	}
	ticks := m.ticks[:2*passes]
	if err := m.clock.Stamps.Read(ticks); err != nil {
		return nil, err
	}
	times := make([]float64, passes)
	for i := range times {
		ns, ok := m.clock.Scale.Duration(ticks[2*i], ticks[2*i+1]).NS()
		if !ok {
			return nil, ErrNoPeriod
		}
		times[i] = float64(ns)
	}
	return times, nil
}

func (m *Meter) encode(enc gpu.Encoder, k Metered, groups uint32, dispatches, pass int) error {
	if err := enc.Timestamp(m.clock.Stamps, 2*pass); err != nil {
		return err
	}
	if err := enc.BeginPass("measure"); err != nil {
		return err
	}
	for range dispatches {
		enc.Dispatch(k.Pipe, k.Group, groups, 1, 1)
	}
	if err := enc.EndPass(); err != nil {
		return err
	}
	return enc.Timestamp(m.clock.Stamps, 2*pass+1)
}

// warmed runs a dispatch twice and returns the time of the second run in ns. The first run only loads the
// code and the data into the caches.
func (m *Meter) warmed(k Metered, groups uint32) (float64, error) {
	times, err := m.run(k, groups, 1, 2)
	if err != nil {
		return 0, err
	}
	return times[1], nil
}

// warm keeps the whole GPU busy with a kernel until the GPU clock no longer rises.
func (m *Meter) warm(ctx context.Context, k Metered) error {
	begin := time.Now()
	least, since := math.Inf(1), begin
	for time.Since(since) < warmFor && time.Since(begin) < mostWarm {
		if err := ctx.Err(); err != nil {
			return err
		}
		ns, err := m.one(k, warmGroups)
		if err != nil {
			return err
		}
		if ns < least*(1-warmNoise) {
			least, since = ns, time.Now()
		}
	}
	return nil
}

// one runs a single dispatch and returns its time in ns.
func (m *Meter) one(k Metered, groups uint32) (float64, error) {
	times, err := m.run(k, groups, 1, 1)
	if err != nil {
		return 0, err
	}
	return times[0], nil
}
