package engine

import (
	"fmt"
	"time"

	"gpuscope/engine/gpu"
)

// To bring timestamps to the host is work that the GPU does after a step: on an H200 some 7 us, where to
// write them takes less than one. So steps that were prepared write theirs on one sheet, and the first of
// them that comes resolveEvery after the last that did so brings all of it to the host. What a step took is
// known when that one has ended, or where the steps end (Abandon); Settled says when.
//
// There are two sheets. While one comes to the host the next step writes on the other.

const (
	resolveEvery = 10 * time.Millisecond
	sheetLines   = 64
)

// sheets are those of an executor.
type sheets struct {
	both     [2]sheet
	turn     int // of the one that steps write on, unless that is closed
	resolved time.Time
	every    time.Duration // resolveEvery
	ticks    []uint64      // room for those of a sheet
}

// sheet is timestamps that come to the host together.
type sheet struct {
	stamps gpu.Timestamps
	lines  []line
	closed bool // the step of the last line resolves it
}

// line is a step of which the sheet has the timestamps, line n in 2n and 2n + 1.
type line struct {
	number       int       // of its flight
	begun, ended time.Time // as the host saw it; it has not ended where that is zero
	snapshot     *Snapshot // that waits for its times; nil where there is none
}

func (x *Executor) newSheets() error {
	x.sheets.every, x.sheets.ticks = resolveEvery, make([]uint64, 2*sheetLines)
	for i := range x.sheets.both {
		s := &x.sheets.both[i]
		var err error
		if s.stamps, err = x.dev.NewTimestamps(2 * sheetLines); err != nil {
			return err
		}
		x.own(s.stamps)
		s.lines = make([]line, 0, sheetLines)
	}
	return nil
}

// place gives a step that is to be recorded its place on a sheet, and says whether it resolves that.
func (s *sheets) place(f *flight) {
	if s.both[s.turn].closed {
		s.turn ^= 1
	}
	f.sheet = &s.both[s.turn]
	f.stamps, f.stampsAt = f.sheet.stamps, 2*len(f.sheet.lines)
	f.resolves = len(f.sheet.lines) == sheetLines-1 || time.Since(s.resolved) >= s.every
}

// enter writes a step that was prepared on its sheet, if it has one.
func (s *sheets) enter(f *flight) {
	if f.sheet == nil {
		return
	}
	f.sheet.lines, f.sheet.closed = append(f.sheet.lines, line{number: f.number}), f.resolves
	if f.resolves {
		s.resolved = time.Now()
	}
}

// strike takes the step that was entered last off its sheet: it will not run.
func (f *flight) strike() {
	if f.sheet != nil {
		f.sheet.lines, f.sheet.closed = f.sheet.lines[:f.stampsAt/2], false
	}
}

// line is where a step stands that waits for its timestamps, or does not run yet; nil where it does not.
func (f *flight) line() *line {
	if f.sheet == nil || f.stampsAt/2 >= len(f.sheet.lines) {
		return nil
	}
	if l := &f.sheet.lines[f.stampsAt/2]; l.number == f.number {
		return l
	}
	return nil
}

// clear makes a sheet empty. Steps whose times have not come have none.
func (s *sheet) clear() {
	clear(s.lines)
	s.lines, s.closed = s.lines[:0], false
}

// Settled says whether it is known what they took of all steps that have ended, so that snapshots of them can
// be recorded.
func (x *Executor) Settled() bool {
	for i := range x.sheets.both {
		if lines := x.sheets.both[i].lines; len(lines) > 0 && !lines[0].ended.IsZero() {
			return false
		}
	}
	return true
}

// settle brings to the host what was not brought. No step is on its way.
func (x *Executor) settle() (err error) {
	for range x.sheets.both {
		x.sheets.turn ^= 1 // the older one first
		if s := &x.sheets.both[x.sheets.turn]; len(s.lines) > 0 {
			err = gpu.Join(err, x.resolve(s))
		}
	}
	return err
}

// resolve brings a sheet to the host by a submit of its own.
func (x *Executor) resolve(s *sheet) error {
	defer s.clear()
	enc, err := x.dev.Begin("times")
	if err != nil {
		return fmt.Errorf("resolve timestamps: %w", err)
	}
	if err := enc.Resolve(s.stamps, 2*len(s.lines)); err != nil {
		enc.Discard()
		return fmt.Errorf("resolve timestamps: %w", err)
	}
	if err := enc.Submit(); err != nil {
		return fmt.Errorf("resolve timestamps: %w", err)
	}
	if err := x.dev.Wait(); err != nil {
		return fmt.Errorf("wait for the GPU: %w", err)
	}
	return x.arrived(s)
}

// arrived reads a sheet that has come to the host. Its steps get their times, and the clock learns by them.
func (x *Executor) arrived(s *sheet) error {
	defer s.clear()
	ticks := x.sheets.ticks[:2*len(s.lines)]
	if err := s.stamps.Read(ticks); err != nil {
		return fmt.Errorf("read timestamps: %w", err)
	}
	for i := range s.lines {
		l, own := &s.lines[i], ticks[2*i:2*i+2]
		if l.ended.IsZero() { // it was given up
			continue
		}
		x.learn(own, l.begun, l.ended)
		for k := range x.flights {
			if f := &x.flights[k]; f.number == l.number {
				x.took(&f.stepLog, own)
			}
		}
		if l.snapshot != nil {
			x.took(&l.snapshot.step, own)
			l.snapshot.scale = x.clock.Scale
		}
	}
	return nil
}

// took adds its timestamps to the log of a step.
func (x *Executor) took(s *stepLog, ticks []uint64) {
	s.ticks = append(s.ticks[:0], ticks...)
	x.lengthen(s)
}
