package stepping

import (
	"context"
	"fmt"

	"gpuscope/engine"
	"gpuscope/engine/graph"
	"gpuscope/session"
	"gpuscope/trace"
)

// The command look reads the elements of a value. After a step, other values may have overwritten the memory
// of the requested value. The step therefore runs again up to the requested dispatch, after which the value
// is read. The elements are the same as in the first run, because the KV cache still contains everything that
// the step read. If a value is read several times after the same dispatch, the step runs again only once.

// Nowhere is used as a step index to mean no step.
const Nowhere = -1

// replayed describes the last replay: the step that ran again, the last dispatch that ran, and the value for
// which it ran. Only this value is certain to be intact in memory. To read another value, the step must run
// again.
type replayed struct {
	step  int
	after trace.DispatchID
	value trace.ValueID
}

// beginLook checks a look command before any step is run.
func (s *Session) beginLook(c session.Command) (Work, error) {
	if c.At == nil {
		return nil, session.Refusef("look: no value given")
	}
	at := *c.At
	switch {
	case at.Offset < 0 || at.Count < 0 || at.Count > session.MostNumbers || at.Rows < 0 || at.Stride < 0 ||
		at.Rows > 0 && at.Count > session.MostNumbers/at.Rows:
		return nil, session.Refusef("look: invalid request for %s, starting at element %d; the maximum is %d elements",
			pageText(at), at.Offset, session.MostNumbers)
	case at.Map != nil && (at.Map.Width < 1 || at.Map.Rows < 1 || at.Map.Columns < 1 ||
		at.Map.Elements < 0):
		return nil, session.Refusef("look: invalid heat map: cells of %d×%d elements, rows of %d elements; each of these numbers must be 1 or more, and the field \"elements\" 0 or more",
			at.Map.Rows, at.Map.Columns, at.Map.Width)
	}
	steps, err := s.stepsOf(c.Kind, at)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *session.Reply) error { return s.look(ctx, at, steps, r) }, nil
}

// looksAt holds the steps that a look reads. `step` is nil for a constant, which no step changes. `baseline`
// is nil without a baseline.
type looksAt struct{ step, baseline *Step }

// stepsOf returns the steps that must run to read the value that `at` selects. It returns an error if the
// value cannot be read.
func (s *Session) stepsOf(kind session.CommandKind, at session.LookAt) (of looksAt, err error) {
	if at.Value < 0 || int(at.Value) >= s.Graph.NumValues() {
		return of, session.Refusef("%s: there is no value %d; the graph has %d values", kind, at.Value,
			s.Graph.NumValues())
	}
	v := s.Graph.Value(at.Value)
	switch {
	case v.SymInt:
		return of, session.Refusef("%s: %s is an integer on the host, so it cannot be read as a tensor; its value is in the record of the step", kind, v.Name)
	case v.Role == graph.Fused:
		return of, session.Refusef("%s: %s is fused away, so it is never in memory", kind, v.Name)
	case v.Role == graph.Constant && at.Baseline != nil:
		return of, session.Refusef("%s: %s is a constant: it is the same in every step", kind, v.Name)
	case v.Role == graph.Constant:
		return of, nil
	}
	t, err := s.stepOf(at.Step)
	if err != nil {
		return of, err
	}
	of.step = &t
	if b := at.Baseline; b != nil {
		base, err := s.stepOf(&b.Step)
		if err != nil {
			return of, fmt.Errorf("baseline: %w", err)
		}
		of.baseline = &base
	}
	return of, nil
}

func pageText(at session.LookAt) string {
	if at.Rows > 0 {
		return fmt.Sprintf("%d rows of %d elements with a stride of %d", at.Rows, at.Count, at.Stride)
	}
	return fmt.Sprintf("%d elements", at.Count)
}

// stepOf returns the step with the given index, or the current step if `step` is nil.
func (s *Session) stepOf(step *int) (Step, error) {
	t, ok := s.host.Current()
	if !ok {
		return t, errNoStep
	}
	if step == nil {
		return t, nil
	}
	if t, ok = s.host.Find(*step); !ok {
		return t, session.Refusef("step %d cannot run again: it is no longer part of the text, because the user stepped back or began another text",
			*step)
	}
	return t, nil
}

// opened is a value whose elements can be read.
type opened struct {
	numbers
	pair *pair // the two values of a comparison; nil without a baseline
}

// open runs steps again until the device holds the value that `at` selects. It stores a description of the
// value in `out`. If `at` has a baseline, the elements are the differences.
func (s *Session) open(ctx context.Context, at session.LookAt, of looksAt, out *session.Tensor) (opened,
	error,
) {
	if of.baseline == nil {
		s.kept = nil
	} else if err := s.keep(ctx, at, *of.baseline); err != nil {
		return opened{}, err
	}
	out.Value = at.Value
	if of.step != nil {
		if err := s.replayTo(ctx, at, *of.step, out); err != nil {
			return opened{}, err
		}
	}
	o := opened{numbers: s.numbers(at.Value)}
	if of.baseline != nil {
		p := pairOf(o.numbers, s.kept.numbers)
		out.Baseline = &session.BaselineOf{
			Step: of.baseline.Index, After: s.kept.after, Dims: s.kept.dims, Whole: o.dims,
		}
		o = opened{p.numbers, &p}
	}
	out.DType, out.Dims = o.dtype, o.dims
	return o, nil
}

// look reads the requested elements and summaries of a value.
func (s *Session) look(ctx context.Context, at session.LookAt, of looksAt, r *session.Reply) error {
	out := &session.Tensor{}
	n, err := s.open(ctx, at, of, out)
	if err != nil {
		return err
	}
	out.Offset = min(at.Offset, n.count)
	for row := range max(at.Rows, 1) {
		first := out.Offset + row*min(at.Stride, n.count)
		if first >= n.count {
			break
		}
		part, err := n.read(first, min(at.Count, n.count-first))
		if err != nil {
			return err
		}
		for _, v := range part {
			out.Numbers = append(out.Numbers, trace.Number(v))
		}
	}
	if err := s.summarize(ctx, at, n, out); err != nil {
		return err
	}
	r.Tensor = out
	return nil
}

// summarize computes the requested summaries of all elements: the statistics and the heat map.
func (s *Session) summarize(ctx context.Context, at session.LookAt, n opened, out *session.Tensor) error {
	var err error
	passes := 0
	if at.Statistics {
		passes += 2
	}
	if at.Statistics && n.pair != nil {
		passes++
	}
	if at.Map != nil {
		passes++
	}
	name := s.Graph.Value(at.Value).Name
	sc := &scan{numbers: n.numbers, ctx: ctx, passes: passes, tell: s.Progress(), phase: "reading " + name}
	if at.Statistics {
		if out.Statistics, err = sc.statistics(); err != nil {
			return fmt.Errorf("statistics of %s: %w", name, err)
		}
	}
	if at.Statistics && n.pair != nil {
		if out.Difference, err = sc.compare(n.pair); err != nil {
			return fmt.Errorf("compare %s: %w", name, err)
		}
	}
	if at.Map != nil {
		if out.Map, err = sc.heatMap(*at.Map); err != nil {
			return fmt.Errorf("heat map of %s: %w", name, err)
		}
	}
	return nil
}

// replayTo runs step t again up to at.After, or up to the last dispatch that writes the value if at.After is
// nil. It stores the id of this last dispatch in out.After.
func (s *Session) replayTo(ctx context.Context, at session.LookAt, t Step, out *session.Tensor) error {
	out.Step = &t.Index
	if s.Ran != t.Index {
		differs, err := s.Again(ctx, t, engine.TimingOff)
		if err != nil {
			return err
		}
		if differs != "" {
			why := "the device does not compute the same result twice"
			if len(s.Edited()) > 0 {
				why = "an edited kernel is in use"
			}
			return fmt.Errorf("step %d %s: %s", t.Index, differs, why)
		}
	}
	x := s.Exec
	writers := x.Writers(at.Value)
	v := s.Graph.Value(at.Value)
	switch {
	case at.After != nil:
		out.After = at.After
	case len(writers) > 0:
		out.After = &writers[len(writers)-1]
	case v.Role == graph.Input:
		return nil
	case x.Live().Deferred(at.Value):
		return fmt.Errorf("no dispatch writes %s in step %d: the value is fused into the operators that read it", v.Name, t.Index)
	default:
		return fmt.Errorf("no dispatch writes %s in step %d: its operator runs on a route that does not compute this value",
			v.Name, t.Index)
	}
	if to := (replayed{t.Index, *out.After, at.Value}); s.looked != to {
		s.looked = replayed{step: Nowhere}
		if err := s.replayLook(ctx, engine.Look{After: to.after, Value: at.Value}); err != nil {
			return err
		}
		s.looked = to
	}
	return nil
}
