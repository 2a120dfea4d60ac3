package trace

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Record is a line of a stream after the first, which is the trace without plans and steps. One field is set.
// A plan stands before the first step that uses it.
type Record struct {
	Plan     *Plan     `json:"plan,omitempty"`
	Step     *Step     `json:"step,omitempty"`
	Samples  *Samples  `json:"samples,omitempty"`
	Event    *Event    `json:"event,omitempty"`
	Observer *Observer `json:"observer,omitempty"` // replaces what was known, as do:
	Ceilings *Ceilings `json:"ceilings,omitempty"`
	Clock    *Clock    `json:"clock,omitempty"`
}

// Samples are those of a step that was repeated in place after it was recorded.
type Samples struct {
	Step    int       `json:"step"`    // Step.Index
	Samples [][]int64 `json:"samples"` // ns; the i-th belong to the step's i-th dispatch
}

// apply takes a record into a trace. Unknown are fields of the record that this version does not know.
func (t *Trace) apply(r *Record, unknown *Unknown) error {
	switch {
	case r.Plan != nil:
		r.Plan.Unknown = unknown.under("/plan")
		t.Plans = append(t.Plans, *r.Plan)
	case r.Step != nil:
		r.Step.Unknown = unknown.under("/step")
		t.Steps = append(t.Steps, *r.Step)
	case r.Samples != nil:
		return t.addSamples(*r.Samples)
	case r.Event != nil:
		t.Unknown = t.Unknown.add(fmt.Sprintf("/events/%d", len(t.Events)), unknown.under("/event"))
		t.Events = append(t.Events, *r.Event)
	case r.Observer != nil:
		t.Unknown = t.Unknown.add("/observer", unknown.under("/observer"))
		t.Observer = r.Observer
	case r.Ceilings != nil:
		t.Unknown = t.Unknown.add("/device/ceilings", unknown.under("/ceilings"))
		t.Device.Ceilings = r.Ceilings
	case r.Clock != nil:
		t.Unknown = t.Unknown.add("/clock", unknown.under("/clock"))
		t.Clock = *r.Clock
	}
	return nil // else a record of a later minor version
}

// addSamples gives a step the samples of repeats. The step's list of dispatches is made anew, so that who
// holds the old one sees no change.
func (t *Trace) addSamples(s Samples) error {
	for i := len(t.Steps) - 1; i >= 0; i-- {
		step := &t.Steps[i]
		if step.Index != s.Step {
			continue
		}
		if len(s.Samples) != len(step.Dispatches) {
			return fmt.Errorf("samples of %d dispatches for step %d, which has %d", len(s.Samples), s.Step,
				len(step.Dispatches))
		}
		dispatches := make([]StepDispatch, len(step.Dispatches))
		for j, d := range step.Dispatches {
			d.Samples = append(d.Samples[:len(d.Samples):len(d.Samples)], s.Samples[j]...)
			dispatches[j] = d
		}
		step.Dispatches = dispatches
		return nil
	}
	return fmt.Errorf("samples for step %d, which is not in the trace", s.Step)
}

// StreamWriter writes a trace while it is being recorded, line by line, to a file beside the one it is for.
// Close puts it in place: as a stream where the name says .jsonl, else as one object. A program that dies
// leaves the lines that it had written, which can be opened.
type StreamWriter struct {
	path  string
	file  *pendingFile
	lines io.Writer // where lines go: file, or a temporary stream that Close turns into an object
	temp  *os.File
	err   error
}

// NewStreamWriter begins a stream with the head of a trace; its plans and steps, if it has any, are written
// too.
func NewStreamWriter(path string, head *Trace) (*StreamWriter, error) {
	file, err := createFile(path)
	if err != nil {
		return nil, err
	}
	w := &StreamWriter{path: path, file: file, lines: file}
	if !isStream(path) && file.direct == nil {
		if w.temp, err = os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.jsonl"); err != nil {
			file.cancel()
			return nil, fmt.Errorf("write trace %s: %w", path, err)
		}
		w.lines = w.temp
	}
	if err := WriteStream(w.lines, head); err != nil {
		w.Cancel()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// WriteStream writes a whole trace as a stream of lines: its head, then plans and steps, each plan before the
// first step that needs it.
func WriteStream(out io.Writer, t *Trace) error {
	head := *t
	head.Plans, head.Steps = nil, nil
	b, err := encodeRecord(&head, t.Unknown)
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	if _, err := out.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	plan := 0
	for i := range t.Steps {
		for need := t.Steps[i].lastPlan(); plan <= int(need); plan++ {
			if err := writeLine(out, Record{Plan: &t.Plans[plan]}); err != nil {
				return err
			}
		}
		if err := writeLine(out, Record{Step: &t.Steps[i]}); err != nil {
			return err
		}
	}
	for ; plan < len(t.Plans); plan++ {
		if err := writeLine(out, Record{Plan: &t.Plans[plan]}); err != nil {
			return err
		}
	}
	return nil
}

// lastPlan is the largest id of a plan that a step names, -1 where it names none.
func (s *Step) lastPlan() PlanID {
	last := PlanID(-1)
	s.eachPlan(func(id PlanID) { last = max(last, id) })
	return last
}

func writeLine(out io.Writer, r Record) error {
	var unknown *Unknown
	switch {
	case r.Plan != nil:
		unknown = unknown.add("/plan", r.Plan.Unknown)
	case r.Step != nil:
		unknown = unknown.add("/step", r.Step.Unknown)
	}
	b, err := encodeRecord(r, unknown)
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	if _, err := out.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// Write appends a record. The first error stays: Close returns it too.
func (w *StreamWriter) Write(r Record) error {
	if w.err != nil {
		return w.err
	}
	if w.err = writeLine(w.lines, r); w.err == nil && r.Plan == nil {
		w.err = w.file.flush() // a plan waits for its step: gzip does badly on small pieces
	}
	if w.err != nil {
		w.err = fmt.Errorf("%s: %w", w.path, w.err)
	}
	return w.err
}

// Close puts the file in its place. After an error nothing is put there; Cancel then removes what was
// written.
func (w *StreamWriter) Close() error {
	if w.err != nil {
		return w.err
	}
	if w.temp != nil {
		if err := w.assemble(); err != nil {
			w.err = err
			return err
		}
	}
	w.err = w.file.commit()
	return w.err
}

// assemble turns the temporary stream into one object.
func (w *StreamWriter) assemble() error {
	if _, err := w.temp.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("write trace %s: %w", w.path, err)
	}
	t, err := Read(w.temp)
	if err != nil {
		return fmt.Errorf("write trace %s: %w", w.path, err)
	}
	if err := Write(w.file, t); err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	w.removeTemp()
	return nil
}

func (w *StreamWriter) removeTemp() {
	w.temp.Close()
	os.Remove(w.temp.Name())
	w.temp = nil
}

// Cancel removes what was written; after a Close without error it does nothing.
func (w *StreamWriter) Cancel() {
	if w.temp != nil {
		w.removeTemp()
	}
	w.file.cancel()
}
