package model

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"gpuscope/session"
	"gpuscope/trace"
)

// unexplained returns a description of a change in a trace that no resize explains: a plan that was replaced
// since the previous step, or new dims. It returns "" if all changes are explained.
func unexplained(t *trace.Trace) string {
	if err := t.Check(); err != nil {
		return err.Error()
	}
	for i := 1; i < len(t.Steps); i++ {
		s := &t.Steps[i]
		inForce := map[trace.DispatchID]trace.PlanID{}
		for _, d := range t.Steps[i-1].Dispatches {
			inForce[t.Plans[d.Plan].Dispatch] = d.Plan
		}
		moved := map[trace.ValueID]bool{}
		for _, p := range s.Resize.Passes {
			for _, v := range p.Dirty {
				moved[v] = true
			}
			for _, h := range p.Hooks {
				for _, c := range h.Changed {
					moved[c.Value] = true
				}
				for _, c := range h.Plans {
					if c.From != nil {
						d := t.Plans[*c.From].Dispatch
						if was, ok := inForce[d]; !ok || was != *c.From {
							return fmt.Sprintf("step %d: dispatch %d changes from plan %d, but plan %d was in use",
								s.Index, d, *c.From, was)
						}
						delete(inForce, d)
					}
					if c.To != nil {
						inForce[t.Plans[*c.To].Dispatch] = *c.To
					}
				}
			}
		}
		if len(inForce) != len(s.Dispatches) {
			return fmt.Sprintf("step %d: %d dispatches ran, but its resizes end with %d", s.Index,
				len(s.Dispatches), len(inForce))
		}
		for _, d := range s.Dispatches {
			if was := inForce[t.Plans[d.Plan].Dispatch]; was != d.Plan && !sameButText(t, was, d.Plan) {
				return fmt.Sprintf("step %d: plan %d ran, but its resizes end with %d", s.Index, d.Plan, was)
			}
		}
		for _, d := range s.Dims {
			if !moved[d.Value] {
				return fmt.Sprintf("step %d: new dims of value %d, which nothing changed", s.Index, d.Value)
			}
		}
	}
	return ""
}

// sameButText reports whether two plans differ only in the source of their kernel.
func sameButText(t *trace.Trace, a, b trace.PlanID) bool {
	p, q := t.Plans[a], t.Plans[b]
	kernel := func(name string) string {
		i := slices.IndexFunc(t.Graph.Kernels, func(k trace.Kernel) bool { return k.Name == name })
		return cmp.Or(t.Graph.Kernels[i].Of, name)
	}
	if kernel(p.Kernel) != kernel(q.Kernel) {
		return false
	}
	p.ID, p.Kernel, p.Grid, q.ID, q.Kernel, q.Grid = 0, "", nil, 0, "", nil
	return p == q
}

// A repeat of an earlier step runs at that step's shapes and has no record. The step after it is still
// compared with the last recorded step: here only the position has changed.
func TestStepAfterARepeatComparesWithItsPredecessor(t *testing.T) {
	r := newRig(t, Options{MaxChunk: 16})
	r.do(promptOf(7))
	r.do(session.Command{Kind: session.Next})
	r.do(session.Command{Kind: session.Next})
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Repeat, N: 1}) // repeats the prompt of 7 tokens
	r.do(session.Command{Kind: session.Next})
	steps := r.mirror.Trace.Steps
	last := steps[len(steps)-1]
	if last.Phase != trace.Decode || len(last.Dims) != 0 || len(last.Levels) != 0 {
		t.Errorf("a %s step like the one before has new dims %v and levels %v", last.Phase, last.Dims,
			last.Levels)
	}
	if len(last.Resize.Passes) != 1 || len(last.Resize.Passes[0].Dirty) != 1 {
		t.Fatalf("resize: %+v", last.Resize)
	}
	if v := last.Resize.Passes[0].Dirty[0]; v != r.s.runner.Net.Pos {
		t.Errorf("the resize starts with value %d, want the position", v)
	}
	if _, timed := last.Resize.NS.NS(); timed {
		t.Error("a resize has a time, although it was not timed")
	}
	r.do(session.Command{Kind: session.Repeat, N: 1}) // the same step, so no shape changes
	r.do(session.Command{Kind: session.Next})
	steps = r.mirror.Trace.Steps
	if _, timed := steps[len(steps)-1].Resize.NS.NS(); !timed {
		t.Error("the resize of a step after a repeat in place has no time")
	}
	if !slices.Equal(r.mirror.Trace.Steps[0].Tokens, ids(7)) {
		t.Errorf("the prompt: %v", r.mirror.Trace.Steps[0].Tokens)
	}
}
