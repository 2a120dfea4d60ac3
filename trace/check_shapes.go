package trace

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// TellsAbsent reports whether dims that are absent mean a value that is not computed, which is so from
// version 1.1 on. Before, dims of 0 meant that of scratch, a scalar had no dims, and changes did not begin at
// live shapes.
func (t *Trace) TellsAbsent() bool {
	_, _, minor := versionOf(t.Schema)
	n, _ := strconv.Atoi(minor)
	return n >= 1
}

// shapeChecker follows the live shapes of values through the steps: nil is a value that is not computed.
type shapeChecker struct {
	c       *checker
	live    [][]int // by value, after the last step
	known   []bool  // by value: not a SymInt's before the first step, nor after dropped steps
	changes int     // of live, one at first
	checked []int   // by plan: changes when its dispatch was checked last
}

func (c *checker) newShapes() *shapeChecker {
	g := &c.t.Graph
	s := &shapeChecker{
		c: c, live: make([][]int, len(g.Values)), known: make([]bool, len(g.Values)),
		checked: make([]int, len(c.t.Plans)), changes: 1,
	}
	for i := range g.Values {
		v := &g.Values[i]
		s.known[i] = v.Kind == "tensor" && c.t.DroppedSteps == 0
		s.live[i] = append([]int{}, v.MaxDims...)
	}
	return s
}

// step checks that each shape change starts from the current shape and changes it, that the step's recorded
// dims equal the result of the changes, and that no dispatch uses an absent value.
func (s *shapeChecker) step(step int) {
	c, of := s.c, &s.c.t.Steps[step]
	changed := map[ValueID][]int{}
	for i := range of.Resize.Passes {
		for j := range of.Resize.Passes[i].Hooks {
			for k := range of.Resize.Passes[i].Hooks[j].Changed {
				ch := &of.Resize.Passes[i].Hooks[j].Changed[k]
				s.change(ch, changed, "steps[%d].resize.passes[%d].hooks[%d].changed[%d]", step, i, j, k)
			}
		}
	}
	if c.err != nil {
		return
	}
	for i := range of.Dims {
		d := &of.Dims[i]
		s.live[d.Value], s.known[d.Value] = d.Dims, true
		s.changes++
	}
	for _, symInt := range c.t.Graph.SymInts {
		if v := symInt.Value; c.t.Graph.Values[v].Kind == "symint" {
			n, said := of.SymInts[symInt.Name]
			s.live[v], s.known[v] = []int{int(n)}, said
		}
	}
	for _, v := range slices.Sorted(maps.Keys(changed)) {
		if s.known[v] && !sameShape(s.live[v], changed[v]) {
			c.refuse(fmt.Sprintf("value %d is %s, but the resize changed it to %s", v, shapeText(s.live[v]),
				shapeText(changed[v])), "steps[%d].dims", step)
		}
	}
	for i := range of.Dispatches {
		s.dispatch(of.Dispatches[i].Plan, step, i)
	}
}

func (s *shapeChecker) change(ch *Change, changed map[ValueID][]int, at string, args ...any) {
	c := s.c
	if ch.Value < 0 || int(ch.Value) >= len(s.live) {
		return // refused with the pass
	}
	c.dims(ch.From, at+".from", args...)
	c.dims(ch.To, at+".to", args...)
	was, known := s.live[ch.Value], s.known[ch.Value]
	if to, again := changed[ch.Value]; again {
		was, known = to, true
	}
	switch {
	case known && !sameShape(ch.From, was):
		c.refuse(fmt.Sprintf("%s, but the live shape of value %d is %s", shapeText(ch.From), ch.Value,
			shapeText(was)), at+".from", args...)
	case sameShape(ch.From, ch.To):
		c.refuse(fmt.Sprintf("%s, as it was before", shapeText(ch.To)), at+".to", args...)
	}
	changed[ch.Value] = ch.To
}

// dispatch checks that what a plan's kernel is bound to is there.
func (s *shapeChecker) dispatch(plan PlanID, step, i int) {
	if plan < 0 || int(plan) >= len(s.checked) || s.checked[plan] == s.changes {
		return // refused elsewhere, or as it was
	}
	s.checked[plan] = s.changes
	for _, v := range s.c.t.BoundTo(&s.c.t.Plans[plan]) {
		if v >= 0 && int(v) < len(s.live) && s.live[v] == nil {
			s.c.refuse(fmt.Sprintf("it uses value %d, which the step does not compute", v),
				"steps[%d].dispatches[%d]", step, i)
		}
	}
}

// BoundTo are the values that a dispatch touches by a plan; nil where the trace does not say.
func (t *Trace) BoundTo(p *Plan) []ValueID {
	if p.Dispatch < 0 || int(p.Dispatch) >= len(t.Graph.Dispatches) {
		return nil
	}
	d := &t.Graph.Dispatches[p.Dispatch]
	k := slices.Index(d.Kernels, OwnKernel(p.Kernel))
	if k < 0 || len(d.Bound) != len(d.Kernels) {
		return nil
	}
	return d.Bound[k]
}

// sameShape tells a scalar, which has no dims, from a value that is absent.
func sameShape(a, b []int) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

func shapeText(dims []int) string {
	if dims == nil {
		return "absent"
	}
	return fmt.Sprint(dims)
}
