package join

import (
	"maps"
	"slices"

	"gpuscope/trace"
)

// findDoers sets Doers of each piece that only one side has.
func (p *Pairs) findDoers() {
	p.may, p.mayBase = make([][]int, len(p.now.Items)), make([][]int, len(p.baseline.Items))
	ranNow, ranBase := p.now.ran(), p.baseline.ran()
	now, base := newGraph(p.now, ranBase), newGraph(p.baseline, ranNow)
	for k := range p.Pieces {
		piece := &p.Pieces[k]
		switch {
		case len(piece.Base) == 0:
			piece.Doers = base.doers(p.now.op(&p.now.Items[piece.Now[0]]))
			for _, i := range piece.Doers {
				p.mayBase[i] = append(p.mayBase[i], k)
			}
		case len(piece.Now) == 0:
			piece.Doers = now.doers(p.baseline.op(&p.baseline.Items[piece.Base[0]]))
			for _, i := range piece.Doers {
				p.may[i] = append(p.may[i], k)
			}
		}
	}
}

// graph is an index of the operators of a side.
type graph struct {
	*Side
	items map[trace.OpID][]int // of each operator that ran
	named map[string][]trace.OpID
	other map[string]bool // names of the operators that ran on the other side
}

func newGraph(s *Side, other map[string]bool) *graph {
	g := &graph{s, map[trace.OpID][]int{}, map[string][]trace.OpID{}, other}
	for i := range s.Items {
		op := s.op(&s.Items[i]).ID
		g.items[op] = append(g.items[op], i)
	}
	for i := range s.Trace.Graph.Ops {
		o := &s.Trace.Graph.Ops[i]
		for _, name := range slices.Concat([]string{o.Name}, o.Parts) {
			g.named[name] = append(g.named[name], o.ID)
		}
	}
	return g
}

// doers returns the items that may do the work of an operator of the other side. If the same operator of this
// side did not run, these are the items of the operators before and after it in the graph. Operators that
// ran on neither side, such as views, are skipped on the way.
func (g *graph) doers(of *trace.Op) (list []int) {
	for _, name := range slices.Concat([]string{of.Name}, of.Parts) {
		for _, id := range g.named[name] {
			if len(g.items[id]) > 0 {
				continue
			}
			list = g.walk(list, id, func(o *trace.Op) []trace.ValueID { return o.Outputs }, g.Readers)
			list = g.walk(list, id, func(o *trace.Op) []trace.ValueID { return o.Inputs }, g.Writers)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// walk adds the items of the nearest operators that ran in one direction of the graph. `values` returns the
// values of an operator in this direction, and `next` the operators at their other ends.
func (g *graph) walk(list []int, from trace.OpID, values func(*trace.Op) []trace.ValueID,
	next func(trace.ValueID) []trace.OpID,
) []int {
	seen := map[trace.OpID]bool{from: true}
	for queue := []trace.OpID{from}; len(queue) > 0; queue = queue[1:] {
		for _, v := range values(&g.Trace.Graph.Ops[queue[0]]) {
			for _, id := range next(v) {
				switch {
				case seen[id]:
				case len(g.items[id]) > 0:
					list = append(list, g.items[id]...)
				case !g.other[g.Trace.Graph.Ops[id].Name]:
					queue = append(queue, id)
				}
				seen[id] = true
			}
		}
	}
	return list
}

// Moved returns the times in ns of work that only one of two sets of items may include, although the sets are
// compared with each other: `more` is the largest such time of the set of the first side, and `moreBase` that
// of the set of the baseline. The sets hold indices of items. Work that a set may include in addition takes
// at most the time of its dispatch on the other side, and at most the time of the items that may do it. Both
// results are 0 if the graphs are equal.
func (p *Pairs) Moved(now, base []int) (more, moreBase float64) {
	if p.How != ByOperator {
		return 0, 0
	}
	a := half{p.now, p.of, p.may, now, setOf(now), func(x *Piece) []int { return x.Now }}
	b := half{p.baseline, p.ofBase, p.mayBase, base, setOf(base), func(x *Piece) []int { return x.Base }}
	return p.more(&a, &b), p.more(&b, &a)
}

// half is one of two sets that are compared.
type half struct {
	*Side
	of    []int
	may   [][]int
	list  []int
	in    map[int]bool // the same as list
	items func(*Piece) []int
}

// more returns the time of work that the set `a` may include, and that the set `b` does not include.
func (p *Pairs) more(a, b *half) (ns float64) {
	pieces, may := map[int]bool{}, map[int]float64{}
	for _, i := range a.list {
		if k := a.of[i]; k >= 0 {
			pieces[k] = true
		}
		for _, k := range a.may[i] {
			may[k] += a.Items[i].NS
		}
	}
	for _, k := range slices.Sorted(maps.Keys(may)) { // work of the other side that this set may do
		out, _ := b.times(&p.Pieces[k])
		ns += min(out, may[k])
	}
	for _, k := range slices.Sorted(maps.Keys(pieces)) {
		piece := &p.Pieces[k]
		out, in := b.times(piece)
		_, mine := a.times(piece)
		switch {
		case len(b.items(piece)) > 0 && in == 0: // the other side does this work outside of its set
			ns += mine
		case len(b.items(piece)) > 0:
			ns += out
		case len(piece.Doers) > 0 && !slices.ContainsFunc(piece.Doers, func(i int) bool { return b.in[i] }):
			ns += mine
		}
	}
	return ns
}

// times returns the time of the items of a piece that are outside of the set, and of those in it.
func (h *half) times(piece *Piece) (out, in float64) {
	for _, i := range h.items(piece) {
		if h.in[i] {
			in += h.Items[i].NS
		} else {
			out += h.Items[i].NS
		}
	}
	return out, in
}

func setOf(list []int) map[int]bool {
	in := make(map[int]bool, len(list))
	for _, i := range list {
		in[i] = true
	}
	return in
}
