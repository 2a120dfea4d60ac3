// Package record writes the trace file of a run while the model runs. A recording can be limited to a range
// of steps, and to an amount of memory.
//
// Without a memory limit, each step is written to the file as soon as it has ended, and the recording itself
// keeps no step in memory. If the program is killed, the partial file has all steps but the last. With a
// memory limit, the newest steps are kept in memory, and the file is written at the end of the run.
package record

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/redact"
)

// Options limits what is recorded. The zero Options records everything.
type Options struct {
	Steps Range
	// Limit is the memory limit in bytes for the recorded steps and the plans that they use. When it is
	// exceeded, the oldest steps are dropped until half of the limit is free. If Limit is 0, no step is
	// dropped. The head of the trace, and plans that are remembered for later steps (see trace.PlanTable),
	// are not part of the limit.
	Limit int64
	// NoText leaves out the prompt, the generated text and the token ids (see package redact).
	NoText bool
}

// Range is a range of step numbers. The zero Range contains all steps.
type Range struct {
	From int
	End  int // number after that of the last step; 0 if the range has no end
}

// ErrRange is wrapped by the error of ParseRange.
var ErrRange = errors.New("not a range of steps")

// ParseRange reads a range such as 10:50, which includes both ends. Either end may be missing, and a single
// number is a range of one step. The empty text is the range of all steps.
func ParseRange(text string) (r Range, err error) {
	if text == "" {
		return Range{}, nil
	}
	from, to, both := strings.Cut(text, ":")
	if !both {
		to = from
	}
	number := func(s string) int {
		n, wrong := 0, error(nil)
		if s != "" {
			n, wrong = strconv.Atoi(s)
		}
		if wrong != nil || n < 0 || n == math.MaxInt {
			err = fmt.Errorf("%q: %w: want FROM:TO, such as \"10:50\", \"10:\" or \":50\", or one step, such as \"10\"",
				printable.Short(text, 40), ErrRange)
		}
		return n
	}
	r.From = number(from)
	if last := number(to); to != "" {
		r.End = last + 1
	}
	switch {
	case err != nil:
		return Range{}, err
	case r.End != 0 && r.End <= r.From:
		return Range{}, fmt.Errorf("%q: %w: the end is before the start", printable.Short(text, 40), ErrRange)
	}
	return r, nil
}

func (r Range) String() string {
	if r.End == 0 {
		return fmt.Sprintf("%d:", r.From)
	}
	return fmt.Sprintf("%d:%d", r.From, r.End-1)
}

func (r Range) has(step int) bool { return step >= r.From && (step < r.End || r.End == 0) }

// ErrSize is wrapped by the error of ParseSize.
var ErrSize = errors.New("not a size")

// minSize is the smallest memory limit in bytes.
const minSize = 1 << 20

// ParseSize reads a number of bytes such as 64MB, 64MiB, 2GB or 1500000. It must be at least 1 MiB.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "kKmMgGiBb ")
	unit, known := map[string]float64{
		"": 1, "b": 1, "kb": 1e3, "kib": 1 << 10, "mb": 1e6, "mib": 1 << 20, "m": 1 << 20, "gb": 1e9,
		"gib": 1 << 30, "g": 1 << 30, "k": 1 << 10,
	}[strings.ToLower(strings.TrimSpace(text[len(digits):]))]
	n, err := strconv.ParseFloat(digits, 64)
	size := n * unit
	switch {
	case err != nil || !known || math.IsNaN(size):
		return 0, fmt.Errorf("%q: %w: want a number of bytes, such as 64MB", printable.Short(text, 40),
			ErrSize)
	case size < minSize || size >= math.MaxInt64:
		return 0, fmt.Errorf("%q: %w for a recording: want at least 1 MiB and less than 8 EiB",
			printable.Short(text, 40), ErrSize)
	}
	return int64(size), nil
}

// File is a trace file that is being recorded. Only one goroutine at a time may use it, but any goroutine may
// call Partial and Expire.
type File struct {
	options Options
	out     *trace.StreamWriter
	newest  *trace.Recorder  // with a memory limit, the steps so far
	plans   *trace.PlanTable // with a range but no memory limit, the plans so far
	// skipped holds the dims, levels and waits that the first recorded step inherits from the steps before
	// the range. They are combined into one step.
	skipped []trace.Step
	begun   bool // a step was recorded
	ended   bool // a step after the range has ended, so later plans are not needed
}

// Create creates the trace file. The suffix of the name chooses the format. It returns an error if the path
// cannot be written.
func Create(path string, o Options) (*File, error) {
	out, err := trace.CreateStream(path)
	if err != nil {
		return nil, err
	}
	return &File{options: o, out: out}, nil
}

// Partial returns the name of a file that holds the recording so far and can be opened, or "" if there is no
// such file yet.
func (f *File) Partial() string {
	if f.options.Limit > 0 {
		return ""
	}
	return f.out.Partial()
}

// Warn names the file of the recording in a line on w if it does not have the usual name, because the
// recording of another run has it.
func (f *File) Warn(w io.Writer) {
	if usual, name := f.out.Occupied(), f.Partial(); usual != "" && name != "" {
		fmt.Fprintf(w, "warn: %s is from another run: this run is recorded to %s until it ends\n",
			printable.Short(usual, 160), printable.Short(name, 160))
	}
}

// Expire sets a deadline for writes to a pipe (see trace.StreamWriter.Expire).
func (f *File) Expire(t time.Time) { f.out.Expire(t) }

// Begin starts the recording with the head of the trace, which has no plans and steps.
func (f *File) Begin(head *trace.Trace) error {
	if f.options.NoText {
		head = redact.Head(head)
	}
	if f.options.Limit > 0 {
		f.newest = trace.NewRecorder(head, f.options.Limit)
		return nil
	}
	if f.options.Steps != (Range{}) {
		f.plans = &trace.PlanTable{}
	}
	h := *head
	h.DroppedSteps = f.options.Steps.From
	return f.out.Begin(&h)
}

// Write records one record, unless it belongs to a step outside the range.
func (f *File) Write(r trace.Record) error {
	if f.options.NoText {
		r = redact.Record(r)
	}
	if s := r.Step; s != nil && s.Index < f.options.Steps.From {
		f.skip(s)
		return nil
	}
	step, ok := stepOf(&r)
	switch {
	case ok && !f.options.Steps.has(step):
		if r.Step != nil {
			f.ended = true
		}
		return nil
	case f.ended && r.Plan != nil:
		return nil
	}
	if r.Step != nil && !f.begun && f.skipped != nil {
		s := *r.Step
		s.Dims, s.Levels, s.Waits = trace.Inherited(append(f.skipped, s))
		r.Step = &s
	}
	f.begun = f.begun || r.Step != nil
	switch {
	case f.newest != nil:
		return f.newest.Write(r)
	case f.plans != nil && r.Plan != nil:
		return f.plans.Add(r.Plan)
	case f.plans != nil && r.Step != nil:
		var plans []trace.Plan
		step, err := f.plans.Use(*r.Step, func(p trace.Plan) { plans = append(plans, p) })
		if err != nil {
			return err
		}
		for i := range plans {
			if err := f.out.Write(trace.Record{Plan: &plans[i]}); err != nil {
				return err
			}
		}
		r.Step = &step
	}
	return f.out.Write(r)
}

// skip keeps what later steps inherit from a step that is not recorded, and the plans that they may use.
func (f *File) skip(s *trace.Step) {
	if f.newest != nil {
		f.newest.Skip(s)
	} else {
		f.plans.Skip(s)
	}
	var all trace.Step
	all.Dims, all.Levels, all.Waits = trace.Inherited(append(f.skipped, *s))
	f.skipped = []trace.Step{all}
}

// stepOf returns the step that a record belongs to. The bool is false for a record that belongs to the whole
// run.
func stepOf(r *trace.Record) (step int, ok bool) {
	switch {
	case r.Step != nil:
		return r.Step.Index, true
	case r.Samples != nil:
		return r.Samples.Step, true
	case r.Costs != nil:
		return r.Costs.Step, true
	case r.Gaps != nil:
		return r.Gaps.Step, true
	}
	return 0, false
}

// ErrNoStep is wrapped by the error of Close if the run had no step in the range.
var ErrNoStep = errors.New("the run has no step in this range")

// Close completes the file and moves it to its final name (see trace.StreamWriter.Close). If the run had no
// step in the range, Close removes the file.
func (f *File) Close() error {
	if r := f.options.Steps; !f.begun && r != (Range{}) {
		f.out.Cancel()
		return fmt.Errorf("record steps %v: %w", r, ErrNoStep)
	}
	if f.newest != nil {
		t := f.newest.Snapshot()
		t.DroppedSteps += f.options.Steps.From
		if err := f.out.Begin(t); err != nil {
			return errors.Join(err, f.out.Close())
		}
	}
	return f.out.Close()
}

// Cancel removes the file of a run that never started.
func (f *File) Cancel() { f.out.Cancel() }
