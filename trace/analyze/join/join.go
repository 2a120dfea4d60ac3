// Package join pairs the dispatches of one selection of steps with those of another selection. The two
// selections can be from the same run, or from different runs, builds or engines.
package join

import (
	"slices"

	"gpuscope/trace"
)

// How says how dispatches were paired.
type How int

// The ways of pairing dispatches.
const (
	// ByID: both graphs are equal, so equal dispatch ids identify a dispatch.
	ByID How = iota
	// ByOperator: the graphs differ. A dispatch is identified by the name of its operator and by its label.
	// If no dispatch has the name of a baseline dispatch, the baseline dispatch belongs to the operator that
	// it was fused into.
	ByOperator
	// ByOrder: the graphs have no operator in common. Dispatches are paired in order of submission.
	ByOrder
)

// Item is a dispatch with the work that it did in a selection. A dispatch that did different work in
// different steps, such as another number of tokens, has several items.
type Item struct {
	ID     trace.DispatchID
	Kernel string
	Tokens int     // number of input tokens of the step
	FLOPs  float64 // modelled
}

// Side is one of the two selections.
type Side struct {
	Trace *trace.Trace
	Items []Item
	// Readers returns the operators that have a value as input.
	Readers func(trace.ValueID) []trace.OpID
}

// Pairs says which items belong together.
type Pairs struct {
	How  How
	Of   [][]int // for each item, its counterparts: indices of items of the baseline
	Gone []int   // items of the baseline without a counterpart, each dispatch once
}

// Join finds the counterparts of each item at the baseline. If the baseline has several items of the matching
// dispatch, Join takes the item that did the same work. If the sides are swapped, How is the same.
func Join(now, baseline *Side) Pairs {
	p := Pairs{Of: make([][]int, len(now.Items))}
	switch {
	case SameDispatches(now.Trace, baseline.Trace):
	case len(now.Items) == 0 || len(baseline.Items) == 0, now.runsOperatorOf(baseline),
		baseline.runsOperatorOf(now):
		p.How = ByOperator
	default:
		p.How = ByOrder
	}
	names := newNames(baseline)
	found := make(map[trace.DispatchID]bool, len(now.Items))
	for i := range now.Items {
		if k := names.find(now, &now.Items[i]); k >= 0 {
			p.Of[i], found[baseline.Items[k].ID] = []int{k}, true
		}
	}
	if p.How == ByOperator {
		p.parts(now, baseline, found)
	}
	if p.How == ByOrder || p.How == ByID && len(found) == 0 {
		for i := range min(len(now.Items), len(baseline.Items)) {
			p.Of[i], found[baseline.Items[i].ID], p.How = []int{i}, true, ByOrder
		}
	}
	for i := range baseline.Items {
		if id := baseline.Items[i].ID; !found[id] {
			p.Gone, found[id] = append(p.Gone, i), true
		}
	}
	return p
}

// Find returns the index of the item of `baseline` that is the counterpart of the only item of `now`. It
// returns -1 if there is none.
func Find(now, baseline *Side) int { return newNames(baseline).find(now, &now.Items[0]) }

// parts handles the items of the baseline that have no counterpart. It finds the operator that now does the
// work of such an item, if there is one, and adds the item to the counterparts of the operator's dispatch
// with the most FLOPs.
func (p *Pairs) parts(now, baseline *Side, found map[trace.DispatchID]bool) {
	most := map[trace.OpID]int{} // the item with the most FLOPs of each operator that ran
	for i := range now.Items {
		op := now.op(&now.Items[i]).ID
		if k, ok := most[op]; !ok || now.Items[i].FLOPs > now.Items[k].FLOPs {
			most[op] = i
		}
	}
	g := &now.Trace.Graph
	// The function does finds the item that does the work of an operator. This is an item of the operator
	// itself or, if the operator has no item, an item of an operator that reads its outputs.
	does := func(id trace.OpID) (int, bool) {
		if k, ok := most[id]; ok {
			return k, true
		}
		for _, v := range g.Ops[id].Outputs {
			for _, reader := range now.Readers(v) {
				if k, ok := most[reader]; ok {
					return k, true
				}
			}
		}
		return 0, false
	}
	named := map[string]trace.OpID{} // operators by their own name and by the names of their parts
	for i := range g.Ops {
		o := &g.Ops[i]
		for _, name := range slices.Concat([]string{o.Name}, o.Parts) {
			if _, ok := named[name]; !ok {
				named[name] = o.ID
			}
		}
	}
	extra := map[trace.DispatchID][]int{}
	for i := range baseline.Items {
		l := &baseline.Items[i]
		if found[l.ID] {
			continue
		}
		id, ok := named[baseline.op(l).Name]
		if !ok {
			continue
		}
		if k, ok := does(id); ok {
			to := now.Items[k].ID
			extra[to], found[l.ID] = append(extra[to], i), true
		}
	}
	for i := range now.Items {
		p.Of[i] = append(p.Of[i], extra[now.Items[i].ID]...)
	}
}

// SameDispatches reports whether each dispatch id identifies the same dispatch in both traces.
func SameDispatches(x, y *trace.Trace) bool {
	if x == y {
		return true
	}
	a, b := &x.Graph, &y.Graph
	return x.Engine == y.Engine && slices.EqualFunc(a.Dispatches, b.Dispatches,
		func(d, e trace.Dispatch) bool {
			return d.Label == e.Label && a.Ops[d.Op].Name == b.Ops[e.Op].Name
		})
}

// runsOperatorOf reports whether an operator that ran on one side also ran on the other, whole or in parts.
// That some of its parts ran is not enough: two unrelated models can have a name in common.
func (s *Side) runsOperatorOf(other *Side) bool {
	ran := map[string]bool{}
	for i := range other.Items {
		ran[other.op(&other.Items[i]).Name] = true
	}
	missing := func(name string) bool { return !ran[name] }
	return slices.ContainsFunc(s.Items, func(l Item) bool {
		o := s.op(&l)
		return ran[o.Name] || len(o.Parts) > 0 && !slices.ContainsFunc(o.Parts, missing)
	})
}

func (s *Side) op(l *Item) *trace.Op {
	return &s.Trace.Graph.Ops[s.Trace.Graph.Dispatches[l.ID].Op]
}

// slot identifies a dispatch in its graph: the name of the operator and the label.
type slot struct{ operator, label string }

func (s *Side) slot(l *Item) slot {
	return slot{s.op(l).Name, s.Trace.Graph.Dispatches[l.ID].Label}
}

// names is an index of the items of a baseline, by id and by name.
type names struct {
	of     *Side
	byID   map[trace.DispatchID][]int
	byName map[slot][]int
}

func newNames(baseline *Side) names {
	b := names{
		baseline, make(map[trace.DispatchID][]int, len(baseline.Items)),
		make(map[slot][]int, len(baseline.Items)),
	}
	for i := range baseline.Items {
		l := &baseline.Items[i]
		name := baseline.slot(l)
		b.byID[l.ID], b.byName[name] = append(b.byID[l.ID], i), append(b.byName[name], i)
	}
	return b
}

// find returns the index of the counterpart of an item, or -1.
func (b names) find(now *Side, l *Item) int {
	name := now.slot(l)
	list := b.byID[l.ID]
	if len(list) == 0 || b.of.slot(&b.of.Items[list[0]]) != name {
		list = b.byName[name]
	}
	for _, i := range list {
		c := &b.of.Items[i]
		if trace.OwnKernel(c.Kernel) == trace.OwnKernel(l.Kernel) && c.Tokens == l.Tokens {
			return i
		}
	}
	if len(list) == 0 {
		return -1
	}
	return list[len(list)-1]
}
