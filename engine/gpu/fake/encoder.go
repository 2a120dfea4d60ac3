package fake

import (
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/rules"
)

// encoder records commands and runs them at Submit. A device has one encoder and reuses it for every
// recording.
type encoder struct {
	rules.Encoder
	dev      *Device
	commands []command
	pass     string
}

// command is one recorded command.
type command struct {
	kind       Kind
	pipeline   *pipeline
	group      *bindGroup
	x, y, z    uint32
	pass       string
	src, dst   []byte
	timestamps *timestamps
	n          int
}

// Begin implements gpu.Device.
func (d *Device) Begin(label string) (gpu.Encoder, error) {
	if err := d.call(Call{Kind: Begin, Label: label}); err != nil {
		return nil, err
	}
	if err := d.enc.Encoder.Begin(&d.rules, label); err != nil {
		return nil, err
	}
	d.enc.commands = d.enc.commands[:0]
	return &d.enc, nil
}

// BeginPass implements gpu.Encoder.
func (e *encoder) BeginPass(label string) error {
	if err := e.call(Call{Kind: BeginPass, Label: label}); err != nil {
		return err
	}
	if err := e.Encoder.BeginPass(label); err != nil {
		return err
	}
	e.pass = label
	e.commands = append(e.commands, command{kind: BeginPass})
	return nil
}

// Dispatch implements gpu.Encoder.
func (e *encoder) Dispatch(p gpu.Pipeline, g gpu.BindGroup, x, y, z uint32) {
	pl, ok1 := p.(*pipeline)
	bg, ok2 := g.(*bindGroup)
	if !ok1 || !ok2 {
		e.Encoder.Dispatch(nil, nil, x, y, z)
		return
	}
	if err := e.dev.call(Call{Kind: Run, Label: pl.Label(), From: bg.Label(), X: x, Y: y, Z: z}); err != nil {
		e.FailPass(err)
		return
	}
	if e.Encoder.Dispatch(&pl.Pipeline, &bg.BindGroup, x, y, z) == nil {
		e.commands = append(e.commands,
			command{kind: Run, pipeline: pl, group: bg, x: x, y: y, z: z, pass: e.pass})
	}
}

// EndPass implements gpu.Encoder.
func (e *encoder) EndPass() error {
	if err := e.call(Call{Kind: EndPass, Label: e.pass}); err != nil {
		e.Encoder.EndPass()
		return err
	}
	return e.Encoder.EndPass()
}

// Timestamp implements gpu.Encoder.
func (e *encoder) Timestamp(t gpu.Timestamps, i int) error {
	own, ok := t.(*timestamps)
	if !ok {
		return e.Encoder.Timestamp(nil, i)
	}
	if err := e.call(Call{Kind: Timestamp, Offset: uint64(max(i, 0))}); err != nil {
		return err
	}
	if err := e.Encoder.Timestamp(&own.Timestamps, i); err != nil {
		return err
	}
	e.commands = append(e.commands, command{kind: Timestamp, timestamps: own, n: i})
	return nil
}

// Resolve implements gpu.Encoder.
func (e *encoder) Resolve(t gpu.Timestamps, n int) error {
	own, ok := t.(*timestamps)
	if !ok {
		return e.Encoder.Resolve(nil, n)
	}
	if err := e.call(Call{Kind: Resolve, Size: uint64(max(n, 0))}); err != nil {
		return err
	}
	if err := e.Encoder.Resolve(&own.Timestamps, n); err != nil {
		return err
	}
	e.commands = append(e.commands, command{kind: Resolve, timestamps: own, n: n})
	return nil
}

// Copy implements gpu.Encoder.
func (e *encoder) Copy(src gpu.Buffer, srcOffset uint64, dst gpu.Buffer, dstOffset, size uint64) error {
	from, ok1 := src.(*buffer)
	to, ok2 := dst.(*buffer)
	if !ok1 || !ok2 {
		return e.Encoder.Copy(nil, srcOffset, nil, dstOffset, size)
	}
	if err := e.call(Call{
		Kind: Copy, Label: to.Label(), From: from.Label(), Offset: dstOffset,
		Size: size,
	}); err != nil {
		return err
	}
	if err := e.Encoder.Copy(&from.Buffer, srcOffset, &to.Buffer, dstOffset, size); err != nil {
		return err
	}
	e.commands = append(e.commands,
		command{kind: Copy, src: from.bytes[srcOffset:][:size], dst: to.bytes[dstOffset:][:size]})
	return nil
}

// CopyOut implements gpu.Encoder.
func (e *encoder) CopyOut(src gpu.Buffer, srcOffset uint64, dst gpu.Readback, dstOffset, size uint64) error {
	from, ok1 := src.(*buffer)
	to, ok2 := dst.(*readback)
	if !ok1 || !ok2 {
		return e.Encoder.CopyOut(nil, srcOffset, nil, dstOffset, size)
	}
	if err := e.call(Call{
		Kind: CopyOut, Label: to.Label(), From: from.Label(), Offset: dstOffset,
		Size: size,
	}); err != nil {
		return err
	}
	if err := e.Encoder.CopyOut(&from.Buffer, srcOffset, &to.Readback, dstOffset, size); err != nil {
		return err
	}
	e.commands = append(e.commands,
		command{kind: Copy, src: from.bytes[srcOffset:][:size], dst: to.bytes[dstOffset:][:size]})
	return nil
}

// Submit implements gpu.Encoder. The commands run during this call.
func (e *encoder) Submit() error {
	r, err := e.Finish()
	if err != nil {
		return err
	}
	return r.(*recording).submit()
}

// Finish implements gpu.Encoder.
func (e *encoder) Finish() (gpu.Recording, error) {
	if !e.Recording() {
		return nil, e.Encoder.Finish(nil)
	}
	r := e.dev.recording()
	if err := e.Encoder.Finish(&r.Recording); err != nil {
		return nil, err
	}
	r.commands, e.commands = e.commands, r.commands[:0]
	return r, nil
}

// Discard implements gpu.Encoder.
func (e *encoder) Discard() {
	_ = e.dev.call(Call{Kind: Discard, Label: e.Label()}) // Discard cannot report this error
	e.Encoder.Discard()
}

// call logs a call of the encoder. If a fault was injected for this call, the recording fails.
func (e *encoder) call(c Call) error {
	if err := e.dev.call(c); err != nil {
		return e.Fail(err)
	}
	return nil
}

// run executes a command.
func (d *Device) run(c *command) {
	switch c.kind {
	case BeginPass:
		d.nowNS += d.PassNS
	case Run:
		if d.OnDispatch != nil {
			d.OnDispatch(Dispatch{
				Pipeline: c.pipeline.Label(), Source: c.pipeline.source, Entry: c.pipeline.Entry,
				Pass: c.pass, Group: c.group.Label(),
				Bound: c.group.bound, X: c.x, Y: c.y, Z: c.z,
			})
		}
		if d.Duration == nil {
			d.nowNS += 1000
		} else {
			d.nowNS += d.Duration(c.pipeline.Label(), c.x, c.y, c.z)
		}
	case Timestamp:
		c.timestamps.ticks[c.n] = uint64(d.nowNS / max(d.NSPerTick, 1))
	case Resolve:
		copy(c.timestamps.resolved[:c.n], c.timestamps.ticks)
	case Copy:
		copy(c.dst, c.src)
	}
}
