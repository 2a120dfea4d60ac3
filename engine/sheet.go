package engine

import (
	"fmt"
	"time"

	"gpuscope/engine/gpu"
)

// The GPU resolves timestamps to host memory after a step. Resolving takes about 7 us on an H200, while
// writing the timestamps takes less than 1 us. Prepared steps therefore write their timestamps to a shared
// list of timestamps, called a sheet. A step resolves the whole sheet if the sheet is full, or if the last
// resolve was at least resolveEvery ago. The GPU time of a step becomes known when the step that resolves its
// sheet has ended, or in Abandon. Settled reports whether all GPU times are known.
//
// There are two sheets. While one sheet is being resolved, the next step writes its timestamps to the other
// sheet.

const (
	resolveEvery = 10 * time.Millisecond
	sheetLines   = 64
)

// sheets holds the two sheets of an executor.
type sheets struct {
	both     [2]sheet
	turn     int // index of the sheet in use; if it is closed, new steps use the other one
	resolved time.Time
	every    time.Duration // minimum time between resolves; resolveEvery by default
	ticks    []uint64      // receives the timestamps of a sheet
}

// sheet is a list of timestamps of several steps that are resolved together.
type sheet struct {
	stamps gpu.Timestamps
	lines  []line
	closed bool // no further steps use the sheet; the step of its last line resolves it
}

// line is the entry of one step on a sheet. The line with index n has the timestamps 2n and 2n + 1.
type line struct {
	number       int       // flight.number of the step
	begun, ended time.Time // host times; ended is zero while the step runs
	snapshot     *Snapshot // snapshot of the step; nil if there is none
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

// place chooses the position of a step's timestamps on a sheet, and whether the step resolves the sheet. It
// is called before the commands of the step are encoded.
func (s *sheets) place(f *flight) {
	if s.both[s.turn].closed {
		s.turn ^= 1
	}
	f.sheet = &s.both[s.turn]
	f.stamps, f.stampsAt = f.sheet.stamps, 2*len(f.sheet.lines)
	f.resolves = len(f.sheet.lines) == sheetLines-1 || time.Since(s.resolved) >= s.every
}

// enter adds a prepared step to its sheet. enter does nothing if the step has no sheet.
func (s *sheets) enter(f *flight) {
	if f.sheet == nil {
		return
	}
	f.sheet.lines, f.sheet.closed = append(f.sheet.lines, line{number: f.number}), f.resolves
	if f.resolves {
		s.resolved = time.Now()
	}
}

// strike removes a step from its sheet, because the step will not run. The step must be the one that was
// entered last.
func (f *flight) strike() {
	if f.sheet != nil {
		f.sheet.lines, f.sheet.closed = f.sheet.lines[:f.stampsAt/2], false
	}
}

// line returns the sheet entry of a step. It returns nil if the step has no sheet, or if its timestamps have
// arrived.
func (f *flight) line() *line {
	if f.sheet == nil || f.stampsAt/2 >= len(f.sheet.lines) {
		return nil
	}
	if l := &f.sheet.lines[f.stampsAt/2]; l.number == f.number {
		return l
	}
	return nil
}

// clear empties a sheet. If timestamps on the sheet have not arrived, their steps will have no GPU times.
func (s *sheet) clear() {
	clear(s.lines)
	s.lines, s.closed = s.lines[:0], false
}

// Settled reports whether the GPU times of all finished steps are known. If they are, snapshots of these
// steps can be recorded.
func (x *Executor) Settled() bool {
	for i := range x.sheets.both {
		if lines := x.sheets.both[i].lines; len(lines) > 0 && !lines[0].ended.IsZero() {
			return false
		}
	}
	return true
}

// settle resolves all timestamps that are not on the host yet. It must be called only while no step is in
// flight.
func (x *Executor) settle() (err error) {
	for range x.sheets.both {
		x.sheets.turn ^= 1 // begin with the older sheet
		if s := &x.sheets.both[x.sheets.turn]; len(s.lines) > 0 {
			err = gpu.Join(err, x.resolve(s))
		}
	}
	return err
}

// resolve resolves a sheet in a submit of its own.
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
		return fmt.Errorf("cannot wait for the GPU: %w", err)
	}
	return x.arrived(s)
}

// arrived reads a resolved sheet, adds the timestamps to the steps of the sheet, and updates the clock from
// them.
func (x *Executor) arrived(s *sheet) error {
	defer s.clear()
	ticks := x.sheets.ticks[:2*len(s.lines)]
	if err := s.stamps.Read(ticks); err != nil {
		return fmt.Errorf("read timestamps: %w", err)
	}
	for i := range s.lines {
		l, own := &s.lines[i], ticks[2*i:2*i+2]
		if l.ended.IsZero() { // abandoned step
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

// took stores the timestamps of a step in its log.
func (x *Executor) took(s *stepLog, ticks []uint64) {
	s.ticks = append(s.ticks[:0], ticks...)
	x.lengthen(s)
}
