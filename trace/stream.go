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

// Record is a line of a stream after the first, which is the trace without plans and steps. One field is set.
// A plan stands before the first step that uses it.
type Record struct {
	Plan     *Plan          `json:"plan,omitempty"`
	Step     *Step          `json:"step,omitempty"`
	Kernel   *Kernel        `json:"kernel,omitempty"` // replaces another; before its first plan
	Samples  *Samples       `json:"samples,omitempty"`
	Costs    *Costs         `json:"costs,omitempty"`
	Gaps     *NumericErrors `json:"gaps,omitempty"`
	Trial    *Trial         `json:"trial,omitempty"`
	Event    *Event         `json:"event,omitempty"`
	Observer *Observer      `json:"observer,omitempty"` // replaces what was known, as do:
	Ceilings *Ceilings      `json:"ceilings,omitempty"`
	Clock    *Clock         `json:"clock,omitempty"`
}

// Samples are those of a step that was repeated in place after it was recorded.
type Samples struct {
	Step    int       `json:"step"`    // Step.Index
	Samples [][]int64 `json:"samples"` // ns; the i-th belong to the step's i-th dispatch
	// Canary is that of the repeats, and takes the place of the step's, where it ran.
	Canary float64 `json:"canary,omitempty"`
}

// Costs are those of a step that were measured after it was recorded. They join those that it has; one of the
// same dispatches takes the other's place, and so does Whole, unless it is of less than half as many rounds:
// then it was cut short and says less.
type Costs struct {
	Step  int    `json:"step"` // Step.Index
	Whole Whole  `json:"whole"`
	Costs []Cost `json:"costs,omitempty"`
}

// NumericErrors are those of a step that was held to a reference after it was recorded. They take the place
// of those that their dispatches have.
type NumericErrors struct {
	Step int             `json:"step"` // Step.Index
	Gaps []DispatchError `json:"gaps"`
}

// DispatchError is the gap of a dispatch of a step.
type DispatchError struct {
	Dispatch DispatchID   `json:"dispatch"`
	Gap      NumericError `json:"gap"`
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
	case r.Kernel != nil:
		return t.addKernel(r.Kernel, unknown.under("/kernel"))
	case r.Samples != nil:
		return t.addSamples(*r.Samples)
	case r.Costs != nil:
		return t.addCosts(*r.Costs)
	case r.Gaps != nil:
		return t.addErrors(*r.Gaps)
	case r.Trial != nil:
		t.Unknown = t.Unknown.add(fmt.Sprintf("/trials/%d", len(t.Trials)), unknown.under("/trial"))
		t.Trials = append(t.Trials, *r.Trial)
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

// maxKernels is how many kernels a graph may have with those that take the place of others.
const maxKernels = 1 << 14

// addKernel adds a kernel to those of the graph, unless it is there: another run of the graph says it again.
func (t *Trace) addKernel(k *Kernel, unknown *Unknown) error {
	list := t.Graph.Kernels
	for i := range list {
		switch old := &list[i]; {
		case old.Name != k.Name:
		case old.SourceSHA256 == k.SourceSHA256:
			return nil
		default:
			return fmt.Errorf("kernel %s was recorded with another source", printable.Short(k.Name, 80))
		}
	}
	if len(list) >= maxKernels {
		return fmt.Errorf("kernel %s: more than %d kernels", printable.Short(k.Name, 80), len(list))
	}
	t.Unknown = t.Unknown.add(fmt.Sprintf("/graph/kernels/%d", len(list)), unknown)
	t.Graph.Kernels = append(list, *k)
	return nil
}

// addSamples gives a step the samples of repeats. The step's list of dispatches is made anew, so that who
// holds the old one sees no change.
func (t *Trace) addSamples(s Samples) error {
	step := t.step(s.Step)
	if step == nil {
		return fmt.Errorf("samples for step %d, which is not in the trace", s.Step)
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
	if step.Dispatches = dispatches; s.Canary > 0 {
		step.Canary = s.Canary
	}
	return nil
}

// addCosts gives a step costs. It copies the step's list of costs instead of changing it, so holders of the
// old list are not affected.
func (t *Trace) addCosts(c Costs) error {
	step := t.step(c.Step)
	if step == nil {
		return fmt.Errorf("costs of step %d, which is not in the trace", c.Step)
	}
	refuse := func(n int) error {
		return fmt.Errorf("%d costs of step %d, at most %d", n, c.Step, MaxCosts)
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

// addErrors gives the dispatches of a step gaps. The step's list of them is made anew, so that who holds the
// old one sees no change.
func (t *Trace) addErrors(g NumericErrors) error {
	step := t.step(g.Step)
	if step == nil {
		return fmt.Errorf("numeric errors of step %d, which is not in the trace", g.Step)
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
			return fmt.Errorf("numeric error of dispatch %d, which did not run in step %d",
				g.Gaps[i].Dispatch,
				g.Step)
		}
		dispatches[place].Error = &g.Gaps[i].Gap
	}
	step.Dispatches = dispatches
	return nil
}

// worse reports whether a median of n says less than one of others that was there before it.
func worse(n, others int) bool { return n < others-n }

// step is the step with an index, or nil. Steps are in the order of their indices.
func (t *Trace) step(index int) *Step {
	i := sort.Search(len(t.Steps), func(i int) bool { return t.Steps[i].Index >= index })
	if i == len(t.Steps) || t.Steps[i].Index != index {
		return nil
	}
	return &t.Steps[i]
}

// StreamWriter writes a trace while it is being recorded, line by line, to a file beside the one it is for:
// x.json.partial for x.json. Close puts it in place, in the form that the name says. A program that dies
// leaves the lines that it had written, which can be opened; so does one that cannot finish.
//
// It is for one goroutine, except for Partial and Expire.
type StreamWriter struct {
	to      place
	lines   *pendingFile
	partial string
	begun   bool // the head is written: what there is can be opened
	err     error
}

// CreateStream makes the file for a recording. A path that cannot be written is refused here.
func CreateStream(path string) (*StreamWriter, error) {
	to, err := placeOf(path)
	if err != nil {
		return nil, err
	}
	w := &StreamWriter{to: to}
	if w.lines, err = to.create(to.zipped && (to.form.lines || to.pipe)); err != nil {
		return nil, err
	}
	if !to.pipe {
		w.partial = w.lines.file.Name()
	}
	return w, nil
}

// Begin writes the head of a trace, and its plans and steps if it has any.
func (w *StreamWriter) Begin(head *Trace) error {
	if w.err = WriteStream(w.lines, head); w.err == nil {
		w.err = w.lines.flush()
	}
	if w.begun = w.err == nil; !w.begun {
		w.err = writeError(w.to.path, w.err)
	}
	return w.err
}

// Partial is the name of the file that holds the recording until Close, "" where it goes to a pipe.
func (w *StreamWriter) Partial() string { return w.partial }

// Expire makes writes to a pipe fail after a time: a run that was told to end does not wait for a reader.
func (w *StreamWriter) Expire(t time.Time) { w.lines.expire(t) }

// WriteStream writes a whole trace as a stream of lines: its head, then plans and steps, each plan before the
// first step that needs it.
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
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}

// Write appends a record. The first error stays: Close returns it too.
func (w *StreamWriter) Write(r Record) error {
	if w.err != nil {
		return w.err
	}
	if w.err = writeLine(w.lines, r); w.err == nil && r.Plan == nil {
		w.err = w.lines.flush() // a plan waits for its step: gzip does badly on small pieces
	}
	if w.err != nil {
		w.err = writeError(w.to.path, w.err)
	}
	return w.err
}

// Close puts the file in its place. Where that fails, or a write has failed, what was recorded stays as it
// is, and the error names it; where not even the head was written nothing stays.
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

// convert writes the file from the lines, in a form that is no lines.
func (w *StreamWriter) convert() error {
	if _, err := w.lines.file.Seek(0, io.SeekStart); err != nil {
		return writeError(w.to.path, err)
	}
	t, err := Read(w.lines.file)
	if err != nil {
		return writeError(w.to.path, err)
	}
	out, err := w.to.create(w.to.zipped)
	if err != nil {
		return err
	}
	defer out.cancel()
	if err := w.to.form.write(out, t); err != nil {
		return writeError(w.to.path, err)
	}
	return out.commit()
}

// Cancel removes what was written; after a Close it does nothing.
func (w *StreamWriter) Cancel() { w.lines.cancel() }
