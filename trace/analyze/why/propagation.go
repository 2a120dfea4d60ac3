package why

import (
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// propagation is what a step's resize did in the end. The pass by pass order plans an operator as often as
// something before it changes; here each operator and each value is there once, with what it was before the
// step and what it is in it.
type propagation struct {
	x       *analyze.Index
	step    int
	woken   map[trace.OpID][]trace.ValueID // triggers of each operator, each once
	wakes   map[trace.ValueID][]trace.OpID // the other way round
	inputs  []trace.ValueID                // triggers that no operator gave
	changes map[trace.ValueID]produced     // of the values that operators gave
}

// produced is the change of a value, with the operator that gave it.
type produced struct {
	op   trace.OpID
	goal goal
}

// goal is a change that is to be explained: dims, or a count as a list of one.
type goal struct{ from, to []int }

func propagate(x *analyze.Index, step int) *propagation {
	p := &propagation{
		x: x, step: step, woken: map[trace.OpID][]trace.ValueID{}, wakes: map[trace.ValueID][]trace.OpID{},
		changes: map[trace.ValueID]produced{},
	}
	type trigger struct {
		op trace.OpID
		v  trace.ValueID
	}
	known := map[trigger]bool{}
	var order []trace.ValueID
	s := &x.Trace.Steps[step]
	for i := range s.Resize.Passes {
		for j := range s.Resize.Passes[i].Hooks {
			h := &s.Resize.Passes[i].Hooks[j]
			for _, v := range h.Triggers {
				if w := (trigger{h.Op, v}); !known[w] {
					known[w] = true
					if p.wakes[v] == nil {
						order = append(order, v)
					}
					p.woken[h.Op] = append(p.woken[h.Op], v)
					p.wakes[v] = append(p.wakes[v], h.Op)
				}
			}
			for _, c := range h.Changed {
				from := c.From
				if first, seen := p.changes[c.Value]; seen {
					from = first.goal.from
				}
				p.changes[c.Value] = produced{h.Op, goal{from, c.To}}
			}
		}
	}
	for _, v := range order {
		if _, given := p.changes[v]; !given {
			p.inputs = append(p.inputs, v)
		}
	}
	return p
}

// change is what a trigger was before the step, and is in it.
func (p *propagation) change(v trace.ValueID) goal {
	if c, given := p.changes[v]; given {
		return c.goal
	}
	from, to := inputChange(p.x, p.step, v)
	return goal{from, to}
}

// moved are the changes of those of some values that operators gave otherwise than before.
func (p *propagation) moved(values []trace.ValueID) []goal {
	var list []goal
	for _, v := range values {
		if c, given := p.changes[v]; given && c.goal.moved() {
			list = append(list, c.goal)
		}
	}
	return list
}

// explains says how well a change of a trigger explains a change: 3 where it is the same change, 2 where both
// have a dim that changed in the same way, 1 where both grew in proportion, else 0.
func (g goal) explains(of goal) int {
	if g.from == nil || g.to == nil || of.from == nil || of.to == nil {
		return 0
	}
	a, b, c, d := analyze.Elements(
		g.from,
	), analyze.Elements(
		g.to,
	), analyze.Elements(
		of.from,
	), analyze.Elements(
		of.to,
	)
	switch {
	case a == c && b == d:
		return 3
	case g.sharesDim(of):
		return 2
	case a*d == b*c && a > 0:
		return 1
	}
	return 0
}

func (g goal) sharesDim(of goal) bool {
	if len(g.from) != len(g.to) || len(of.from) != len(of.to) {
		return false
	}
	for i := range g.from {
		for j := range of.from {
			if g.from[i] != g.to[i] && g.from[i] == of.from[j] && g.to[i] == of.to[j] {
				return true
			}
		}
	}
	return false
}

func (g goal) moved() bool { return !slices.Equal(g.from, g.to) }

// best are the triggers of an operator that explain a change best: the goal first of all, and where several
// do as well, what the operator then gives.
func (p *propagation) best(op trace.OpID, of goal, gives []goal) []trace.ValueID {
	var best []trace.ValueID
	most := -1
	for _, v := range p.woken[op] {
		c := p.change(v)
		if c.from != nil && !c.moved() {
			continue
		}
		score := 8 * c.explains(of)
		for _, g := range gives {
			score = max(score, 8*c.explains(of)+2*c.explains(g))
		}
		switch {
		case score > most:
			most, best = score, append(best[:0], v)
		case score == most:
			best = append(best, v)
		}
	}
	return best
}

// chains walks from an operator back over the changes of the step, breadth first: to each input of the graph
// that is to blame for a change, by the shortest way.
func (p *propagation) chains(op trace.OpID, of goal, gives []goal) []Chain {
	type way struct {
		op   trace.OpID
		of   goal
		give []goal
		link Link // by which the way before came here
		back *way
	}
	seen := map[trace.ValueID]bool{}
	var chains []Chain
	for queue := []*way{{op: op, of: of, give: gives}}; len(queue) > 0; queue = queue[1:] {
		w := queue[0]
		for _, v := range p.best(w.op, w.of, w.give) {
			if seen[v] || len(chains) == maxChains {
				continue
			}
			seen[v] = true
			change := p.change(v)
			link := Link{Op: &p.x.Trace.Graph.Ops[w.op], Value: v, From: change.from, To: change.to}
			if c, given := p.changes[v]; given && c.op != w.op {
				queue = append(queue, &way{op: c.op, of: c.goal, link: link, back: w})
				continue
			}
			links := []Link{link}
			for b := w; b.back != nil; b = b.back {
				links = append(links, b.link)
			}
			slices.Reverse(links)
			chains = append(chains, Chain{Links: links, Input: v, From: link.From, To: link.To})
		}
	}
	return chains
}
