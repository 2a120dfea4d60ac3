package rules

import (
	"errors"
	"fmt"
	"slices"
)

// Recording is the validation of commands that were recorded. A driver uses it again when it has ended.
type Recording struct {
	dev     *Device
	label   string
	serial  uint64 // the encoder's
	state   state
	targets []*Readback
	stamps  []stamped
	levels  int
}

// state is how far a recording is.
type state uint8

const (
	ended state = iota // or never begun
	recorded
	submitted
)

// stamped is a set of clock readings that a recording uses.
type stamped struct {
	of       *Timestamps
	resolved int // how many of them
}

// forget makes the slots that a recording would have written such as nobody wrote.
func forget(list []stamped, serial uint64) {
	for _, s := range list {
		for i, by := range s.of.written {
			if by == serial {
				s.of.written[i] = 0
			}
		}
	}
}

// Label is what the recording was called.
func (r *Recording) Label() string { return r.label }

// Serial tells the recording from all others of its device, whatever memory they have; it is above 0.
func (r *Recording) Serial() uint64 { return r.serial }

// Ended says whether the recording may be used again.
func (r *Recording) Ended() bool { return r.state == ended }

// errRecording is a recording used out of order.
var errRecording = errors.New("it is submitted once, then waited for once, and neither after Discard")

// Ready says whether the recording can be submitted. A readback that was released since it was recorded
// cannot be read, and so is refused here.
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

// Submitted says that the device took the recording.
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

// leave ends the time in which the recording could be submitted.
func (r *Recording) leave(to state) {
	d := r.dev
	r.state = to
	d.recorded = slices.DeleteFunc(d.recorded, func(x *Recording) bool { return x == r })
	d.giveBack()
}

// Waiting says whether the recording can be waited for.
func (r *Recording) Waiting() error {
	switch {
	case r.dev == nil || r.state != submitted:
		return fmt.Errorf("recording %s: wait: %w", r.label, errRecording)
	case r.dev.gone != nil:
		return r.dev.gone
	}
	return nil
}

// Waited says that what the recording copied out and resolved has come, and ends it.
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

// Discard ends a recording that was not submitted and will not run. It has no effect on others.
func (r *Recording) Discard() {
	if r.state != recorded {
		return
	}
	forget(r.stamps, r.serial)
	r.leave(ended)
	r.End()
}

// End makes a recording that was submitted free for use. What it has copied out comes with the device's Wait.
func (r *Recording) End() {
	if r.state != recorded {
		r.state, r.targets, r.stamps = ended, r.targets[:0], r.stamps[:0]
	}
}

// waiting says whether the recording of a serial was not submitted yet.
func (d *Device) waiting(serial uint64) bool {
	return slices.ContainsFunc(d.recorded, func(r *Recording) bool { return r.serial == serial })
}

// giveBack frees what was released while a recording may have used it, when there is none any more.
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
