package analyze

import (
	"slices"

	"gpuscope/trace"
)

// Joining says how the launches of a selection were paired with those of a baseline.
type Joining int

// The ways of pairing launches.
const (
	// JoinedByID: both graphs are equal, so equal dispatch ids identify a dispatch.
	JoinedByID Joining = iota
	// JoinedByOperator: the graphs differ. The names of operator and slot identify a dispatch. A dispatch of
	// the baseline without a counterpart of its name belongs to the operator that it was fused into.
	JoinedByOperator
	// JoinedByOrder: the graphs have no dispatch in common. Launches are paired in order of submission.
	JoinedByOrder
)

// join finds the counterparts of each launch at the baseline. If several baseline launches of one dispatch
// match, join takes the one that did the same work.
func (c *comparison) join(x, baseline *Index, now, then []Launch) {
	c.Of = make([][]*Launch, len(now))
	if !sameDispatches(x, baseline) {
		c.joined = JoinedByOperator
	}
	b := newBaselineLaunches(then)
	found := make(map[trace.DispatchID]bool, len(now))
	for i := range now {
		if of := b.find(&now[i]); of != nil {
			c.Of[i], found[of.ID] = []*Launch{of}, true
		}
	}
	if c.joined == JoinedByOperator {
		c.joinParts(x, now, then, found)
	}
	if len(found) == 0 && len(then) > 0 && len(now) > 0 {
		for i := range min(len(now), len(then)) {
			c.Of[i], found[then[i].ID] = []*Launch{&then[i]}, true
		}
		c.joined = JoinedByOrder
	}
	for i := range then {
		if !found[then[i].ID] {
			c.gone, found[then[i].ID] = append(c.gone, &then[i]), true
		}
	}
}

// joinParts adds each baseline launch that has no counterpart to the launches of the operator that does its
// work, if there is one. If the operator has several launches, joinParts uses the one with the most FLOPs.
func (c *comparison) joinParts(x *Index, now, then []Launch, found map[trace.DispatchID]bool) {
	most := map[trace.OpID]*Launch{} // the launch with the most FLOPs of each operator that ran
	for i := range now {
		if l := most[now[i].Op.ID]; l == nil || now[i].flops > l.flops {
			most[now[i].Op.ID] = &now[i]
		}
	}
	// does finds the launch that does the work of an operator. This is a launch of the operator or, if it has
	// none, a launch of an operator that reads its outputs.
	does := func(id trace.OpID) *Launch {
		if l := most[id]; l != nil {
			return l
		}
		for _, v := range x.Trace.Graph.Ops[id].Outputs {
			for _, reader := range x.Consumers(v) {
				if l := most[reader]; l != nil {
					return l
				}
			}
		}
		return nil
	}
	named := map[string]trace.OpID{} // operators by their own name and by the names of their parts
	for i := range x.Trace.Graph.Ops {
		o := &x.Trace.Graph.Ops[i]
		for _, name := range slices.Concat([]string{o.Name}, o.Parts) {
			if _, ok := named[name]; !ok {
				named[name] = o.ID
			}
		}
	}
	extra := map[trace.DispatchID][]*Launch{}
	for i := range then {
		l := &then[i]
		if found[l.ID] {
			continue
		}
		id, ok := named[l.Op.Name]
		if !ok {
			continue
		}
		if to := does(id); to != nil {
			extra[to.ID], found[l.ID] = append(extra[to.ID], l), true
		}
	}
	for i := range now {
		c.Of[i] = append(c.Of[i], extra[now[i].ID]...)
	}
}

// sameDispatches reports whether each dispatch id identifies the same dispatch in both traces.
func sameDispatches(x, y *Index) bool {
	if x == y {
		return true
	}
	a, b := &x.Trace.Graph, &y.Trace.Graph
	return x.Trace.Engine == y.Trace.Engine && slices.EqualFunc(a.Dispatches, b.Dispatches,
		func(d, e trace.Dispatch) bool {
			return d.Label == e.Label && a.Ops[d.Op].Name == b.Ops[e.Op].Name
		})
}

// baselineLaunches is an index of the launches of a baseline, by id and by name.
type baselineLaunches struct {
	byID   map[trace.DispatchID][]*Launch
	byName map[string][]*Launch
}

func newBaselineLaunches(baseline []Launch) baselineLaunches {
	b := baselineLaunches{
		make(map[trace.DispatchID][]*Launch, len(baseline)), make(map[string][]*Launch, len(baseline)),
	}
	for i := range baseline {
		l := &baseline[i]
		b.byID[l.ID] = append(b.byID[l.ID], l)
		b.byName[l.slot()] = append(b.byName[l.slot()], l)
	}
	return b
}

// slot returns the name that identifies the launch's dispatch in its graph: the operator and the label.
func (l *Launch) slot() string { return l.Op.Name + "\x00" + l.Dispatch.Label }

func (b baselineLaunches) find(l *Launch) *Launch {
	list := b.byID[l.ID]
	if len(list) == 0 || list[0].slot() != l.slot() {
		list = b.byName[l.slot()]
	}
	for _, c := range list {
		if trace.OwnKernel(c.Plan.Kernel) == trace.OwnKernel(l.Plan.Kernel) && c.Tokens == l.Tokens {
			return c
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}
