package why

import (
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// propagation is the net result of a step's shape propagation. A step with several passes may plan an
// operator and change a value several times. In a propagation each operator and each value occurs once,
// with its state before the step and in the step.
type propagation struct {
	x       *analyze.Index
	step    int
	woken   map[trace.OpID][]trace.ValueID // triggers of each operator, without duplicates
	wakes   map[trace.ValueID][]trace.OpID // operators that each value triggers, the inverse of woken
	inputs  []trace.ValueID                // triggers that are not the output of a planned operator
	changes map[trace.ValueID]produced     // changes of values that are outputs of planned operators
}

// produced is the change of a value, with the operator that produced it.
type produced struct {
	op   trace.OpID
	goal goal
}

// goal is a change to be explained: a change of dims, or of a count. A count is stored as a list with one
// element.
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

// change returns the state of a trigger before the step and in the step.
func (p *propagation) change(v trace.ValueID) goal {
	if c, given := p.changes[v]; given {
		return c.goal
	}
	from, to := inputChange(p.x, p.step, v)
	return goal{from, to}
}

// moved returns the changes of those values that operators of the step really changed.
func (p *propagation) moved(values []trace.ValueID) []goal {
	var list []goal
	for _, v := range values {
		if c, given := p.changes[v]; given && c.goal.moved() {
			list = append(list, c.goal)
		}
	}
	return list
}

// explains rates how well the change of a trigger (g) explains another change (of). The rating is 3 if both
// changes have the same numbers of elements before and after, 2 if a dim has the same sizes before and after
// in both, 1 if both numbers of elements change by the same factor, else 0.
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

// best returns the triggers of an operator that explain a change best. The argument gives holds the changes
// of the operator's outputs. Of several triggers that explain the change equally well, best prefers those
// that also explain the changes in gives.
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

// chains follows the changes of the step from an operator back to the graph's inputs, breadth first. chains
// returns the shortest chain to each input that caused the change.
func (p *propagation) chains(op trace.OpID, of goal, gives []goal) []Chain {
	type way struct {
		op   trace.OpID
		of   goal
		give []goal
		link Link // the link from the previous operator to op
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
