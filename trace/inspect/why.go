package inspect

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Why is where the plan of a dispatch comes from: the step that set its grid, and the step that set its
// params, each with the way back to the inputs of the graph.
type Why struct {
	Index  *Index
	Name   string
	Step   *trace.Step
	Plan   *trace.Plan
	Grid   *Origin // nil: as the graph was built, or set in a step that is not in the trace
	Params *Origin // the same; where the params changed with the grid it is Grid
}

// Origin is the change that set something.
type Origin struct {
	Step     *trace.Step
	From, To *trace.Plan
	Chains   []Chain // shortest ways, one for each input that caused the change
}

// Chain leads from an operator back to an input of the graph.
type Chain struct {
	Links []Link
	Input trace.ValueID
	From  []int // of the input before; nil where that is not known
	To    []int
}

// Link is an operator that was planned, and the change of a value that woke it.
type Link struct {
	Op       *trace.Op
	Value    trace.ValueID
	From, To []int // of the value
}

// Why explains the plan that a dispatch had in a step. It is nil where the dispatch did not run.
func (x *Index) Why(step int, id trace.DispatchID) *Why {
	plan := x.PlanOf(step, id)
	if plan == nil {
		return nil
	}
	w := &Why{Index: x, Name: x.Name(id), Step: &x.Trace.Steps[step], Plan: plan}
	w.Grid = x.origin(step, id, func(d PlanDiff) bool { return d.Grid || d.Route || d.New })
	w.Params = x.origin(step, id, PlanDiff.Any)
	return w
}

// origin is the last change of a dispatch's plan up to a step that is of a kind.
func (x *Index) origin(step int, id trace.DispatchID, kind func(PlanDiff) bool) *Origin {
	t := x.Trace
	steps := x.replanned.of(int(id))
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i] > step {
			continue
		}
		var found *Origin
		eachPlanChange(&t.Steps[steps[i]], func(h *trace.Hook, c trace.PlanChange) {
			if changed(t, c) != id || c.To == nil || !kind(DiffPlans(planOf(t, c.From), planOf(t, c.To))) {
				return
			}
			found = &Origin{
				Step: &t.Steps[steps[i]], From: planOf(t, c.From), To: planOf(t, c.To),
				Chains: x.chains(steps[i], h.Op),
			}
		})
		if found != nil {
			return found
		}
	}
	return nil
}

// maxChains is how many inputs a change is followed back to: more than any model's graph has.
const maxChains = 64

// chains walks from an operator back over the changes of a step, breadth first: to each input that changed by
// the shortest way.
func (x *Index) chains(step int, from trace.OpID) []Chain {
	type change struct {
		op       trace.OpID
		from, to []int
	}
	changes := map[trace.ValueID]change{}     // the last of each value
	woken := map[trace.OpID][]trace.ValueID{} // triggers of each operator
	type trigger struct {
		op trace.OpID
		v  trace.ValueID
	}
	known := map[trigger]bool{}
	s := &x.Trace.Steps[step]
	for i := range s.Resize.Passes {
		for j := range s.Resize.Passes[i].Hooks {
			h := &s.Resize.Passes[i].Hooks[j]
			for _, v := range h.Triggers {
				if w := (trigger{h.Op, v}); !known[w] {
					known[w] = true
					woken[h.Op] = append(woken[h.Op], v)
				}
			}
			for _, c := range h.Changed {
				first, seen := changes[c.Value]
				if seen {
					c.From = first.from
				}
				changes[c.Value] = change{h.Op, c.From, c.To}
			}
		}
	}
	type way struct {
		op   trace.OpID
		link Link // by which the way before came here
		back *way
	}
	seen := map[trace.OpID]bool{from: true}
	reached := map[trace.ValueID]bool{}
	var chains []Chain
	for queue := []*way{{op: from}}; len(queue) > 0; queue = queue[1:] {
		w := queue[0]
		for _, v := range woken[w.op] {
			link := Link{Op: &x.Trace.Graph.Ops[w.op], Value: v}
			c, produced := changes[v]
			if produced && c.op != w.op {
				link.From, link.To = c.from, c.to
				if !seen[c.op] {
					seen[c.op] = true
					queue = append(queue, &way{c.op, link, w})
				}
				continue
			}
			link.From, link.To = x.inputChange(step, v)
			if reached[v] || len(chains) == maxChains {
				continue
			}
			reached[v] = true
			links := []Link{link}
			for ; w.back != nil; w = w.back {
				links = append(links, w.link)
			}
			w = queue[0]
			slices.Reverse(links)
			chains = append(chains, Chain{Links: links, Input: v, From: link.From, To: link.To})
		}
	}
	slices.SortStableFunc(chains,
		func(a, b Chain) int { return x.inputOrder(a.Input) - x.inputOrder(b.Input) })
	return chains
}

// inputOrder puts shapes before SymInts: where both woke an operator, a shape explains more.
func (x *Index) inputOrder(v trace.ValueID) int {
	if x.Trace.Graph.Values[v].Kind == "symint" {
		return 1
	}
	return 0
}

// inputChange is what a value that no operator gave was before a step, and is in it.
func (x *Index) inputChange(step int, v trace.ValueID) (from, to []int) {
	at := func(step int) []int {
		if x.Trace.Graph.Values[v].Kind == "symint" {
			if n, ok := x.SymInt(step, v); ok {
				return []int{int(n)}
			}
			return nil
		}
		return x.Dims(step, v)
	}
	if step > 0 {
		from = at(step - 1)
	}
	return from, at(step)
}

// Lines says it in words, the dispatch first and the inputs last.
func (w *Why) Lines() []string {
	x := w.Index
	lines := []string{fmt.Sprintf("%s in s%d: grid %s, kernel %s", w.Name, w.Step.Index,
		table.Grid(w.Plan.Workgroups), w.Plan.Kernel)}
	if w.Plan.Reason != "" {
		lines = append(lines, "route "+strings.TrimPrefix(w.Plan.Route+": "+w.Plan.Reason, ": "))
	}
	if w.Grid == nil {
		before := "the graph was built"
		if x.Trace.DroppedSteps > 0 {
			before = "before the first step that was kept"
		}
		lines = append(lines, "grid and kernel are in force since "+before)
	} else {
		lines = append(lines, x.originLines("grid and kernel", w.Grid)...)
	}
	if w.Params != nil && (w.Grid == nil || w.Params.To != w.Grid.To) {
		lines = append(lines, x.originLines("params", w.Params)...)
	}
	return lines
}

func (x *Index) originLines(what string, o *Origin) []string {
	change := "first run"
	if o.From != nil {
		change = x.planChange(trace.PlanChange{From: &o.From.ID, To: &o.To.ID})
	}
	lines := []string{fmt.Sprintf("%s: since s%d (%s, position %d): %s", what, o.Step.Index, o.Step.Phase,
		o.Step.Position, change)}
	for _, c := range o.Chains {
		for _, l := range foldLinks(c.Links) {
			lines = append(lines, "  "+x.linkText(l))
		}
		lines = append(lines,
			fmt.Sprintf("    %s is an input of the graph: %s", x.Trace.Graph.Values[c.Input].Name,
				changeText(c.From, c.To)))
	}
	return lines
}

func changeText(from, to []int) string {
	if from == nil {
		return table.Shape(to)
	}
	return valueChange(&trace.Change{From: from, To: to})
}

// foldedLink is a link, or the same way through several layers.
type foldedLink struct {
	Link
	layers []int // that the chain passes in the same way, besides the link's
}

// foldLinks leaves one of the layers that a chain passes in the same way.
func foldLinks(links []Link) []foldedLink {
	type span struct {
		layer    int // -1: outside of the layers
		from, to int
		shape    string
	}
	var spans []span
	for i := range links {
		o := links[i].Op
		layer := -1
		if o.Layer != nil {
			layer = *o.Layer
		}
		if n := len(spans); n == 0 || spans[n-1].layer != layer {
			spans = append(spans, span{layer: layer, from: i})
		}
		s := &spans[len(spans)-1]
		s.to = i + 1
		s.shape += o.Block + "." + o.ShortName() + "\n"
	}
	var out []foldedLink
	for i := 0; i < len(spans); {
		j := i + 1
		var layers []int
		for j < len(spans) && spans[i].layer >= 0 && spans[j].shape == spans[i].shape {
			layers = append(layers, spans[j].layer)
			j++
		}
		for k := spans[i].from; k < spans[i].to; k++ {
			out = append(out, foldedLink{Link: links[k]})
		}
		if len(layers) > 0 {
			slices.Sort(layers)
			out[len(out)-1].layers = layers
		}
		i = j
	}
	return out
}

func (x *Index) linkText(l foldedLink) string {
	s := fmt.Sprintf("%s was woken by %s: %s", l.Op.Name, x.Trace.Graph.Values[l.Value].Name,
		changeText(l.From, l.To))
	if len(l.layers) > 0 {
		s += fmt.Sprintf(" (and so through layers %s)", numbers(l.layers))
	}
	return s
}

// Reaches lists the operators that a change of a value can wake, in execution order.
func (x *Index) Reaches(v trace.ValueID) []trace.OpID {
	reached := make([]bool, len(x.Trace.Graph.Ops))
	values := []trace.ValueID{v}
	for len(values) > 0 {
		v, values = values[0], values[1:]
		for _, o := range x.graph.consumers[v] {
			if !reached[o] {
				reached[o] = true
				values = append(values, x.Trace.Graph.Ops[o].Outputs...)
			}
		}
	}
	var list []trace.OpID
	for o, on := range reached {
		if on {
			list = append(list, trace.OpID(o))
		}
	}
	return list
}
