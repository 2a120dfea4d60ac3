package rules

import (
	"errors"
	"fmt"

	"gpuscope/engine/gpu"
)

// Encoder validates commands while they are being recorded. A driver has one Encoder for each device and
// calls its Begin for every recording.
type Encoder struct {
	dev     *Device
	label   string
	serial  uint64
	inPass  bool
	pass    string
	err     error // first error; the recording is then not submitted
	passErr error // first error of the pass
	targets []*Readback
	stamps  []stamped

	barriers gpu.Barriers
}

// errState reports that an encoder method was called in the wrong order.
var errState = errors.New("the encoder is not recording: call Begin first, and make no calls after Submit, Finish or Discard")

// Begin starts a recording.
func (e *Encoder) Begin(d *Device, label string) error {
	if d.gone != nil {
		return d.gone
	}
	if d.open != nil {
		return fmt.Errorf("encoder %s: encoder %s is still recording, and only one can record at a time",
			label,
			d.open.label)
	}
	d.serial++
	d.open = e
	e.dev, e.label, e.serial = d, label, d.serial
	e.inPass, e.err, e.passErr = false, nil, nil
	e.barriers.Begin()
	return nil
}

// Label returns the label of the recording.
func (e *Encoder) Label() string { return e.label }

// Recording reports whether the encoder is recording, so that commands can be added.
func (e *Encoder) Recording() bool { return e.dev != nil && e.dev.open == e }

// Fail adds an error to the recording. The driver calls it with the errors that it finds itself. A recording
// with an error is not submitted.
func (e *Encoder) Fail(err error) error {
	err = fmt.Errorf("encoder %s: %w", e.label, err)
	if e.err == nil {
		e.err = err
	}
	return err
}

// between checks a command that is allowed only between passes. It returns an error if a pass is open or if
// the encoder is not recording.
func (e *Encoder) between(what string) error {
	switch {
	case !e.Recording():
		return fmt.Errorf("encoder %s: %s: %w", e.label, what, errState)
	case e.dev.gone != nil:
		return e.dev.gone
	case e.inPass:
		return e.Fail(fmt.Errorf("%s is not allowed while pass %s is open", what, e.pass))
	}
	return nil
}

// BeginPass opens a pass.
func (e *Encoder) BeginPass(label string) error {
	if err := e.between("pass"); err != nil {
		return err
	}
	e.inPass, e.pass, e.passErr = true, label, nil
	e.barriers.BeginPass()
	return nil
}

// Dispatch validates a dispatch. If it returns an error, EndPass later returns the same error.
func (e *Encoder) Dispatch(p *Pipeline, g *BindGroup, x, y, z uint32) error {
	err := e.checkDispatch(p, g, x, y, z)
	if err != nil {
		e.FailPass(err)
		return err
	}
	for i := range g.bound {
		e.barriers.Touch(g.bound[i].Buffer.index, g.bound[i].Access)
	}
	e.barriers.Dispatch()
	return nil
}

// FailPass records an error of the pass. EndPass will return the first such error.
func (e *Encoder) FailPass(err error) {
	if e.passErr == nil {
		e.passErr = fmt.Errorf("pass %s: %w", e.pass, err)
	}
}

func (e *Encoder) checkDispatch(p *Pipeline, g *BindGroup, x, y, z uint32) error {
	if !e.Recording() {
		return errState
	}
	if e.dev.gone != nil {
		return e.dev.gone
	}
	if !e.inPass {
		err := errors.New("dispatch outside of a pass")
		e.Fail(err)
		return err
	}
	if p == nil || g == nil {
		return (*Object)(nil).usable(e.dev)
	}
	if err := p.usable(e.dev); err != nil {
		return err
	}
	if err := g.usable(e.dev); err != nil {
		return err
	}
	if len(g.bound) != len(p.bindings) {
		return p.wrong("%s has %d bindings, but this pipeline needs %d bindings",
			g, len(g.bound), len(p.bindings))
	}
	for i := range g.bound {
		if g.bound[i].Access != p.bindings[i] {
			return p.wrong("binding %d of %s has access %s, but this pipeline needs access %s",
				i, g, g.bound[i].Access, p.bindings[i])
		}
		if g.bound[i].Buffer.released {
			return p.wrong("binding %d of %s: %w", i, g, g.bound[i].Buffer.usable(e.dev))
		}
	}
	if limit := e.dev.Limits.MaxWorkgroups; x < 1 || y < 1 || z < 1 || x > limit || y > limit || z > limit {
		return p.wrong("the grid has %d x %d x %d workgroups, but each dimension must be from 1 to %d", x, y,
			z, limit)
	}
	return nil
}

// EndPass closes the pass and returns the first error in it.
func (e *Encoder) EndPass() error {
	if !e.Recording() {
		return fmt.Errorf("encoder %s: end of pass: %w", e.label, errState)
	}
	if !e.inPass {
		return e.Fail(errors.New("end of pass, but no pass is open"))
	}
	e.inPass = false
	e.barriers.EndPass()
	if e.passErr != nil {
		return e.Fail(e.passErr)
	}
	return nil
}

// Timestamp validates a command that writes the GPU clock to slot i.
func (e *Encoder) Timestamp(t *Timestamps, i int) error {
	if err := e.between("timestamp"); err != nil {
		return err
	}
	if err := e.useTimestamps(t); err != nil {
		return err
	}
	if i < 0 || i >= len(t.written) {
		return e.Fail(t.wrong("timestamp slot %d does not exist: there are %d slots", i, len(t.written)))
	}
	t.written[i] = e.serial
	e.touch(t)
	return nil
}

// Resolve checks that each slot from 0 to n-1 has been written. On some devices, resolving a slot that was
// never written waits forever.
func (e *Encoder) Resolve(t *Timestamps, n int) error {
	if err := e.between("resolve"); err != nil {
		return err
	}
	if err := e.useTimestamps(t); err != nil {
		return err
	}
	if n < 1 || n > len(t.written) {
		return e.Fail(t.wrong("cannot resolve %d timestamp slots: want 1 to %d", n, len(t.written)))
	}
	for i, serial := range t.written[:n] {
		if serial == 0 || serial != e.serial && e.dev.waiting(serial) {
			return e.Fail(t.wrong("cannot resolve %d timestamp slots: slot %d was never written", n, i))
		}
	}
	at := e.touch(t)
	e.stamps[at].resolved = max(e.stamps[at].resolved, n)
	return nil
}

func (e *Encoder) useTimestamps(t *Timestamps) error {
	if t == nil {
		return e.Fail((*Object)(nil).usable(e.dev))
	}
	if err := t.usable(e.dev); err != nil {
		return e.Fail(err)
	}
	return nil
}

// touch records that the recording uses t, and returns the index of t in `stamps`.
func (e *Encoder) touch(t *Timestamps) int {
	if len(e.stamps) == 0 || e.stamps[len(e.stamps)-1].of != t {
		e.stamps = append(e.stamps, stamped{of: t})
	}
	return len(e.stamps) - 1
}

// Copy validates a copy between two buffers.
func (e *Encoder) Copy(src *Buffer, srcOffset uint64, dst *Buffer, dstOffset, size uint64) error {
	if err := e.between("copy"); err != nil {
		return err
	}
	if err := e.checkCopy(src, srcOffset, size); err != nil {
		return err
	}
	if err := e.checkCopy(dst, dstOffset, size); err != nil {
		return err
	}
	if src == dst {
		return e.Fail(src.wrong("cannot copy the buffer to itself"))
	}
	e.barriers.Copy(src.index, dst.index)
	return nil
}

// CopyOut validates a copy to a readback.
func (e *Encoder) CopyOut(src *Buffer, srcOffset uint64, dst *Readback, dstOffset, size uint64) error {
	if err := e.between("copy out"); err != nil {
		return err
	}
	if err := e.checkCopy(src, srcOffset, size); err != nil {
		return err
	}
	if dst == nil {
		return e.Fail((*Object)(nil).usable(e.dev))
	}
	if err := dst.usable(e.dev); err != nil {
		return e.Fail(err)
	}
	if err := dst.span("copy of", dstOffset, size, dst.size); err != nil {
		return e.Fail(err)
	}
	e.targets = append(e.targets, dst)
	e.barriers.Copy(src.index, -1)
	return nil
}

func (e *Encoder) checkCopy(b *Buffer, offset, size uint64) error {
	if b == nil {
		return e.Fail((*Object)(nil).usable(e.dev))
	}
	if err := b.usable(e.dev); err != nil {
		return e.Fail(err)
	}
	if err := b.span("copy of", offset, size, b.size); err != nil {
		return e.Fail(err)
	}
	return nil
}

// Finish ends the recording and stores it in r, which must not be in use. Finish returns the first error of
// the recording. r may be nil if the encoder is not recording.
func (e *Encoder) Finish(r *Recording) error {
	err := e.finished()
	if err != nil {
		e.Discard()
		return err
	}
	d := e.dev
	r.targets, e.targets = e.targets, r.targets[:0]
	r.stamps, e.stamps = e.stamps, r.stamps[:0]
	r.dev, r.label, r.serial, r.levels, r.state = d, e.label, e.serial, e.barriers.Levels(), recorded
	d.recorded = append(d.recorded, r)
	d.open = nil
	return nil
}

func (e *Encoder) finished() error {
	switch {
	case !e.Recording():
		return fmt.Errorf("encoder %s: submit: %w", e.label, errState)
	case e.dev.gone != nil:
		return e.dev.gone
	case e.err != nil:
		return fmt.Errorf("not submitted: %w", e.err)
	case e.inPass:
		return e.Fail(fmt.Errorf("cannot submit while pass %s is open", e.pass))
	}
	return nil
}

// Discard ends the recording without running it. Discard has no effect if the encoder is not recording.
func (e *Encoder) Discard() {
	if !e.Recording() {
		return
	}
	forget(e.stamps, e.serial)
	e.targets, e.stamps, e.inPass = e.targets[:0], e.stamps[:0], false
	e.dev.open = nil
	e.dev.giveBack()
}
