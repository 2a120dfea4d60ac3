// Package rules validates calls to a GPU driver in Go, before the driver acts. The rules are those that
// WebGPU requires of its callers. The validation is necessary because the native library aborts the process
// where a browser would report an error. The types of this package are Buffer, Readback, Pipeline, BindGroup,
// Timestamps, Encoder and Device. Every driver of engine/gpu embeds them in its own objects and calls their
// methods first. All drivers therefore reject the same calls with the same errors.
//
// The rules are as follows:
//
//   - An object is used only on the device that created it, and only before its release.
//   - Offsets, lengths, sizes, bindings and grids respect the alignments and limits of the device.
//   - A dispatch uses each buffer with only one kind of access.
//   - Passes do not nest.
//   - Only one encoder records at a time.
//   - An encoder that returned an error is not submitted.
//   - A timestamp slot is resolved only after it was written.
//   - A readback is read only after Submit and Wait.
//   - A kernel does not exceed the workgroup memory of the device.
//
// The package cannot detect errors that only the compiler knows about, such as a params block that is smaller
// than the kernel's struct. It cannot detect that memory runs out either.
package rules

import (
	"errors"
	"fmt"
	"strings"

	"gpuscope/engine/gpu"
)

// Kind is a kind of device object.
type Kind uint8

// The kinds. A device frees its remaining objects in this order, so that an object is freed before the
// objects that it uses.
const (
	BindGroupKind Kind = iota
	PipelineKind
	TimestampsKind
	ReadbackKind
	BufferKind
	kinds
)

// String returns the name of the kind in messages.
func (k Kind) String() string {
	return [...]string{"bind group", "pipeline", "timestamps", "readback", "buffer", "?"}[min(k, kinds)]
}

// Live counts the objects of a device that have not been released.
type Live struct{ Buffers, Readbacks, Pipelines, BindGroups, Timestamps int }

// Total returns the number of objects of all kinds.
func (l Live) Total() int { return l.Buffers + l.Readbacks + l.Pipelines + l.BindGroups + l.Timestamps }

// Device validates the calls of one device.
type Device struct {
	Limits gpu.Limits
	// HasTimestamps reports whether the device supports timestamps.
	HasTimestamps bool
	// Misuse holds the first few errors of calls that do not return an error, for example a second Release.
	Misuse []error
	// Levels is the number of levels in the last submitted recording (see gpu.Barriers).
	Levels int

	gone    error // why the device cannot be used any more, or nil
	live    [kinds]map[*Object]func()
	buffers int    // number of buffers created so far
	serial  uint64 // serial number of the last encoder that began to record
	open    *Encoder
	// recorded holds the recordings that were finished but not submitted.
	recorded []*Recording
	// pending and stamped hold the readbacks and timestamps of submitted recordings until a wait makes them
	// readable.
	pending []*Readback
	stamped []*Timestamps
	// deferredReleases holds functions that free native memory. They belong to objects that were released
	// while a recording might still use them.
	deferredReleases []func()
}

// Err returns the reason why the device cannot be used, or nil if it can be used.
func (d *Device) Err() error { return d.gone }

// Lose marks the device as lost. Every later call returns an error that wraps gpu.ErrDeviceLost and `cause`.
func (d *Device) Lose(cause error) {
	if d.gone == nil {
		d.gone = fmt.Errorf("%w: %w", gpu.ErrDeviceLost, cause)
	}
}

// Release frees all remaining objects and makes the device unusable. Release reports whether this is the
// first call.
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

// Live returns the number of objects that have not been released.
func (d *Device) Live() Live {
	return Live{
		Buffers: len(d.live[BufferKind]), Readbacks: len(d.live[ReadbackKind]),
		Pipelines:  len(d.live[PipelineKind]),
		BindGroups: len(d.live[BindGroupKind]), Timestamps: len(d.live[TimestampsKind]),
	}
}

// Waited records that all submitted work is done, so that readbacks and timestamps can be read.
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

// Object is the common part of all device objects. The zero value is not a valid object.
type Object struct {
	dev      *Device
	kind     Kind
	label    string
	released bool
}

// Made counts the object as live after the driver has created it. When the object or the device is released,
// the function `free` is called once to free the native memory. Call Made only when the object is stored at
// its final address.
func (o *Object) Made(free func()) {
	if o.dev.live[o.kind] == nil {
		o.dev.live[o.kind] = map[*Object]func(){}
	}
	o.dev.live[o.kind][o] = free
}

// Label returns the label that the object was created with.
func (o *Object) Label() string { return o.label }

// String returns the kind and label of the object, for messages.
func (o *Object) String() string {
	if o == nil {
		return "nothing"
	}
	return o.kind.String() + " " + o.label
}

// Release frees the object. A second call has no effect and is recorded as misuse. After the release of the
// device, a call has no effect and is not recorded.
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
	if o.dev.open != nil || len(o.dev.recorded) > 0 { // a recording may use the object
		o.dev.deferredReleases = append(o.dev.deferredReleases, free)
		return
	}
	free()
}

// usable returns an error if the object cannot be used on d.
func (o *Object) usable(d *Device) error {
	switch {
	case d.gone != nil:
		return d.gone
	case o == nil || o.dev == nil:
		return errors.New("the object was not created by this driver")
	case o.dev != d:
		return fmt.Errorf("%s: belongs to another device", o)
	case o.released:
		return fmt.Errorf("%s: used after its release", o)
	}
	return nil
}

// object returns the common part of a new device object.
func (d *Device) object(kind Kind, label string) Object {
	if label == "" {
		label = "without a label"
	}
	return Object{dev: d, kind: kind, label: strings.ToValidUTF8(strings.ReplaceAll(label, "\x00", ""), "?")}
}

// wrong returns an error that names the object.
func (o *Object) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: %w", o, fmt.Errorf(format, args...))
}
