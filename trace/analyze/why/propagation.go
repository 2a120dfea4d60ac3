package why

import (
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// propagation is the net result of the shape propagation of a step. A step may need several passes, which may
// plan the same operator or change the same value more than once. A propagation lists each operator and each
// value only once, and compares the state before the step with the final state.
type propagation struct {
	x       *analyze.Index
	step    int
	woken   map[trace.OpID][]trace.ValueID // values that triggered each operator, without duplicates
	wakes   map[trace.ValueID][]trace.OpID // operators that each value triggered: woken in reverse
	inputs  []trace.ValueID                // triggering values that no planned operator produced
	changes map[trace.ValueID]produced     // changes of the values that planned operators produced
}

// produced is a change of a value and the operator that produced the value.
type produced struct {
	op   trace.OpID
	goal goal
}

// goal is a change for which a cause is wanted. It is a change of dims or of a count. A count is stored as a
// list with one element.
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

// change returns how a value that triggered an operator changed in the step.
func (p *propagation) change(v trace.ValueID) goal {
	if c, given := p.changes[v]; given {
		return c.goal
	}
	from, to := inputChange(p.x, p.step, v)
	return goal{from, to}
}

// moved returns the changes of values that planned operators produced. It leaves out values that are the same
// as before.
func (p *propagation) moved(values []trace.ValueID) []goal {
	var list []goal
	for _, v := range values {
		if c, given := p.changes[v]; given && c.goal.moved() {
			list = append(list, c.goal)
		}
	}
	return list
}

// explains rates how well the change g explains another change. The rating is 3 if both changes have the same
// numbers of elements, before and after. It is 2 if a dim has the same sizes in both changes, before and
// after. It is 1 if both numbers of elements change by the same factor. In all other cases it is 0.
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

// best returns the values that triggered an operator and whose changes explain the given change best. If
// several of them explain it equally well, best prefers those that also explain the changes of the operator's
// outputs, which `gives` holds.
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

// chains follows the changes of a step from an operator back to the inputs of the graph. For each input that
// caused the change, it returns the shortest chain to this input. The search is breadth first.
func (p *propagation) chains(op trace.OpID, of goal, gives []goal) []Chain {
	type way struct {
		op   trace.OpID
		of   goal
		give []goal
		link Link // link from the previous operator on the way to op
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
