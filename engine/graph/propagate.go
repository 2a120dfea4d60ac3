package graph

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuscope/engine/graph/grid"
	"gpuscope/engine/graph/internal/bitset"
)

// Propagate re-plans exactly the operators that are affected by the changes since the last Commit. If
// Propagate returns an error, it has discarded all these changes. The graph can then still be run and
// resized.
func (l *Live) Propagate() error {
	start := time.Now()
	l.log.begin(l.order)
	var err error
	if len(l.changed) > 0 {
		if l.order == Topological {
			l.log.pass(l.changed)
			err = l.sweep()
		} else {
			err = l.fixpoint()
		}
	}
	l.log.NS = time.Since(start).Nanoseconds()
	if err != nil {
		l.Discard()
	}
	return err
}

// sweep re-plans the operators in l.wake, in graph order. A value that changes adds only later operators to
// l.wake. So each operator is planned at most once, when all its inputs have their final shapes.
func (l *Live) sweep() error {
	for o := l.wake.Pop(0); o >= 0; o = l.wake.Pop(o) {
		if err := l.run(o, &l.wake); err != nil {
			return err
		}
	}
	return nil
}

// fixpoint re-plans operators in passes until no operator is triggered any more. It first runs the plans of
// the triggered operators that compute only SymInts (see Graph.symOnly). Each later pass runs the plans of
// the operators that were triggered before this pass.
//
// A plan may therefore run before all inputs of its operator have their final shapes. A plan that fails is
// retried in the next pass. If plans fail in a pass that triggers no other operator, fixpoint returns the
// error.
func (l *Live) fixpoint() error {
	l.passWake, l.wake = l.wake, l.passWake
	for o := l.nextSymOp(0); o >= 0; o = l.nextSymOp(o) {
		if len(l.log.passes) == 0 {
			l.log.pass(l.changed)
		}
		if l.run(o, &l.passWake) != nil {
			l.deferRun(o)
		}
	}
	dirty := l.changed
	for pass := 1; !l.passWake.Empty() || !l.deferred.Empty(); pass++ {
		if pass > l.maxPasses {
			return fmt.Errorf("the resize did not converge in %d passes; operators that still change: %s",
				l.maxPasses, l.stillDirty())
		}
		l.log.pass(dirty)
		quiet := l.passWake.Empty()
		l.passWake.Union(l.deferred)
		clear(l.deferred)
		for o := l.passWake.Pop(0); o >= 0; o = l.passWake.Pop(o) {
			err := l.run(o, &l.wake)
			if err != nil && quiet && l.wake.Empty() {
				return err
			}
			if err != nil {
				l.deferRun(o)
			}
		}
		dirty = l.log.changedInPass()
		l.passWake, l.wake = l.wake, l.passWake
	}
	return nil
}

// deferRun records that an operator's plan failed, so that the next pass retries it.
func (l *Live) deferRun(o int) {
	l.deferred.Add(o)
	l.log.hooks[l.lastRun[o]].deferred = true
}

// nextSymOp returns the first operator in `passWake`, starting at index `from`, that computes only SymInts
// (see Graph.symOnly). It also removes this operator from `passWake`. It returns -1 if there is none.
func (l *Live) nextSymOp(from int) int {
	for o := from; o < len(l.G.Ops); o++ {
		if l.G.symOps[o] && l.passWake.Has(o) {
			l.passWake.Remove(o)
			return o
		}
	}
	return -1
}

func (l *Live) stillDirty() string {
	var names []string
	for o := range l.G.Ops {
		if l.passWake.Has(o) || l.deferred.Has(o) {
			names = append(names, l.G.Ops[o].Name)
		}
	}
	if len(names) > 8 {
		names = append(names[:8], fmt.Sprintf("and %d more", len(names)-8))
	}
	return strings.Join(names, ", ")
}

// run re-plans one operator at the new shapes of the transaction. It adds the operators that read changed
// outputs to `wake`.
func (l *Live) run(o int, wake *bitset.Set) error {
	start := time.Now()
	op := &l.G.Ops[o]
	hook := l.log.hook(OpID(o))
	for _, v := range op.Spec.Inputs {
		if l.isChanged[v] && l.changeAt[v] >= l.newFrom[o] {
			l.log.triggers = append(l.log.triggers, v)
		}
	}
	in := &l.Plans[o]
	if l.isPlanned[o] {
		in = &l.nextPlans[o]
	}
	into := &l.scratchPlans[o]
	err := l.planner.make(op, into, l.requested[o], op.Aliased)
	if err == nil {
		err = l.check(op, into)
	}
	if l.lastRun[o] < 0 {
		l.planned = append(l.planned, OpID(o))
	}
	l.lastRun[o] = hook
	if err != nil {
		l.log.end(hook, start)
		return err
	}
	// This run has read all values that changed in earlier passes, so the operator's next run does not list
	// them as triggers. It does list the inputs that change from the start of the current pass on. These
	// include inputs that changed before this run, because they trigger the operator again.
	l.newFrom[o] = l.log.passes[len(l.log.passes)-1].hookStart
	if l.static {
		l.pin(op, into)
	}
	noop := l.logPlans(op, in, into)
	for i := range into.outs {
		out, v := &into.outs[i], op.out(i)
		if l.G.Values[v].Kind == SymInt {
			if l.next.ints[v] == out.int {
				continue
			}
			l.log.changeInt(v, out.int)
			l.change(v)
			l.next.ints[v] = out.int
		} else {
			if slices.Equal(l.next.dims[v], out.dims) && l.next.deferred[v] == out.deferred {
				continue
			}
			l.change(v)
			copy(l.next.dims[v], out.dims)
			l.next.deferred[v] = out.deferred
			l.log.changeDims(v, out.dims, l.G.absent(&l.next, v))
		}
		noop = false
		l.changeAt[v] = hook
		for _, c := range l.G.Values[v].Consumers {
			wake.Add(int(c))
			if r := l.lastRun[c]; r >= 0 {
				l.log.hooks[r].glitch = true // the consumer was planned before this input changed
			}
		}
	}
	l.nextPlans[o], l.scratchPlans[o] = l.scratchPlans[o], l.nextPlans[o]
	l.isPlanned[o] = true
	l.log.hooks[hook].noop = noop
	l.log.end(hook, start)
	return nil
}

// check returns an error if a plan needs a kernel that was not compiled or more memory than was allocated, or
// if it sets a SymInt that is out of range.
func (l *Live) check(o *Op, p *Plan) error {
	refuse := func(format string, args ...any) error {
		l.planner.err = fmt.Errorf(format, args...)
		return &OpError{Op: o.Name, Kind: o.Spec.Kind, Args: l.planner.arguments(), Err: l.planner.err}
	}
	for i := range p.Launches {
		if p.Launches[i].Active && !o.Aliased && !l.G.Compiled(o, i, p.Route) {
			return refuse(
				"dispatch slot %q has no compiled kernel, because no corner (extreme shape) uses route %s",
				o.Spec.Slots[i].Label, o.RouteName(p.Route))
		}
	}
	for i := range p.outs {
		out := &p.outs[i]
		if !out.set {
			continue
		}
		val := &l.G.Values[o.out(i)]
		if val.Kind == SymInt {
			if out.int < val.Lo || out.int > val.Hi {
				return refuse("%s would be %d, but it must be from %d to %d",
					val.Name, out.int, val.Lo, val.Hi)
			}
			continue
		}
		if len(out.dims) != len(val.MaxDims) {
			return refuse("%s would have rank %d, but it was built with rank %d", val.Name, len(out.dims),
				len(val.MaxDims))
		}
		for j, d := range out.dims {
			if d < 1 {
				return refuse("%s would have dims %v, but dim %d must be at least 1", val.Name, out.dims, j)
			}
			if d > val.MaxDims[j] && val.Role != Scratch {
				return refuse("%s would have dims %v, but memory is allocated for dims %v",
					val.Name, out.dims, val.MaxDims)
			}
		}
		if Numel(out.dims) == 0 {
			return refuse("%s would have dims %v, which is more than %d elements",
				val.Name, out.dims, maxElements)
		}
		if n := val.DType.Bytes(Numel(out.dims)); n > val.Bytes {
			return refuse("%s would need %d bytes, but %d bytes are allocated", val.Name, n, val.Bytes)
		}
	}
	return nil
}

// Compiled reports whether the kernel of a slot on a route is compiled. It is compiled if a corner uses it.
func (g *Graph) Compiled(o *Op, slot, route int) bool {
	d := o.Dispatches[slot]
	return d >= 0 && g.Dispatches[d].routes>>route&1 != 0
}

// out returns value i of a list that begins with the operator's outputs and ends with its scratch tensors.
func (o *Op) out(i int) ValueID {
	if i < len(o.Spec.Outputs) {
		return o.Spec.Outputs[i]
	}
	return o.Spec.Scratch[i-len(o.Spec.Outputs)]
}

// pin enlarges the grid of each slot of a plan to the largest grid that the slot has on the plan's route.
func (l *Live) pin(o *Op, p *Plan) {
	for s := range p.Launches {
		p.Launches[s].Grid.Cover(o.largestGrid(s, p.Route))
	}
}

// largestGrid returns a grid that covers all grids of a slot on a route, over the corners that use this
// route.
func (o *Op) largestGrid(slot, route int) (g grid.Grid) {
	for c := range o.corner {
		if at := &o.corner[c]; at.Route == route && at.Launches[slot].Active {
			g.Cover(at.Launches[slot].Grid)
		}
	}
	return g
}

// logPlans compares two plans of an operator, and logs the dispatches that changed. It returns true if none
// changed.
func (l *Live) logPlans(o *Op, before, after *Plan) (same bool) {
	same = true
	for i := range after.Launches {
		if o.Dispatches[i] < 0 {
			continue
		}
		a, b := &before.Launches[i], &after.Launches[i]
		if before.Route == after.Route && before.Reason == after.Reason && a.equal(b) {
			continue
		}
		if !a.Active && !b.Active {
			continue
		}
		same = false
		l.log.plan(o.Dispatches[i], after, i)
	}
	return same
}

func (a *Launch) equal(b *Launch) bool {
	if a.Active != b.Active {
		return false
	}
	return !a.Active || a.Grid == b.Grid && a.Bytes == b.Bytes && a.FLOPs == b.FLOPs &&
		a.Experts == b.Experts && a.Needed == b.Needed && a.Params.Equal(&b.Params)
}
