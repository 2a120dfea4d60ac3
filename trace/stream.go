package trace

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"gpuscope/internal/printable"
)

// Record is a line of a stream after the first line, which is the trace without plans and steps. Exactly one
// field of a Record is set. The record of a plan comes before the first step that uses the plan.
type Record struct {
	Plan    *Plan          `json:"plan,omitempty"`
	Step    *Step          `json:"step,omitempty"`
	Kernel  *Kernel        `json:"kernel,omitempty"` // an edited kernel; comes before its first plan
	Samples *Samples       `json:"samples,omitempty"`
	Costs   *Costs         `json:"costs,omitempty"`
	Gaps    *NumericErrors `json:"gaps,omitempty"`
	Trial   *Trial         `json:"trial,omitempty"`
	Event   *Event         `json:"event,omitempty"`
	// Observer, Ceilings and Clock replace those that the trace had before.
	Observer *Observer `json:"observer,omitempty"`
	Ceilings *Ceilings `json:"ceilings,omitempty"`
	Clock    *Clock    `json:"clock,omitempty"`
}

// Samples holds GPU times of the dispatches of a recorded step. They were measured when the step was repeated
// in place, with the same inputs and position.
type Samples struct {
	Step    int       `json:"step"`    // Index of the step
	Samples [][]int64 `json:"samples"` // in ns; Samples[i] holds the times of dispatch i of the step
	// Canary is the speed of the canary kernel during the repeats, or 0 if it did not run. If it ran, this
	// speed replaces that of the step.
	Canary float64 `json:"canary,omitempty"`
}

// Costs holds costs that were measured after a step was recorded. They are added to the costs of the step.
// A new cost replaces an earlier cost of the same dispatches, and the new Whole replaces the earlier Whole.
// But a new cost or Whole with less than half as many rounds as the earlier one is ignored, because its
// measurement was stopped early.
type Costs struct {
	Step  int    `json:"step"` // Index of the step
	Whole Whole  `json:"whole"`
	Costs []Cost `json:"costs,omitempty"`
}

// NumericErrors holds numeric errors that were computed after a step was recorded, by comparison with a
// reference. They replace earlier errors of the same dispatches.
type NumericErrors struct {
	Step int             `json:"step"` // Index of the step
	Gaps []DispatchError `json:"gaps"`
}

// DispatchError is the numeric error of one dispatch of a step.
type DispatchError struct {
	Dispatch DispatchID   `json:"dispatch"`
	Gap      NumericError `json:"gap"`
}

// apply adds a record to the trace. `unknown` holds the fields of the record that this version does not know.
func (t *Trace) apply(r *Record, unknown *Unknown) error {
	switch {
	case r.Plan != nil:
		r.Plan.Unknown = unknown.Under("/plan")
		t.Plans = append(t.Plans, *r.Plan)
	case r.Step != nil:
		r.Step.Unknown = unknown.Under("/step")
		t.Steps = append(t.Steps, *r.Step)
	case r.Kernel != nil:
		return t.addKernel(r.Kernel, unknown.Under("/kernel"))
	case r.Samples != nil:
		return t.addSamples(*r.Samples)
	case r.Costs != nil:
		return t.addCosts(*r.Costs)
	case r.Gaps != nil:
		return t.addErrors(*r.Gaps)
	case r.Trial != nil:
		t.Unknown = t.Unknown.Add(fmt.Sprintf("/trials/%d", len(t.Trials)), unknown.Under("/trial"))
		t.Trials = append(t.Trials, *r.Trial)
	case r.Event != nil:
		t.Unknown = t.Unknown.Add(fmt.Sprintf("/events/%d", len(t.Events)), unknown.Under("/event"))
		t.Events = append(t.Events, *r.Event)
	case r.Observer != nil:
		t.Unknown = t.Unknown.Add("/observer", unknown.Under("/observer"))
		t.Observer = r.Observer
	case r.Ceilings != nil:
		t.Unknown = t.Unknown.Add("/device/ceilings", unknown.Under("/ceilings"))
		t.Device.Ceilings = r.Ceilings
	case r.Clock != nil:
		t.Unknown = t.Unknown.Add("/clock", unknown.Under("/clock"))
		t.Clock = *r.Clock
	}
	return nil // this version knows none of the record's fields: a later minor version wrote it
}

// maxKernels is the maximum number of kernels in a graph. Edited kernels, which replace others, count too.
const maxKernels = 1 << 14

// addKernel adds a kernel to the graph if it is not there yet. If the same graph runs again, its kernels are
// recorded again.
func (t *Trace) addKernel(k *Kernel, unknown *Unknown) error {
	list := t.Graph.Kernels
	for i := range list {
		switch old := &list[i]; {
		case old.Name != k.Name:
		case old.SourceSHA256 == k.SourceSHA256:
			return nil
		default:
			return fmt.Errorf("kernel %s was already recorded with a different source",
				printable.Short(k.Name, 80))
		}
	}
	if len(list) >= maxKernels {
		return fmt.Errorf("kernel %s: the trace already has the maximum of %d kernels",
			printable.Short(k.Name, 80), len(list))
	}
	t.Unknown = t.Unknown.Add(fmt.Sprintf("/graph/kernels/%d", len(list)), unknown)
	t.Graph.Kernels = append(list, *k)
	return nil
}

// addSamples adds the times of repeats to the dispatches of a step. It makes a new list of dispatches,
// because a snapshot may share the old list.
func (t *Trace) addSamples(s Samples) error {
	step := t.Step(s.Step)
	if step == nil {
		return fmt.Errorf("samples: step %d is not in the trace", s.Step)
	}
	if len(s.Samples) != len(step.Dispatches) {
		return fmt.Errorf("samples: the record has samples of %d dispatches, but step %d has %d dispatches",
			len(s.Samples), s.Step,
			len(step.Dispatches))
	}
	dispatches := make([]StepDispatch, len(step.Dispatches))
	for j, d := range step.Dispatches {
		d.Samples = append(d.Samples[:len(d.Samples):len(d.Samples)], s.Samples[j]...)
		dispatches[j] = d
	}
	if step.Dispatches = dispatches; s.Canary > 0 {
		step.Canary = s.Canary
	}
	return nil
}

// addCosts adds costs to a step. It makes a new list of costs, because a snapshot may share the old list.
func (t *Trace) addCosts(c Costs) error {
	step := t.Step(c.Step)
	if step == nil {
		return fmt.Errorf("costs: step %d is not in the trace", c.Step)
	}
	refuse := func(n int) error {
		return fmt.Errorf("costs: the list would have %d entries for step %d, but the maximum is %d", n,
			c.Step, MaxCosts)
	}
	if n := len(c.Costs); n > MaxCosts {
		return refuse(n)
	}
	costs := slices.Clone(step.Costs)
	for _, cost := range c.Costs {
		same := func(old Cost) bool { return slices.Equal(old.Dispatches, cost.Dispatches) }
		if i := slices.IndexFunc(costs, same); i >= 0 {
			if !worse(cost.N, costs[i].N) {
				costs[i] = cost
			}
		} else {
			costs = append(costs, cost)
		}
	}
	if n := len(costs); n > MaxCosts {
		return refuse(n)
	}
	if step.Costs = costs; step.Whole == nil || !worse(c.Whole.N, step.Whole.N) {
		step.Whole = &c.Whole
	}
	return nil
}

// addErrors adds numeric errors to the dispatches of a step. It makes a new list of dispatches, because a
// snapshot may share the old list.
func (t *Trace) addErrors(g NumericErrors) error {
	step := t.Step(g.Step)
	if step == nil {
		return fmt.Errorf("numeric errors: step %d is not in the trace", g.Step)
	}
	places := make(map[DispatchID]int, len(step.Dispatches))
	for i, d := range step.Dispatches {
		if d.Plan >= 0 && int(d.Plan) < len(t.Plans) {
			places[t.Plans[d.Plan].Dispatch] = i
		}
	}
	dispatches := slices.Clone(step.Dispatches)
	for i := range g.Gaps {
		place, ran := places[g.Gaps[i].Dispatch]
		if !ran {
			return fmt.Errorf("numeric errors: dispatch %d did not run in step %d",
				g.Gaps[i].Dispatch,
				g.Step)
		}
		dispatches[place].Error = &g.Gaps[i].Gap
	}
	step.Dispatches = dispatches
	return nil
}

// worse reports whether a new median of n rounds is less reliable than an old median of `others` rounds:
// whether n is less than half of `others`.
func worse(n, others int) bool { return n < others-n }

// Step returns the step whose Index is `index`, or nil if there is none. Steps are sorted by Index.
func (t *Trace) Step(index int) *Step {
	i := sort.Search(len(t.Steps), func(i int) bool { return t.Steps[i].Index >= index })
	if i == len(t.Steps) || t.Steps[i].Index != index {
		return nil
	}
	return &t.Steps[i]
}

// StreamWriter writes a trace line by line during the recording. It writes the lines to a partial file next
// to the target: to x.json.partial if the target is x.json. Close converts the lines to the format that the
// suffix of the target requires, and moves the result to the target. If the program dies or cannot finish,
// the partial file remains and can be opened.
//
// Only one goroutine at a time may use a StreamWriter, but any goroutine may call Partial and Expire.
type StreamWriter struct {
	to      place
	lines   *pendingFile
	partial string
	begun   bool // the head has been written, so the file can be opened
	err     error
}

// CreateStream creates the file to which a run is recorded. It returns an error if the path cannot be
// written.
func CreateStream(path string) (*StreamWriter, error) {
	to, err := placeOf(path, nil)
	if err != nil {
		return nil, err
	}
	w := &StreamWriter{to: to}
	lines := to
	if to.form.Folder() {
		lines.old = nil // a folder is replaced when the recording is complete
	}
	by := to.by
	if !to.form.lines && !to.pipe {
		by = nil // the lines are converted at the end, and only the result is compressed
	}
	if w.lines, err = lines.create(by); err != nil {
		return nil, err
	}
	if !to.pipe {
		w.partial = w.lines.file.Name()
	}
	return w, nil
}

// Begin writes the head of a trace. If the trace has plans and steps already, Begin also writes these.
func (w *StreamWriter) Begin(head *Trace) error {
	if w.err = WriteStream(w.lines, head); w.err == nil {
		w.err = w.lines.flush()
	}
	if w.begun = w.err == nil; !w.begun {
		w.err = writeError(w.to.path, w.err)
	}
	return w.err
}

// Partial returns the name of the partial file that holds the recording until Close, or "" if the trace is
// written to a pipe.
func (w *StreamWriter) Partial() string { return w.partial }

// Occupied returns the usual name of the partial file if another file has it already, for example the
// recording of a run that was killed. The name that Partial returns then also has a number. Occupied returns
// "" if the usual name was free.
func (w *StreamWriter) Occupied() string {
	if usual := w.lines.target + partialSuffix; w.partial != "" && w.partial != usual {
		return usual
	}
	return ""
}

// Expire sets a deadline for writes to a pipe. A write fails if the reader of the pipe has not taken it by
// then, so that a run that must end does not wait for the reader.
func (w *StreamWriter) Expire(t time.Time) { w.lines.expire(t) }

// WriteStream writes a complete trace as a stream of lines: first the head, then plans and steps. A plan
// comes before the first step that refers to it.
func WriteStream(out io.Writer, t *Trace) error {
	head := *t
	head.Plans, head.Steps = nil, nil
	b, err := encodeRecord(&head, t.Unknown)
	if err != nil {
		return err
	}
	if _, err := out.Write(append(b, '\n')); err != nil {
		return err
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

// lastPlan returns the largest plan id in the step, or -1 if it has none.
func (s *Step) lastPlan() PlanID {
	last := PlanID(-1)
	s.eachPlan(func(id PlanID) { last = max(last, id) })
	return last
}

func writeLine(out io.Writer, r Record) error {
	var unknown *Unknown
	switch {
	case r.Plan != nil:
		unknown = unknown.Add("/plan", r.Plan.Unknown)
	case r.Step != nil:
		unknown = unknown.Add("/step", r.Step.Unknown)
	}
	b, err := encodeRecord(r, unknown)
	if err != nil {
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}

// Write appends a record. If it fails, all later calls of Write and Close return the same error.
func (w *StreamWriter) Write(r Record) error {
	if w.err != nil {
		return w.err
	}
	if w.err = writeLine(w.lines, r); w.err == nil && r.Plan == nil {
		w.err = w.lines.flush() // flushed together with its step: small pieces compress badly
	}
	if w.err != nil {
		w.err = writeError(w.to.path, w.err)
	}
	return w.err
}

// Close moves the complete file to its target. If this or an earlier write fails, the recording remains in
// the partial file, whose name is in the error. If the head was not written, the partial file is removed
// because it cannot be opened.
func (w *StreamWriter) Close() error {
	if w.err != nil && !w.begun {
		w.lines.cancel()
		return w.err
	}
	if w.err == nil {
		w.err = w.finish()
	}
	w.lines.keep()
	if w.err == nil || w.partial == "" {
		return w.err
	}
	kept := w.partial
	if filepath.Dir(kept) == filepath.Dir(w.to.path) {
		kept = filepath.Base(kept) + " beside it"
	}
	return fmt.Errorf("%w; the recording is kept as %s", w.err, kept)
}

func (w *StreamWriter) finish() error {
	if w.to.pipe || w.to.form.lines {
		return w.lines.commit()
	}
	if err := w.convert(); err != nil {
		return err
	}
	w.lines.cancel()
	return nil
}

// convert writes the target file if its format does not consist of lines. It reads the trace from the
// recorded lines.
func (w *StreamWriter) convert() error {
	if _, err := w.lines.file.Seek(0, io.SeekStart); err != nil {
		return writeError(w.to.path, err)
	}
	t, err := Read(w.lines.file)
	if err != nil {
		return writeError(w.to.path, err)
	}
	return w.to.write(t)
}

// Cancel removes the partial file. After Close, Cancel does nothing.
func (w *StreamWriter) Cancel() { w.lines.cancel() }
