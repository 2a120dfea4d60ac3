package trace

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// TellsAbsent reports whether absent dims in this trace mean that a step does not compute the value. This is
// the case from version 1.1 of the format on. In version 1.0, absent dims meant a scalar, and a dim of 0
// meant that the value is not computed. Also in version 1.0, Change.From was not always the current shape.
func (t *Trace) TellsAbsent() bool {
	_, _, minor := versionOf(t.Schema)
	n, _ := strconv.Atoi(minor)
	return n >= 1
}

// shapeChecker follows the current shape of each value from step to step. A shape of nil means that the value
// is not computed.
type shapeChecker struct {
	c    *checker
	live [][]int // for each value, the shape after the last checked step
	// known holds for each value whether its shape is known. The shape of a SymInt is not known before the
	// first step. After dropped steps, no shape is known.
	known   []bool
	changes int   // 1 plus the number of shape changes so far
	checked []int // for each plan, the value of `changes` when the plan was checked
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

// step checks the shape changes of one step. Each change must start from the current shape of the value and
// must end at a different shape. After all changes, each value must have the dims that the step recorded. A
// dispatch must not use a value that is not computed.
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
			c.refuse(fmt.Sprintf("value %d has shape %s, but according to the resize its shape is %s",
				v, shapeText(s.live[v]),
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
		return // c.pass has already rejected this id
	}
	c.dims(ch.From, at+".from", args...)
	c.dims(ch.To, at+".to", args...)
	was, known := s.live[ch.Value], s.known[ch.Value]
	if to, again := changed[ch.Value]; again {
		was, known = to, true
	}
	switch {
	case known && !sameShape(ch.From, was):
		c.refuse(fmt.Sprintf("shape %s is not the current shape of value %d, which is %s",
			shapeText(ch.From), ch.Value,
			shapeText(was)), at+".from", args...)
	case sameShape(ch.From, ch.To):
		c.refuse(fmt.Sprintf("the change does not change the shape %s", shapeText(ch.To)), at+".to", args...)
	}
	changed[ch.Value] = ch.To
}

// dispatch checks that the step computes every value that the kernel of the plan binds.
func (s *shapeChecker) dispatch(plan PlanID, step, i int) {
	if plan < 0 || int(plan) >= len(s.checked) || s.checked[plan] == s.changes {
		return // the id is rejected elsewhere, or no shape has changed since the last check
	}
	s.checked[plan] = s.changes
	for _, v := range s.c.t.BoundTo(&s.c.t.Plans[plan]) {
		if v >= 0 && int(v) < len(s.live) && s.live[v] == nil {
			s.c.refuse(fmt.Sprintf("the dispatch uses value %d, which the step does not compute", v),
				"steps[%d].dispatches[%d]", step, i)
		}
	}
}

// BoundTo returns the values that are bound to the kernel of a dispatch with this plan. If the trace does not
// record the bindings, it returns nil.
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

// sameShape reports whether two shapes are equal. An empty shape is a scalar, and a nil shape means that the
// value is absent. An empty and a nil shape are therefore not equal.
func sameShape(a, b []int) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

func shapeText(dims []int) string {
	if dims == nil {
		return "absent"
	}
	return fmt.Sprint(dims)
}
