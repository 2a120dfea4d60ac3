package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine"
	"gpuscope/engine/graph"
	"gpuscope/model/network"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/bench"
)

// subject is a group of operators that do the same work at every shape. They are measured together.
type subject struct {
	ops    []graph.OpID
	names  []string    // operator names without their layer numbers
	layers []int       // ascending
	of     trace.Op    // the first operator of the group
	steps  []benchStep // the shapes to measure; if the work is the same at several shapes, only the first
}

// kernels measures isolated operators. Operators that do the same work are measured as one group. Each group
// is measured on each of its routes, at each shape. If the work of the group is the same at several shapes,
// only the first of these shapes is measured.
func (r *benchRun) kernels(ctx context.Context) error {
	if !r.runner.Timed() {
		return session.Refusef("--kernels: cannot measure operators: this device has no timestamps")
	}
	subjects, err := subjects(r.runner.Net, r.kernelSteps())
	if err != nil {
		return err
	}
	for i := range subjects {
		if err := r.subject(ctx, &subjects[i], i, len(subjects)); err != nil {
			return err
		}
	}
	r.result.Crossovers = r.result.FindCrossovers()
	return r.progress("time kernels", len(subjects), len(subjects))
}

// kernelSteps returns the shapes at which operators are measured. The list starts with prompts at position 0,
// in order of length. It ends with a single token at each depth, in order of depth. The prompt lengths are 1,
// the requested lengths, all powers of two, and 1.5 times these powers. None is above the longest requested
// length.
func (r *benchRun) kernelSteps() []benchStep {
	lengths := []int{1}
	for _, n := range r.b.Prompts {
		if n > 0 {
			lengths = append(lengths, min(n, r.m.maxChunk))
		}
	}
	for n, most := 2, slices.Max(lengths); n < most; n *= 2 {
		lengths = append(lengths, n)
		if between := n + n/2; between < most {
			lengths = append(lengths, between)
		}
	}
	slices.Sort(lengths)
	var steps []benchStep
	for _, n := range slices.Compact(lengths) {
		steps = append(steps, benchStep{n, 0})
	}
	for _, depth := range slices.Sorted(slices.Values(r.b.Depths)) {
		steps = append(steps, benchStep{1, depth})
	}
	return steps
}

// subjects returns the groups of operators that launch at least one dispatch, in the order of the graph. If
// the operators of a group have State, such as a KV cache, only the first of them is measured. Saving the
// State of all of them would take longer than the measurement.
func subjects(n *network.Network, steps []benchStep) ([]subject, error) {
	l, err := graph.NewLive(n.Graph, graph.LiveOptions{})
	if err != nil {
		return nil, err
	}
	works := make([][]string, n.Graph.NumOps()) // by operator, then by step
	for _, s := range steps {
		if err := setShape(n, l, s); err != nil {
			return nil, err
		}
		for id := range works {
			works[id] = append(works[id], l.Work(graph.OpID(id)))
		}
	}
	var list []subject
	index := map[string]int{}
	for _, o := range n.Graph.Describe().Ops {
		here := steps[:0:0]
		for i, work := range works[o.ID] {
			if work != "" && !slices.Contains(works[o.ID][:i], work) {
				here = append(here, steps[i])
			}
		}
		if len(here) == 0 {
			continue
		}
		work := strings.Join(works[o.ID], "|")
		at, there := index[work]
		if !there {
			at = len(list)
			index[work] = at
			list = append(list, subject{of: o, steps: here})
		}
		s := &list[at]
		if !there || len(o.State) == 0 {
			s.ops = append(s.ops, o.ID)
		}
		if name := o.Place(); !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
		if o.Layer != nil && !slices.Contains(s.layers, *o.Layer) {
			s.layers = append(s.layers, *o.Layer)
		}
	}
	return list, nil
}

// setShape sets the shapes in l for a step, and commits them.
func setShape(n *network.Network, l *graph.Live, s benchStep) error {
	if err := errors.Join(n.SetShape(l, s.tokens, s.position), l.Propagate()); err != nil {
		return err
	}
	l.Commit()
	return nil
}

// subject measures a group of operators on each of its routes, at each of its shapes.
func (r *benchRun) subject(ctx context.Context, s *subject, done, all int) error {
	for _, step := range s.steps {
		if err := r.progress("time kernels", done, all); err != nil {
			return err
		}
		at := func(l *graph.Live) error { return r.runner.Net.SetShape(l, step.tokens, step.position) }
		times, err := r.runner.Exec.TimeRoutes(ctx, s.ops, r.b.Repetitions, at)
		if err != nil {
			return fmt.Errorf("time %s at %d tokens: %w", s.names[0], step.tokens, err)
		}
		for _, t := range times {
			r.result.Kernels = append(r.result.Kernels, s.kernel(step, t))
		}
	}
	return nil
}

// kernel returns the result that was measured for a group on one route, at one shape.
func (s *subject) kernel(at benchStep, t engine.RouteTime) bench.Kernel {
	size := func(name string) int {
		n, _ := s.of.Attrs[name].(int)
		return n
	}
	return bench.Kernel{
		Ops: s.names, Layers: s.layers, Count: t.Ops, Kind: s.of.Kind, In: size("in"), Out: size("out"),
		Tokens: at.tokens, Position: at.position, Route: t.Route, Planned: t.Planned, Kernels: t.Kernels,
		NS: t.NS, Q1NS: t.Q1NS, Q3NS: t.Q3NS, N: t.N, Bytes: t.Bytes, FLOPs: t.FLOPs,
	}
}
