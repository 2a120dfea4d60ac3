// Package join pairs the dispatches of one selection of steps with those of another selection. The two
// selections can be from the same run, or from different runs, builds or engines.
package join

import (
	"cmp"
	"slices"

	"gpuscope/trace"
)

// How says how dispatches were paired.
type How int

// The ways of pairing dispatches.
const (
	// ByID: both graphs are equal, so equal dispatch ids identify a dispatch.
	ByID How = iota
	// ByOperator: the graphs differ. A dispatch is identified by the name of its operator and by its label. A
	// fused dispatch belongs to the dispatches of its parts.
	ByOperator
	// ByOrder: the graphs have no operator in common. Dispatches are paired in order of submission. Whether
	// they do the same work is not known.
	ByOrder
)

// Item is a dispatch with the work that it did in a selection. A dispatch that did different work in
// different steps, such as another number of tokens, has several items.
type Item struct {
	ID     trace.DispatchID
	Kernel string
	Tokens int     // number of input tokens of the step
	FLOPs  float64 // modelled
	NS     float64 // time, or 0 if it was not measured
}

// Side is one of the two selections.
type Side struct {
	Trace *trace.Trace
	Items []Item
	// Readers returns the operators that have a value as input, and Writers those that compute it.
	Readers, Writers func(trace.ValueID) []trace.OpID
}

// Piece is a piece of work with the items that do it, as indices into the items of both sides. One of the
// lists is empty if the other side has no item for this work.
type Piece struct {
	Now, Base []int
	// Doers holds, if one list is empty, the items of the other side that may do this work as a part of their
	// own: those that compute the inputs or read the outputs of an operator that did not run there.
	Doers []int
}

// Pairs says which items belong together.
type Pairs struct {
	How How
	// Pieces holds all pieces of work, in order of their items of the first side, then those that only the
	// baseline has. If the sides are swapped, so are the lists of each piece.
	Pieces []Piece

	now, baseline *Side
	of, ofBase    []int   // for each item, its piece; -1 for an item of the baseline that belongs to none
	may, mayBase  [][]int // for each item, the pieces of the other side whose work it may do
}

// Join finds the items that do the same work. If the baseline has several items of the matching dispatch,
// Join takes the item that did the same work. If the sides are swapped, How is the same.
func Join(now, baseline *Side) Pairs {
	p := Pairs{now: now, baseline: baseline}
	switch {
	case SameDispatches(now.Trace, baseline.Trace):
		p.add(p.slots())
	case len(now.Items) == 0 || len(baseline.Items) == 0, now.runsOperatorOf(baseline),
		baseline.runsOperatorOf(now):
		p.How = ByOperator
		p.add(p.operators())
	default:
		p.How = ByOrder
		p.add(p.order())
	}
	if p.How == ByOperator {
		p.findDoers()
	}
	return p
}

// Find returns the index of the item of `baseline` that is the counterpart of the only item of `now`. It
// returns -1 if there is none.
func Find(now, baseline *Side) int { return newNames(baseline).find(now, &now.Items[0]) }

// add adds the pieces, and a piece for each dispatch of the baseline that is in none of them.
func (p *Pairs) add(pieces []Piece) {
	found := make(map[trace.DispatchID]bool, len(p.baseline.Items))
	p.of, p.ofBase = make([]int, len(p.now.Items)), make([]int, len(p.baseline.Items))
	for i := range p.ofBase {
		p.ofBase[i] = -1
	}
	slices.SortStableFunc(pieces, func(a, b Piece) int { return cmp.Compare(a.Now[0], b.Now[0]) })
	for k, piece := range pieces {
		for _, i := range piece.Now {
			p.of[i] = k
		}
		for _, i := range piece.Base {
			p.ofBase[i], found[p.baseline.Items[i].ID] = k, true
		}
	}
	for i := range p.baseline.Items {
		if id := p.baseline.Items[i].ID; !found[id] {
			p.ofBase[i], found[id] = len(pieces), true
			pieces = append(pieces, Piece{Base: []int{i}})
		}
	}
	p.Pieces = pieces
}

// slots returns a piece for each item, with its counterpart if there is one.
func (p *Pairs) slots() []Piece {
	names := newNames(p.baseline)
	pieces := make([]Piece, len(p.now.Items))
	for i := range p.now.Items {
		pieces[i].Now = []int{i}
		if k := names.find(p.now, &p.now.Items[i]); k >= 0 {
			pieces[i].Base = []int{k}
		}
	}
	return pieces
}

// order returns pieces that pair the items in order.
func (p *Pairs) order() []Piece {
	pieces := make([]Piece, len(p.now.Items))
	for i := range pieces {
		pieces[i].Now = []int{i}
		if i < len(p.baseline.Items) {
			pieces[i].Base = []int{i}
		}
	}
	return pieces
}

// operators returns the pieces of two different graphs. The dispatches of an operator are paired by label if
// both sides have the same labels. Otherwise they are one piece together, with those of all operators that it
// was fused with on one of the sides.
func (p *Pairs) operators() (pieces []Piece) {
	type set struct {
		now, base []int
		apart     bool // an item has no counterpart of the same name
	}
	related := relations{}
	for _, s := range []*Side{p.now, p.baseline} {
		for i := range s.Items {
			o := s.op(&s.Items[i])
			for _, part := range o.Parts {
				related.join(o.Name, part)
			}
		}
	}
	sets := map[string]*set{}
	at := func(s *Side, i int) *set {
		name := related.of(s.op(&s.Items[i]).Name)
		if sets[name] == nil {
			sets[name] = &set{}
		}
		return sets[name]
	}
	single := p.slots()
	found := make(map[trace.DispatchID]bool, len(p.baseline.Items))
	for i, piece := range single {
		s := at(p.now, i)
		s.now, s.apart = append(s.now, i), s.apart || len(piece.Base) == 0
		for _, k := range piece.Base {
			found[p.baseline.Items[k].ID] = true
		}
	}
	for i := range p.baseline.Items {
		s := at(p.baseline, i)
		s.base, s.apart = append(s.base, i), s.apart || !found[p.baseline.Items[i].ID]
	}
	for _, s := range sets {
		switch {
		case !s.apart || len(s.base) == 0:
			for _, i := range s.now {
				pieces = append(pieces, single[i])
			}
		case len(s.now) > 0:
			pieces = append(pieces, p.together(s.now, s.base)...)
		}
	}
	return pieces
}

// together returns one piece with these items for each number of tokens that `now` has. If no item of the
// baseline read this number of tokens, the piece has the items with the number of tokens of the last one.
func (p *Pairs) together(now, base []int) (pieces []Piece) {
	with := func(s *Side, list []int, tokens int) (of []int) {
		for _, i := range list {
			if s.Items[i].Tokens == tokens {
				of = append(of, i)
			}
		}
		return of
	}
	seen := map[int]bool{}
	for _, i := range now {
		tokens := p.now.Items[i].Tokens
		if seen[tokens] {
			continue
		}
		seen[tokens] = true
		piece := Piece{Now: with(p.now, now, tokens), Base: with(p.baseline, base, tokens)}
		if piece.Base == nil {
			piece.Base = with(p.baseline, base, p.baseline.Items[base[len(base)-1]].Tokens)
		}
		pieces = append(pieces, piece)
	}
	return pieces
}

// relations divides names into disjoint sets. A name that was never joined is a set of its own.
type relations map[string]string // a name to another name of its set

// of returns the name that identifies the set of a name.
func (r relations) of(name string) string {
	for r[name] != "" {
		name = r[name]
	}
	return name
}

func (r relations) join(a, b string) {
	if a, b = r.of(a), r.of(b); a != b {
		r[a] = b
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
	ran := other.ran()
	missing := func(name string) bool { return !ran[name] }
	return slices.ContainsFunc(s.Items, func(l Item) bool {
		o := s.op(&l)
		return ran[o.Name] || len(o.Parts) > 0 && !slices.ContainsFunc(o.Parts, missing)
	})
}

// ran returns the names of all operators that ran.
func (s *Side) ran() map[string]bool {
	names := map[string]bool{}
	for i := range s.Items {
		names[s.op(&s.Items[i]).Name] = true
	}
	return names
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
