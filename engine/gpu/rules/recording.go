package rules

import (
	"errors"
	"fmt"
	"slices"
)

// Recording validates the use of recorded commands. A driver reuses a Recording after it has ended.
type Recording struct {
	dev     *Device
	label   string
	serial  uint64 // serial number of the encoder
	state   state
	targets []*Readback
	stamps  []stamped
	levels  int
}

// state is the stage of a recording.
type state uint8

const (
	ended state = iota // ended, or not begun yet
	recorded
	submitted
)

// stamped is a set of timestamp slots that a recording uses.
type stamped struct {
	of       *Timestamps
	resolved int // number of slots that the recording resolves
}

// forget is called when a recording is discarded. It resets the `written` entries of the timestamp slots that
// this recording would have written.
func forget(list []stamped, serial uint64) {
	for _, s := range list {
		for i, by := range s.of.written {
			if by == serial {
				s.of.written[i] = 0
			}
		}
	}
}

// Label returns the label of the recording.
func (r *Recording) Label() string { return r.label }

// Serial returns a number above 0 that identifies the recording among all recordings of the device, even
// when their memory is reused.
func (r *Recording) Serial() uint64 { return r.serial }

// Ended reports whether the recording can be reused.
func (r *Recording) Ended() bool { return r.state == ended }

// errRecording reports that a method of a recording was called in the wrong order.
var errRecording = errors.New("wrong order of calls: call Submit once and then Wait once; after Discard, call neither")

// Ready returns an error if the recording cannot be submitted. Ready also returns an error if a readback of
// the recording has been released, because the copied data could not be read.
func (r *Recording) Ready() error {
	switch {
	case r.dev == nil || r.state != recorded:
		return fmt.Errorf("recording %s: submit: %w", r.label, errRecording)
	case r.dev.gone != nil:
		return r.dev.gone
	}
	for _, t := range r.targets {
		if err := t.usable(r.dev); err != nil {
			return fmt.Errorf("encoder %s: %w", r.label, err)
		}
	}
	return nil
}

// Submitted records that the driver has submitted the recording.
func (r *Recording) Submitted() {
	d := r.dev
	for _, t := range r.targets {
		if t.inFlight == 0 {
			d.pending = append(d.pending, t)
		}
		t.inFlight = r.serial
	}
	for _, s := range r.stamps {
		if s.resolved > 0 {
			if s.of.inFlight == 0 {
				d.stamped = append(d.stamped, s.of)
			}
			s.of.inFlight, s.of.resolved = r.serial, max(s.of.resolved, s.resolved)
		}
	}
	d.Levels = r.levels
	r.leave(submitted)
}

// leave changes the state of the recording from recorded to another state.
func (r *Recording) leave(to state) {
	d := r.dev
	r.state = to
	d.recorded = slices.DeleteFunc(d.recorded, func(x *Recording) bool { return x == r })
	d.giveBack()
}

// Waiting returns an error if the recording cannot be waited for.
func (r *Recording) Waiting() error {
	switch {
	case r.dev == nil || r.state != submitted:
		return fmt.Errorf("recording %s: wait: %w", r.label, errRecording)
	case r.dev.gone != nil:
		return r.dev.gone
	}
	return nil
}

// Waited records that the recording's copies and timestamps have arrived, and ends the recording.
func (r *Recording) Waited() {
	for _, t := range r.targets {
		if t.inFlight == r.serial {
			t.arrived()
		}
	}
	for _, s := range r.stamps {
		if s.of.inFlight == r.serial {
			s.of.arrived()
		}
	}
	d := r.dev
	d.pending = slices.DeleteFunc(d.pending, func(t *Readback) bool { return t.inFlight == 0 })
	d.stamped = slices.DeleteFunc(d.stamped, func(t *Timestamps) bool { return t.inFlight == 0 })
	r.End()
}

// Discard ends a recording that was not submitted and will not run. Discard has no effect on recordings in
// any other state.
func (r *Recording) Discard() {
	if r.state != recorded {
		return
	}
	forget(r.stamps, r.serial)
	r.leave(ended)
	r.End()
}

// End makes a submitted recording available for reuse. The device's Wait can still make the copied data
// readable.
func (r *Recording) End() {
	if r.state != recorded {
		r.state, r.targets, r.stamps = ended, r.targets[:0], r.stamps[:0]
	}
}

// waiting reports whether a finished recording with the given serial number has not been submitted yet.
func (d *Device) waiting(serial uint64) bool {
	return slices.ContainsFunc(d.recorded, func(r *Recording) bool { return r.serial == serial })
}

// giveBack frees the native memory of objects that were released while a recording might use them. It does
// nothing as long as such a recording exists.
func (d *Device) giveBack() {
	if d.open != nil || len(d.recorded) > 0 {
		return
	}
	for _, free := range d.deferredReleases {
		free()
	}
	clear(d.deferredReleases)
	d.deferredReleases = d.deferredReleases[:0]
}
