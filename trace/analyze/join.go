package analyze

import (
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze/join"
)

// Piece is a piece of work with the launches that do it in a selection and at the baseline. One of the lists
// is empty if the other side has no dispatch for this work.
type Piece struct{ Now, Base []*Launch }

// join finds the launches of both sides that do the same work.
func (c *comparison) join(now, then []Launch) {
	a, b := joinSide(c.x, now), joinSide(c.baseline, then)
	c.pairs = join.Join(&a, &b)
	c.Joined, c.Pieces, c.of = c.pairs.How, make([]Piece, len(c.pairs.Pieces)), make([]int, len(now))
	c.layers = layered(c.x) == layered(c.baseline)
	c.index = make(map[*Launch]int, len(now)+len(then))
	for i := range now {
		c.index[&now[i]] = i
	}
	for i := range then {
		c.index[&then[i]] = i
	}
	for k, p := range c.pairs.Pieces {
		piece := &c.Pieces[k]
		for _, i := range p.Now {
			piece.Now, c.of[i] = append(piece.Now, &now[i]), k
		}
		for _, i := range p.Base {
			piece.Base = append(piece.Base, &then[i])
		}
		if piece.Now == nil {
			c.Gone = append(c.Gone, piece.Base...)
		}
	}
}

// layered reports whether operators of a graph have layers. Those of a profile without names have none.
func layered(x *Index) bool {
	return slices.ContainsFunc(x.Trace.Graph.Ops, func(o trace.Op) bool { return o.Layer != nil })
}

// Counterparts are the launches of a baseline that belong to some launches of a selection.
type Counterparts struct {
	Launches []*Launch
	joined   join.How
	n, added int  // number of launches of the selection, and of those without a counterpart
	part     bool // a piece of work has other launches of the selection too
	layers   bool // both graphs have layers, or neither has
}

// SameWork reports whether both sides are known to do the same work, so that their times can be compared.
// In a heading, such as a layer, some launches may have no counterpart. Elsewhere, if the graphs differ,
// their work may be in other rows of the baseline.
func (of *Counterparts) SameWork(heading bool) bool {
	some := of.added > 0 && of.added < of.n && of.joined == join.ByOperator
	return !of.part && of.joined != join.ByOrder && (heading && of.layers || !heading && !some)
}

// Counterparts returns the counterparts of some launches of the selection. So that each launch of the
// baseline belongs to one of the selection, those of a piece of work belong to its launch with the most
// FLOPs.
func (c *comparison) Counterparts(now []*Launch) Counterparts {
	of, members := Counterparts{joined: c.Joined, n: len(now), layers: c.layers}, map[int]int{}
	for _, l := range now {
		k := c.of[c.index[l]]
		piece := &c.Pieces[k]
		if members[k]++; len(piece.Base) == 0 {
			of.added++
		}
		most := piece.Now[0]
		for _, o := range piece.Now {
			if o.flops > most.flops {
				most = o
			}
		}
		if l == most {
			of.Launches = append(of.Launches, piece.Base...)
		}
	}
	for k, n := range members {
		of.part = of.part || n < len(c.Pieces[k].Now)
	}
	return of
}

// moved returns package join's bounds of the work that only one of two lists of launches includes.
func (c *comparison) moved(now, base []*Launch) (more, moreBase float64) {
	indices := func(list []*Launch) (of []int) {
		for _, l := range list {
			of = append(of, c.index[l])
		}
		return of
	}
	if c.Joined != join.ByOperator {
		return 0, 0
	}
	return c.pairs.Moved(indices(now), indices(base))
}

// joinSide returns the launches of a selection in the form in which package join pairs them.
func joinSide(x *Index, launches []Launch) join.Side {
	s := join.Side{
		Trace: x.Trace, Items: make([]join.Item, len(launches)), Readers: x.Consumers, Writers: x.Producers,
	}
	for i := range launches {
		l := &launches[i]
		s.Items[i] = join.Item{
			ID: l.ID, Kernel: l.Plan.Kernel, Tokens: l.Tokens, FLOPs: l.flops, NS: l.Time.Median,
		}
	}
	return s
}
