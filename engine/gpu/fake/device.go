package fake

import (
	"errors"
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/rules"
)

// Device is a fake device. Its exported fields may be changed at any time.
type Device struct {
	// OnDispatch is called for each dispatch when it runs, during Submit. OnDispatch may change the bytes
	// of the read_write bindings.
	OnDispatch func(Dispatch)
	// Duration returns the time of a dispatch in ns. If Duration is nil, every dispatch takes 1000 ns.
	Duration func(pipeline string, x, y, z uint32) int64
	// PassNS is the time in ns that each pass takes in addition to its dispatches.
	PassNS int64
	// NSPerTick is the period of the GPU clock in ns; 0 means 1.
	NSPerTick int64
	// OnRead is called by Readback.Read and may change the result in dst. label and offset identify the
	// part of the readback that is read.
	OnRead func(label string, offset uint64, dst []byte)
	// Fault makes calls fail. If Fault returns an error for a call, the call has no effect and returns that
	// error. For a Dispatch call, EndPass returns the error.
	Fault func(Call) error
	// Logging selects whether calls are appended to Log. If it is false, the hot path allocates no memory.
	Logging bool
	Log     []Call
	// WroteBytes is the total size of all writes in bytes.
	WroteBytes uint64

	info  gpu.AdapterInfo
	rules rules.Device
	enc   encoder
	// recordings holds all recordings created so far.
	recordings []*recording
	counts     [kinds]int
	faults     [kinds]fault
	nowNS      int64
}

// Info implements gpu.Device.
func (d *Device) Info() gpu.AdapterInfo { return d.info }

// Live returns the number of objects that have not been released.
func (d *Device) Live() rules.Live { return d.rules.Live() }

// Levels returns the number of levels of the last submitted recording (see gpu.Barriers).
func (d *Device) Levels() int { return d.rules.Levels }

// Misuse returns the errors of invalid calls to methods that return no error, such as a second Release.
func (d *Device) Misuse() []error { return d.rules.Misuse }

// NowNS returns the time of the GPU clock in ns.
func (d *Device) NowNS() int64 { return d.nowNS }

// Idle advances the GPU clock by ns.
func (d *Device) Idle(ns int64) { d.nowNS += ns }

// Lose makes every later call fail with gpu.ErrDeviceLost.
func (d *Device) Lose(cause string) { d.rules.Lose(errors.New(cause)) }

// Release implements gpu.Device.
func (d *Device) Release() { d.rules.Release() }

type buffer struct {
	rules.Buffer
	bytes []byte
}

// NewBuffer implements gpu.Device.
func (d *Device) NewBuffer(label string, size uint64, usage gpu.Usage) (gpu.Buffer, error) {
	b := &buffer{}
	var err error
	if err = d.call(Call{Kind: NewBuffer, Label: label, Size: size}); err != nil {
		return nil, err
	}
	if b.Buffer, err = d.rules.Buffer(label, size, usage); err != nil {
		return nil, err
	}
	b.bytes = make([]byte, size)
	b.Made(func() {})
	return b, nil
}

// Bytes returns the current content of a buffer that this driver created.
func Bytes(b gpu.Buffer) []byte { return b.(*buffer).bytes }

type pipeline struct {
	rules.Pipeline
	source string
}

// NewPipeline implements gpu.Device. Every source compiles, unless a test makes the call fail with Fault.
func (d *Device) NewPipeline(desc gpu.PipelineDesc) (gpu.Pipeline, error) {
	p := &pipeline{source: desc.Source}
	var err error
	if err = d.call(Call{Kind: NewPipeline, Label: desc.Label}); err != nil {
		return nil, err
	}
	if p.Pipeline, err = d.rules.Pipeline(desc); err != nil {
		return nil, err
	}
	p.Made(func() {})
	return p, nil
}

type bindGroup struct {
	rules.BindGroup
	bound []Bound
}

// NewBindGroup implements gpu.Device.
func (d *Device) NewBindGroup(label string, p gpu.Pipeline, bindings []gpu.Binding) (gpu.BindGroup, error) {
	if err := d.call(Call{Kind: NewBindGroup, Label: label}); err != nil {
		return nil, err
	}
	var validated *rules.Pipeline
	if own, ok := p.(*pipeline); ok {
		validated = &own.Pipeline
	}
	bound := make([]rules.Bound, len(bindings))
	for i, b := range bindings {
		bound[i] = rules.Bound{Offset: b.Offset, Size: b.Size}
		if own, ok := b.Buffer.(*buffer); ok {
			bound[i].Buffer = &own.Buffer
		}
	}
	g := &bindGroup{bound: make([]Bound, len(bound))}
	var err error
	if g.BindGroup, err = d.rules.BindGroup(label, validated, bound); err != nil {
		return nil, err
	}
	for i, b := range bound {
		bytes := bindings[i].Buffer.(*buffer).bytes
		g.bound[i] = Bound{b.Buffer.Label(), b.Access, b.Offset, bytes[b.Offset : b.Offset+b.Size]}
	}
	g.Made(func() {})
	return g, nil
}

type readback struct {
	rules.Readback
	dev   *Device
	bytes []byte
}

// NewReadback implements gpu.Device.
func (d *Device) NewReadback(label string, size uint64) (gpu.Readback, error) {
	r := &readback{dev: d}
	var err error
	if err = d.call(Call{Kind: NewReadback, Label: label, Size: size}); err != nil {
		return nil, err
	}
	if r.Readback, err = d.rules.Readback(label, size); err != nil {
		return nil, err
	}
	r.bytes = make([]byte, size)
	r.Made(func() {})
	return r, nil
}

// Read implements gpu.Readback.
func (r *readback) Read(dst []byte, offset uint64) error {
	if err := r.dev.call(Call{
		Kind: Read, Label: r.Label(), Offset: offset,
		Size: uint64(len(dst)),
	}); err != nil {
		return err
	}
	if err := r.Readback.Read(len(dst), offset); err != nil {
		return err
	}
	copy(dst, r.bytes[offset:])
	if r.dev.OnRead != nil {
		r.dev.OnRead(r.Label(), offset, dst)
	}
	return nil
}

type timestamps struct {
	rules.Timestamps
	dev      *Device
	ticks    []uint64 // readings that the encoder wrote to the slots
	resolved []uint64 // readings that Resolve copied for the host
}

// NewTimestamps implements gpu.Device.
func (d *Device) NewTimestamps(n int) (gpu.Timestamps, error) {
	t := &timestamps{dev: d}
	var err error
	if err = d.call(Call{Kind: NewTimestamps, Size: uint64(max(n, 0))}); err != nil {
		return nil, err
	}
	if t.Timestamps, err = d.rules.Timestamps(n); err != nil {
		return nil, err
	}
	t.ticks, t.resolved = make([]uint64, n), make([]uint64, n)
	t.Made(func() {})
	return t, nil
}

// Read implements gpu.Timestamps.
func (t *timestamps) Read(ticks []uint64) error {
	if err := t.dev.call(Call{Kind: ReadTimestamps, Size: uint64(len(ticks))}); err != nil {
		return err
	}
	if err := t.Timestamps.Read(len(ticks)); err != nil {
		return err
	}
	copy(ticks, t.resolved)
	return nil
}

// Write implements gpu.Device.
func (d *Device) Write(b gpu.Buffer, offset uint64, data []byte) error {
	own, ok := b.(*buffer)
	if !ok {
		return d.rules.Write(nil, offset, len(data))
	}
	if err := d.call(Call{
		Kind: Write, Label: own.Label(), Offset: offset,
		Size: uint64(len(data)),
	}); err != nil {
		return err
	}
	if err := d.rules.Write(&own.Buffer, offset, len(data)); err != nil {
		return err
	}
	copy(own.bytes[offset:], data)
	d.WroteBytes += uint64(len(data))
	return nil
}

// Flush implements gpu.Device. The data of earlier writes is already on the device.
func (d *Device) Flush() error {
	if err := d.call(Call{Kind: Flush}); err != nil {
		return err
	}
	return d.rules.Err()
}

// Wait implements gpu.Device.
func (d *Device) Wait() error {
	if err := d.call(Call{Kind: Wait}); err != nil {
		return err
	}
	if err := d.rules.Err(); err != nil {
		return err
	}
	d.rules.Waited()
	return nil
}

func (d *Device) String() string { return fmt.Sprintf("fake device %s", d.info.Name) }
