// Package rules holds what WebGPU demands of its callers, checked in Go before a driver acts: the native
// library aborts the process where a browser would report an error, so nothing wrong may reach it. Every
// driver of engine/gpu embeds this validation in its objects (Buffer, Readback, Pipeline, BindGroup,
// Timestamps, Encoder, Device) and asks them first, so that all of them refuse the same things with the same
// words.
//
// The rules: an object is used on the device that made it, before its release; offsets, lengths, sizes,
// bindings and grids keep to the alignments and limits of the device; a dispatch uses one buffer in one way;
// passes do not nest; one encoder at a time; an encoder that met an error is not submitted; a clock reading
// is resolved only after it was written; a readback is read only after Submit and Wait; a kernel keeps to the
// device's workgroup memory.
//
// Not checked here: what only the compiler knows (a params block smaller than the kernel's struct) and
// running out of memory.
package rules

import (
	"errors"
	"fmt"
	"strings"

	"gpuscope/engine/gpu"
)

// Kind is a kind of object that a device makes.
type Kind uint8

// The kinds, in the order in which a device frees what its owner left: users before what they use.
const (
	BindGroupKind Kind = iota
	PipelineKind
	TimestampsKind
	ReadbackKind
	BufferKind
	kinds
)

// String is the word for an object of the kind.
func (k Kind) String() string {
	return [...]string{"bind group", "pipeline", "timestamps", "readback", "buffer", "?"}[min(k, kinds)]
}

// Live counts the objects of a device that were not released.
type Live struct{ Buffers, Readbacks, Pipelines, BindGroups, Timestamps int }

// Total is the number of objects of all kinds.
func (l Live) Total() int { return l.Buffers + l.Readbacks + l.Pipelines + l.BindGroups + l.Timestamps }

// Device is the validation of one device.
type Device struct {
	Limits gpu.Limits
	// HasTimestamps says whether NewTimestamps may be granted.
	HasTimestamps bool
	// Misuse holds what was wrong where a call returns no error (a second Release), the first few of it.
	Misuse []error
	// Levels is what gpu.Barriers counted in the recording submitted last.
	Levels int

	gone    error // why the device cannot be used any more
	live    [kinds]map[*Object]func()
	buffers int    // made so far
	serial  uint64 // of the encoder begun last
	open    *Encoder
	// recordings that were finished and not submitted
	recorded []*Recording
	pending  []*Readback // copied to by a submit that nobody waited for
	stamped  []*Timestamps
	// what gives memory back of objects that were released while a recording may have used them
	deferredReleases []func()
}

// Err says why the device cannot be used; nil while it can.
func (d *Device) Err() error { return d.gone }

// Lose marks the device as lost. Every later call returns an error that wraps gpu.ErrDeviceLost and cause.
func (d *Device) Lose(cause error) {
	if d.gone == nil {
		d.gone = fmt.Errorf("%w: %w", gpu.ErrDeviceLost, cause)
	}
}

// Release frees every object that was not released, and ends the use of the device. It reports whether this
// is the first call.
func (d *Device) Release() bool {
	if errors.Is(d.gone, errReleased) {
		d.misuse(errors.New("device: released twice"))
		return false
	}
	if d.open != nil {
		d.open.Discard()
	}
	for len(d.recorded) > 0 {
		d.recorded[0].Discard()
	}
	for kind := range d.live {
		for o, free := range d.live[kind] {
			o.released = true
			free()
		}
		d.live[kind] = nil
	}
	d.gone = errReleased
	return true
}

var errReleased = errors.New("device: used after its release")

// Live counts what is not released.
func (d *Device) Live() Live {
	return Live{
		Buffers: len(d.live[BufferKind]), Readbacks: len(d.live[ReadbackKind]),
		Pipelines:  len(d.live[PipelineKind]),
		BindGroups: len(d.live[BindGroupKind]), Timestamps: len(d.live[TimestampsKind]),
	}
}

// Waited tells the validation that all submitted work is done: readbacks and timestamps can be read.
func (d *Device) Waited() {
	for _, r := range d.pending {
		r.arrived()
	}
	for _, t := range d.stamped {
		t.arrived()
	}
	d.pending, d.stamped = d.pending[:0], d.stamped[:0]
}

func (d *Device) misuse(err error) {
	if len(d.Misuse) < 16 {
		d.Misuse = append(d.Misuse, err)
	}
}

// Object is what all objects of a device have in common. Its zero value is no object.
type Object struct {
	dev      *Device
	kind     Kind
	label    string
	released bool
}

// Made counts the object as live, once the driver has it; free gives its native memory back, called once by
// Release or by the device's. It must be called on the object's final address.
func (o *Object) Made(free func()) {
	if o.dev.live[o.kind] == nil {
		o.dev.live[o.kind] = map[*Object]func(){}
	}
	o.dev.live[o.kind][o] = free
}

// Label is what the object was called when it was made.
func (o *Object) Label() string { return o.label }

// String names the object in messages.
func (o *Object) String() string {
	if o == nil {
		return "nothing"
	}
	return o.kind.String() + " " + o.label
}

// Release gives the object back. A second call, or one after the release of the device, has no effect but is
// noted as misuse.
func (o *Object) Release() {
	if o.released {
		if o.dev.gone == nil {
			o.dev.misuse(fmt.Errorf("%s: released twice", o))
		}
		return
	}
	free := o.dev.live[o.kind][o]
	o.released = true
	delete(o.dev.live[o.kind], o)
	if o.dev.open != nil || len(o.dev.recorded) > 0 { // a recording may use it
		o.dev.deferredReleases = append(o.dev.deferredReleases, free)
		return
	}
	free()
}

// usable says what is wrong with using the object on d.
func (o *Object) usable(d *Device) error {
	switch {
	case d.gone != nil:
		return d.gone
	case o == nil || o.dev == nil:
		return errors.New("an object that this driver did not make")
	case o.dev != d:
		return fmt.Errorf("%s: belongs to another device", o)
	case o.released:
		return fmt.Errorf("%s: used after its release", o)
	}
	return nil
}

// object starts the validation of one.
func (d *Device) object(kind Kind, label string) Object {
	if label == "" {
		label = "without a label"
	}
	return Object{dev: d, kind: kind, label: strings.ToValidUTF8(strings.ReplaceAll(label, "\x00", ""), "?")}
}

// wrong is an error about the object.
func (o *Object) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: %w", o, fmt.Errorf(format, args...))
}
