//go:build cgo

package wgpu

import (
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/rules"
)

// encoder implements gpu.Encoder as a list of commands, which a single native call encodes when the
// recording ends. A device reuses its only encoder for every recording.
type encoder struct {
	rules.Encoder
	dev      *device
	commands []command
	targets  []*hostBuffer
}

// Begin implements gpu.Device.
func (d *device) Begin(label string) (gpu.Encoder, error) {
	if err := d.enc.Encoder.Begin(&d.rules, label); err != nil {
		return nil, err
	}
	d.enc.commands, d.enc.targets = d.enc.commands[:0], d.enc.targets[:0]
	return &d.enc, nil
}

// BeginPass implements gpu.Encoder.
func (e *encoder) BeginPass(label string) error {
	if err := e.Encoder.BeginPass(label); err != nil {
		return err
	}
	e.commands = append(e.commands, command{op: opBeginPass, a: address(handle(e.dev.labels.get(label)))})
	return nil
}

// Dispatch implements gpu.Encoder.
func (e *encoder) Dispatch(p gpu.Pipeline, g gpu.BindGroup, x, y, z uint32) {
	pl, ok1 := p.(*pipeline)
	bg, ok2 := g.(*bindGroup)
	if !ok1 || !ok2 {
		_ = e.Encoder.Dispatch(nil, nil, x, y, z) // EndPass returns this error again
		return
	}
	if e.Encoder.Dispatch(&pl.Pipeline, &bg.BindGroup, x, y, z) != nil {
		return
	}
	c := command{op: opDispatch, a: address(pl.ref), b: address(bg.ref)}
	c.x, c.y, c.z = u32(x), u32(y), u32(z)
	e.commands = append(e.commands, c)
}

// EndPass implements gpu.Encoder.
func (e *encoder) EndPass() error {
	if err := e.Encoder.EndPass(); err != nil {
		return err
	}
	e.commands = append(e.commands, command{op: opEndPass})
	return nil
}

// Timestamp implements gpu.Encoder.
func (e *encoder) Timestamp(t gpu.Timestamps, i int) error {
	own, ok := t.(*timestamps)
	if !ok {
		return e.Encoder.Timestamp(nil, i)
	}
	if err := e.Encoder.Timestamp(&own.Timestamps, i); err != nil {
		return err
	}
	e.commands = append(e.commands,
		command{
			op: opTimestamp, a: address(ref(own.sets[i/queriesPerSet])),
			x: u32(uint32(i % queriesPerSet)),
		})
	return nil
}

// Resolve implements gpu.Encoder.
func (e *encoder) Resolve(t gpu.Timestamps, n int) error {
	own, ok := t.(*timestamps)
	if !ok {
		return e.Encoder.Resolve(nil, n)
	}
	if err := e.Encoder.Resolve(&own.Timestamps, n); err != nil {
		return err
	}
	dst := ownedRef(own.resolved)
	for set, first := 0, 0; first < n; set, first = set+1, first+queriesPerSet {
		e.commands = append(e.commands, command{
			op: opResolve, a: address(ref(own.sets[set])), y: u32(uint32(min(queriesPerSet, n-first))),
			b: address(dst), to: u64(uint64(first) * rules.TickBytes),
		})
	}
	e.copy(dst, 0, own.host.mapping.buffer, 0, uint64(n)*rules.TickBytes)
	e.targets = append(e.targets, own.host)
	return nil
}

// Copy implements gpu.Encoder.
func (e *encoder) Copy(src gpu.Buffer, srcOffset uint64, dst gpu.Buffer, dstOffset, size uint64) error {
	from, ok1 := src.(*buffer)
	to, ok2 := dst.(*buffer)
	if !ok1 || !ok2 {
		return e.Encoder.Copy(nil, srcOffset, nil, dstOffset, size)
	}
	if err := e.Encoder.Copy(&from.Buffer, srcOffset, &to.Buffer, dstOffset, size); err != nil {
		return err
	}
	e.copy(from.ref, srcOffset, to.ref, dstOffset, size)
	return nil
}

// CopyOut implements gpu.Encoder.
func (e *encoder) CopyOut(src gpu.Buffer, srcOffset uint64, dst gpu.Readback, dstOffset, size uint64) error {
	from, ok1 := src.(*buffer)
	to, ok2 := dst.(*readback)
	if !ok1 || !ok2 {
		return e.Encoder.CopyOut(nil, srcOffset, nil, dstOffset, size)
	}
	if err := e.Encoder.CopyOut(&from.Buffer, srcOffset, &to.Readback, dstOffset, size); err != nil {
		return err
	}
	e.copy(from.ref, srcOffset, to.host.mapping.buffer, dstOffset, size)
	e.targets = append(e.targets, to.host)
	return nil
}

func (e *encoder) copy(src handle, srcOffset uint64, dst handle, dstOffset, size uint64) {
	e.commands = append(e.commands, command{
		op: opCopy, a: address(src), b: address(dst), from: u64(srcOffset), to: u64(dstOffset),
		size: u64(size),
	})
}

// Submit implements gpu.Encoder.
func (e *encoder) Submit() error {
	r, err := e.finish()
	if err == nil {
		err = r.Submit()
		r.End()
	}
	return err
}

// Finish implements gpu.Encoder.
func (e *encoder) Finish() (gpu.Recording, error) {
	r, err := e.finish()
	if err != nil {
		return nil, err
	}
	return r, nil
}

// finish encodes the list of commands in one native call.
func (e *encoder) finish() (*recording, error) {
	if !e.Recording() {
		return nil, e.Encoder.Finish(nil)
	}
	r := e.dev.recording()
	if err := e.Encoder.Finish(&r.Recording); err != nil {
		return nil, err
	}
	r.targets, e.targets = e.targets, r.targets[:0]
	var err error
	if r.commands, err = e.dev.native.record(e.dev.labels.get(e.Label()), e.commands); err != nil {
		r.Recording.Discard()
		return nil, fmt.Errorf("encoder %s: not submitted: %w", e.Label(), err)
	}
	return r, nil
}
