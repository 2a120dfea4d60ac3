package stepping

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/model/verify"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/session"
	"gpuscope/trace"
)

// The kernel lab. The user edits the source of a kernel. The edited kernel is compiled and runs alternately
// with the original on the inputs of one dispatch of a step. It can then replace the original.

// compile compiles an edited kernel. An error in the source wraps session.ErrUsage, and contains the line in
// the source if the compiler reports it.
func (r *Device) compile(e *session.KernelEdit) (*engine.Edit, error) {
	file := e.Kernel + session.KernelSuffix
	k := r.Graph.Kernel(e.Kernel)
	if k == nil {
		return nil, session.Refusef("the model has no kernel %.80q%s", e.Kernel, otherHead(e.Kernel))
	}
	if err := session.CheckKernelText(e.Text, e.Kernel, k.Constants); err != nil {
		return nil, &session.SourceError{File: file, Text: err.Error()}
	}
	by, err := kind.EditedKernel(e.Kernel, e.Text)
	if err != nil {
		return nil, &session.SourceError{File: file, Text: err.Error()}
	}
	if edit := r.Edits[by.Name]; edit != nil {
		return edit, nil
	}
	edit, err := r.Exec.NewEdit(e.Kernel, by)
	switch {
	case errors.Is(err, gpu.ErrDeviceLost):
		return nil, err
	case err != nil:
		return nil, session.CompilerError(file, by.Name, err)
	}
	if r.Edits == nil {
		r.Edits = map[string]*engine.Edit{}
	}
	r.Edits[by.Name] = edit
	return edit, nil
}

// UseShaders loads the kernel sources of a folder and returns a line of text that lists the replaced kernels.
// It skips the sources of kernels that the model does not have, because the user may have one folder for
// several models.
func (r *Device) UseShaders(dir string) (text string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", session.Refusef("--shaders: %w", err)
	}
	var taken, left []string
	for _, file := range files {
		name, is := strings.CutSuffix(file.Name(), session.KernelSuffix)
		if !is {
			continue
		}
		if r.Graph.Kernel(name) == nil {
			left = append(left, name)
			continue
		}
		wgsl, err := session.ReadKernelText(filepath.Join(dir, file.Name()))
		if err != nil {
			return "", session.Refusef("--shaders: %w", err)
		}
		e, err := r.compile(&session.KernelEdit{Kernel: name, Text: wgsl})
		if err != nil {
			return "", fmt.Errorf("--shaders %s: %w", dir, err)
		}
		r.Exec.Use(e)
		taken = append(taken, name)
	}
	if len(taken) == 0 && len(left) > 0 {
		return "", session.Refusef("--shaders %s: the model has no kernel %s%s", dir, printable.Choice(left),
			otherHead(left...))
	}
	text = fmt.Sprintf("edited kernels from %s: %s", dir, cmp.Or(strings.Join(taken, ", "), "none yet"))
	if len(left) > 0 {
		text += "; the model has no " + printable.Choice(left)
	}
	return text, nil
}

// otherHead returns a hint for an error message that says that the model does not have the kernels `names`.
// If one of them is a kernel that picks the token, the hint says that --top-logits decides which of these
// kernels the model uses. Otherwise there is no hint.
func otherHead(names ...string) string {
	finds := func(name string) bool { return strings.HasPrefix(name, "argmax") || strings.HasPrefix(name, "topk") }
	if !slices.ContainsFunc(names, finds) {
		return ""
	}
	return "; --top-logits decides which kernels pick the token (default: 0 in gpuscope graph and gpuscope run, 5 on the screen)"
}

// Edited returns the names of the edited kernels in use.
func (r *Device) Edited() (names []string) {
	for _, e := range r.Exec.Edits() {
		names = append(names, e.Name())
	}
	return names
}

// sameKernels returns an error if the kernels have changed since step t ran. Such a step must not be
// measured, because the trace would attribute the measurement to the kernels with which the step was
// recorded.
func (s *Session) sameKernels(t Step) error {
	if slices.Equal(t.Edited, s.Edited()) {
		return nil
	}
	return session.Refusef("step %d ran with kernels that are no longer in use; run a new step, or restore the kernels of that step",
		t.Index)
}

// tellEdited records which source a kernel has from the next step on: an edited source, or the original.
func (s *Session) tellEdited(of string) {
	g := s.Graph
	at := s.Rec.Next()
	e := s.Exec.InPlace(of)
	if e == nil {
		s.Event(at, string(session.Kernel), "from now on, steps use the original kernel %s again", of)
		return
	}
	k := e.Describe(g)
	s.Record(trace.Record{Kernel: &k})
	s.Event(at, string(session.Kernel), "%s replaces the kernel %s", e.Name(), of)
}

// beginKernel replaces a kernel with an edited one, or restores the original.
func (s *Session) beginKernel(c session.Command) (Work, error) {
	if c.Edit == nil {
		return nil, session.Refusef("kernel: no edit given")
	}
	if c.Edit.Text == "" {
		if s.Exec.InPlace(c.Edit.Kernel) == nil {
			return nil, session.Refusef("kernel %.80q: the original kernel is already in use", c.Edit.Kernel)
		}
		s.Exec.UseOwn(c.Edit.Kernel)
	} else {
		e, err := s.compile(c.Edit)
		if err != nil {
			return nil, err
		}
		s.Exec.Use(e)
	}
	s.costed = costed{} // the earlier samples were taken with other kernels
	s.tellEdited(c.Edit.Kernel)
	return nil, nil
}

// beginLab checks a lab command and compiles the edited kernel.
func (s *Session) beginLab(c session.Command) (Work, error) {
	switch {
	case c.Edit == nil:
		return nil, session.Refusef("lab: no kernel source given")
	case c.N > engine.MostCostRounds:
		return nil, session.Refusef("lab: %d rounds were requested, but the maximum is %d", c.N,
			engine.MostCostRounds)
	}
	e, err := s.compile(c.Edit)
	if err != nil {
		return nil, err
	}
	t, err := s.stepOf(c.Step)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *session.Reply) error {
		s.Upto = nil
		err := s.lab(ctx, t, e, c, r)
		// After a cancellation, do not restore the values of the current step here: the next command that
		// needs them calls Hold.
		if ctx.Err() == nil {
			err = gpu.Join(err, s.Hold(ctx))
		}
		return err
	}, nil
}

// lab compares a kernel with its edited source by running the two alternately in a step.
func (s *Session) lab(ctx context.Context, t Step, e *engine.Edit, c session.Command,
	r *session.Reply,
) error {
	timing := engine.TimingStep
	if !s.Timed() {
		timing = engine.TimingOff
	}
	if _, err := s.Again(ctx, t, timing); err != nil {
		return err
	}
	s.looked = replayed{step: Nowhere}
	x := s.Exec
	out := &session.Tried{Kernel: c.Edit.Kernel, Name: e.Name(), Step: t.Index}
	serves := x.Serves(c.Edit.Kernel)
	out.Dispatches = len(serves)
	switch id := c.Edit.Dispatch; {
	case id == nil && len(serves) == 0:
		r.Tried = out
		return nil // no dispatch of the step runs the kernel, so there is nothing to compare
	case id == nil:
		out.Dispatch = &serves[0]
	case !slices.Contains(serves, *id):
		return session.Refusef("lab: dispatch %d does not run kernel %s in step %d",
			*id, c.Edit.Kernel, t.Index)
	default:
		out.Dispatch = id
	}
	o := engine.CostOptions{Rounds: c.N, Progress: s.Progress()}
	if c.N == 0 {
		o.For = costFor
	}
	trial, err := x.TryEdit(ctx, e, *out.Dispatch, o)
	if err != nil {
		return err
	}
	software := s.Dev.Info().Type == gpu.CPU
	out.Alone, out.Whole = inTurns(&trial.Alone, software), inTurns(&trial.Step, software)
	out.Stray = trial.Stray
	for i := range trial.Outputs {
		w, err := s.rewritten(&trial.Outputs[i])
		if err != nil {
			return err
		}
		out.Outputs = append(out.Outputs, w)
	}
	if out.Gap, err = s.host.Error(ctx, t, *out.Dispatch, trial.Outputs); err != nil {
		return err
	}
	r.Tried = out
	s.Record(trace.Record{Event: &trace.Event{
		Step: t.Index, Dispatch: out.Dispatch, Kind: string(session.Lab), Text: triedText(out),
	}})
	return nil
}

// inTurns summarizes the durations of the original and the edited kernel, which were measured alternately. It
// returns nil if nothing could be timed. On a GPU, the gain is a trimmed mean, like a cost. On a software
// device, the gain is a median, because other programs on the machine delay some of the runs.
func inTurns(t *engine.Turns, software bool) *session.InTurns {
	if len(t.New) == 0 {
		return nil
	}
	spread := func(ns []int64) (s session.Spread) {
		s.Q1NS, s.NS, s.Q3NS = trace.Quartiles(ns)
		return s
	}
	gains := t.Gains()
	out := &session.InTurns{N: len(gains), Gain: spread(gains), Own: spread(t.Own), New: spread(t.New)}
	if !software {
		out.Gain.NS = min(max(trace.TrimmedMean(gains), out.Gain.Q1NS), out.Gain.Q3NS)
	}
	return out
}

// rewritten compares the results of the original kernel and of the edited kernel in one output value.
func (s *Session) rewritten(o *engine.EditOutput) (session.Rewritten, error) {
	w := session.Rewritten{Value: o.Value}
	info := s.Graph.Value(o.Value)
	w.Elements = graph.Numel(info.MaxDims)
	if info.Role != graph.State {
		w.Elements = graph.Numel(s.Exec.LiveDims(o.Value))
	}
	own, err := reference.Decode(info.DType, o.Own, w.Elements)
	if err != nil {
		return w, err
	}
	edit, err := reference.Decode(info.DType, o.New, w.Elements)
	if err != nil {
		return w, err
	}
	var d verify.Difference
	most := 0.0
	for i := range own {
		off := d.Add(edit[i], own[i])
		if off == 0 {
			continue
		}
		w.Differ++
		if math.IsNaN(off) {
			off = math.Inf(1)
		}
		at := i
		if info.Column != nil {
			at = info.Column(i)
		}
		if off > most || off == most && at < w.Element {
			most, w.Element = off, at
			w.Own, w.New = trace.Number(own[i]), trace.Number(edit[i])
		}
	}
	w.MaxAbs = trace.Number(d.MaxAbs)
	mark := binary.LittleEndian.AppendUint32(nil, engine.Unwritten)
	words := len(o.New) / 4
	for at := 0; at < len(o.New); at += 4 {
		if bytes.Equal(o.New[at:at+4], mark) && !bytes.Equal(o.Own[at:at+4], mark) {
			w.Unwritten += (w.Elements + words - 1) / words
		}
	}
	return w, nil
}

// triedText summarizes the result of a lab test in one line.
func triedText(t *session.Tried) string {
	parts := []string{fmt.Sprintf("%s compared on dispatch %d: %s", t.Name, *t.Dispatch, t.Verdict())}
	if a := t.Alone; a != nil {
		parts = append(parts,
			fmt.Sprintf("isolated %.1f → %.1f µs (%s)", us(a.Own.NS), us(a.New.NS), gained(a)))
	}
	if t.Stray {
		parts = append(parts, "the edited kernel writes State elements that the original kernel does not write")
	}
	if w := t.Whole; w != nil {
		parts = append(parts,
			fmt.Sprintf("whole step %s (%d dispatches use the kernel)", gained(w), t.Dispatches))
	}
	for i := range t.Outputs {
		w := &t.Outputs[i]
		if w.Differ == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%d of %d elements differ", w.Differ, w.Elements))
		if w.MaxAbs.Finite() {
			parts = append(parts, fmt.Sprintf("by %.3g at most", float64(w.MaxAbs)))
		}
	}
	if g := t.Gap; g != nil {
		parts = append(parts, g.Over())
	}
	return strings.Join(parts, ", ")
}

func us(ns int64) float64 { return float64(ns) / 1e3 }

// gained formats a gain as the change of the duration: a negative change means that the edited kernel is
// faster. The change is shown as "=" if the gain is not significant.
func gained(t *session.InTurns) string {
	g := &t.Gain
	change := fmt.Sprintf("%+.1f µs", -us(g.NS))
	if !t.Told() {
		change = "="
	}
	return fmt.Sprintf("%s, %+.1f to %+.1f, n=%d", change, -us(g.Q3NS), -us(g.Q1NS), t.N)
}
