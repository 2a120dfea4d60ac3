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
	// A GPU is kept busy until it has become no faster for warmFor, by more than warmNoise, or mostWarm has
	// passed: an idle one takes some 100 ms to clock up, now and then several times that.
	warmFor   = 150 * time.Millisecond
	warmNoise = 0.01
	mostWarm  = 2 * time.Second
	// warmGroups are more workgroups than run at once: one alone does not bring the clock up.
	warmGroups = mostGroups / 8
)

// ErrNoPeriod says that GPU times are ticks of unknown length.
var ErrNoPeriod = errors.New("the GPU's clock has no known period")

// Meter times kernels of its own on a device, outside of any step. What it makes is freed by release.
type Meter struct {
	Dev    gpu.Device
	clock  *Clock // whose timestamps it uses
	params gpu.Buffer
	owned  []interface{ Release() }
	ticks  []uint64
	bytes  []byte // of params
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

func (m *Meter) Free() {
	for i := len(m.owned) - 1; i >= 0; i-- {
		m.owned[i].Release()
	}
	m.owned = nil
}

// Metered is a kernel with what it is bound to.
type Metered struct {
	Pipe  gpu.Pipeline
	Group gpu.BindGroup
}

// bind makes a kernel ready on buffers.
func (m *Meter) bind(k *graph.Kernel, buffers ...gpu.Buffer) (Metered, error) {
	pipe, err := m.Compile(k)
	if err != nil {
		return Metered{}, err
	}
	group, err := m.Group(k, pipe, buffers...)
	return Metered{pipe, group}, err
}

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

// Group binds a compiled kernel to buffers.
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

// set writes the params of the runs to come.
func (m *Meter) set(words ...uint32) error {
	for i, w := range words {
		binary.LittleEndian.PutUint32(m.bytes[4*i:], w)
	}
	return m.Dev.Write(m.params, 0, m.bytes)
}

// setFMA are the params of the FMA kernel: sums that stay near 1 whatever the number of rounds.
func (m *Meter) setFMA(rounds int) error {
	return m.set(uint32(rounds), math.Float32bits(0.5), math.Float32bits(0.5), math.Float32bits(-7))
}

// run times passes, each of so many dispatches of a kernel, and gives the ns of each.
func (m *Meter) run(k Metered, groups uint32, dispatches, passes int) ([]float64, error) {
	sent, err := m.send(k, groups, dispatches, passes)
	if err != nil {
		return nil, err
	}
	return m.times(sent, passes)
}

// send submits what run times.
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

// times waits for what was sent, and not for what is after it.
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

// warmed times one dispatch right after another of its kind, whose code and data it finds in place.
func (m *Meter) warmed(k Metered, groups uint32) (float64, error) {
	times, err := m.run(k, groups, 1, 2)
	if err != nil {
		return 0, err
	}
	return times[1], nil
}

// warm keeps all of the GPU busy with a kernel until its clock is up.
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

// one times one dispatch.
func (m *Meter) one(k Metered, groups uint32) (float64, error) {
	times, err := m.run(k, groups, 1, 1)
	if err != nil {
		return 0, err
	}
	return times[0], nil
}
