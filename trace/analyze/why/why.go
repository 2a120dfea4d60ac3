package why

import (
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Why explains a dispatch's plan: how its grid is computed, and which steps last set its grid and its
// params. Each of these changes is traced back to the inputs of the graph. For a dispatch that does not run
// in a step, Why explains why it does not run.
type Why struct {
	Index *analyze.Index
	Name  string
	Step  *trace.Step
	Plan  *trace.Plan // nil if the dispatch does not run in the step
	// Grid is the change that set the grid. Grid is nil if the grid is that of the built graph, or if it
	// was set in a step that is not in the trace.
	Grid *Origin
	// Params is the change that set the params. If the params changed together with the grid, Params equals
	// Grid. Params may be nil for the same reasons as Grid.
	Params *Origin
	Ends   *Origin // the next change that stops the dispatch; nil if there is none
	At     int     // index into Trace.Steps
	ID     trace.DispatchID
	// Changes are the steps, as indices into Trace.Steps, in which the grid or the route changed, or in
	// which the dispatch started or stopped running.
	Changes []int
}

// Origin is a change that set the grid or the params of a dispatch.
type Origin struct {
	At   int // index into Trace.Steps
	Step *trace.Step
	// From is nil if the dispatch did not run before, and To is nil if it stopped running.
	From, To *trace.Plan
	// Instead holds the plans of the dispatches that took over the work of a dispatch that stopped running.
	Instead []*trace.Plan
	Causes  []Cause
	// Others are inputs that changed in the step without causing this change.
	Others []Other
}

// Cause explains why counts in the arithmetic of a grid changed: it is the shortest chain back to an input
// that caused the change.
type Cause struct {
	Terms []string // changed terms of the grid; nil if the change is not in a term
	Chain
}

// Other is an input of the graph that changed in a step, and the operators that were re-planned because of
// it.
type Other struct {
	Input    trace.ValueID
	From, To []int
	Ops      []trace.OpID
	Params   bool // the input changed only params of these operators
	// Unsure reports that the dispatch's own operator is in Ops and the arithmetic of its grid is not
	// known.
	Unsure bool
}

// Chain leads from an operator back to an input of the graph.
type Chain struct {
	Links []Link
	Input trace.ValueID
	From  []int // previous dims of the input; nil if not known
	To    []int
}

// Link is an operator that was planned, and the change of the value that triggered it.
type Link struct {
	Op       *trace.Op
	Value    trace.ValueID
	From, To []int // dims of the value before and after
}

// Of explains the plan that a dispatch had in a step, or why it did not run.
func Of(x *analyze.Index, step int, id trace.DispatchID) *Why {
	w := &Why{
		Index: x, Name: x.Name(id), Step: &x.Trace.Steps[step], Plan: x.PlanOf(step, id), At: step, ID: id,
	}
	w.Changes = GridChanges(x, id)
	w.Grid = origin(x, step, id, w.Plan != nil, analyze.PlanDiff.Regrids)
	w.Params = origin(x, step, id, w.Plan != nil, analyze.PlanDiff.Any)
	for _, i := range w.Changes {
		if c, _ := analyze.NetPlan(x.Trace, &x.Trace.Steps[i], id); i > step && c.Diff.Gone {
			w.Ends = originAt(x, i, id, c)
			break
		}
	}
	return w
}

// GridChanges returns the steps, as indices into Trace.Steps, in which a dispatch changed its grid or
// route, or started or stopped running.
func GridChanges(x *analyze.Index, id trace.DispatchID) []int {
	var steps []int
	for _, i := range x.Replanned.Of(int(id)) {
		if c, changed := analyze.NetPlan(x.Trace, &x.Trace.Steps[i], id); changed && c.Diff.Regrids() {
			steps = append(steps, i)
		}
	}
	return steps
}

// origin finds the last change of a dispatch's plan, at a step or before it, for which kind returns true. If
// the argument runs is true, origin considers only changes after which the dispatch runs, else only changes
// after which the dispatch does not run.
func origin(x *analyze.Index, step int, id trace.DispatchID, runs bool,
	kind func(analyze.PlanDiff) bool,
) *Origin {
	steps := x.Replanned.Of(int(id))
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i] > step {
			continue
		}
		c, changed := analyze.NetPlan(x.Trace, &x.Trace.Steps[steps[i]], id)
		if changed && runs == (c.To != nil) && kind(c.Diff) {
			return originAt(x, steps[i], id, c)
		}
	}
	return nil
}

func originAt(x *analyze.Index, step int, id trace.DispatchID, c analyze.PlannedChange) *Origin {
	t := x.Trace
	o := &Origin{At: step, Step: &t.Steps[step], From: analyze.PlanOf(t, c.From), To: analyze.PlanOf(t, c.To)}
	if o.To == nil {
		o.Instead = instead(x, step, id)
	}
	blame(x, o, id, c)
	return o
}

// instead returns the plans of the dispatches that took over the work of a dispatch that stopped running in a
// step. These are other dispatches of the same operator that are new or changed their route in the step. If
// there are none, they are new or rerouted dispatches of operators that consume the output of the stopped
// dispatch, directly or through operators that do not run. The returned dispatches must also read the inputs
// of the stopped dispatch, or other outputs of the operators that produced these inputs.
func instead(x *analyze.Index, step int, id trace.DispatchID) []*trace.Plan {
	t := x.Trace
	gone := &t.Graph.Dispatches[id]
	runs := map[trace.OpID]bool{}
	for _, d := range t.Steps[step].Dispatches {
		runs[t.Graph.Dispatches[t.Plans[d.Plan].Dispatch].Op] = true
	}
	takes := takers(x, gone.Op, runs)
	var own, taking []*trace.Plan
	for _, n := range analyze.NetPlans(t, &t.Steps[step]) {
		if !n.Diff.New && !n.Diff.Route {
			continue
		}
		p := analyze.PlanOf(t, n.To)
		switch op := t.Graph.Dispatches[p.Dispatch].Op; {
		case op == gone.Op:
			own = append(own, p)
		case takes[op] && readsFor(x, p, gone, runs):
			taking = append(taking, p)
		}
	}
	if own != nil {
		return own
	}
	return taking
}

// takers returns the operators that consume the outputs of an operator, directly or through operators that
// do not run.
func takers(x *analyze.Index, op trace.OpID, runs map[trace.OpID]bool) map[trace.OpID]bool {
	found, idle := map[trace.OpID]bool{}, []trace.OpID{op}
	for i := 0; i < len(idle); i++ {
		for _, v := range x.Trace.Graph.Ops[idle[i]].Outputs {
			for _, taker := range x.Consumers(v) {
				if !found[taker] && !runs[taker] {
					idle = append(idle, taker)
				}
				found[taker] = true
			}
		}
	}
	return found
}

// readsFor reports whether a plan's dispatch reads the inputs that another dispatch read. For an input that a
// running operator produced, any output of this operator will do. Any other input, except a constant, must be
// read directly.
func readsFor(x *analyze.Index, p *trace.Plan, gone *trace.Dispatch, runs map[trace.OpID]bool) bool {
	reads, _ := x.Touches(p)
	for _, v := range gone.Reads {
		v = x.Root(v)
		givers := x.Producers(v)
		same := func(r trace.ValueID) bool {
			r = x.Root(r)
			return r == v || slices.ContainsFunc(x.Producers(r), func(op trace.OpID) bool {
				return slices.Contains(givers, op)
			})
		}
		there := len(givers) == 0 && x.Trace.Graph.Values[v].Role != trace.RoleConstant ||
			slices.ContainsFunc(givers, func(op trace.OpID) bool { return runs[op] })
		if there && !slices.ContainsFunc(reads, same) {
			return false
		}
	}
	return true
}

// blame finds the inputs that caused the change of an origin, and the inputs that changed without causing
// it.
func blame(x *analyze.Index, o *Origin, id trace.DispatchID, c analyze.PlannedChange) {
	p := propagate(x, o.At)
	gives := p.moved(x.Trace.Graph.Dispatches[id].Writes)
	if gives == nil { // the written values are internal to the operator
		gives = p.moved(x.Trace.Graph.Ops[c.Op].Outputs)
	}
	terms, goals := changedTerms(o.From, o.To)
	if !c.Diff.Regrids() {
		terms, goals = nil, nil
	}
	unsure := len(goals) == 0 // the plans do not record which count of the grid changed
	if unsure {
		terms, goals = []string{""}, []goal{{}}
	}
	for i := range goals {
		for _, chain := range p.chains(c.Op, goals[i], gives) {
			o.add(terms[i], chain)
		}
	}
	// Sort shapes first: a shape explains more than a SymInt.
	slices.SortStableFunc(o.Causes, func(a, b Cause) int {
		return inputOrder(x, a.Input) - inputOrder(x, b.Input)
	})
	blamed := map[trace.ValueID]bool{}
	for i := range o.Causes {
		blamed[o.Causes[i].Input] = true
	}
	var diffs map[trace.OpID]analyze.PlanDiff
	for _, v := range p.inputs {
		g := p.change(v)
		if blamed[v] || g.from == nil || !g.moved() {
			continue
		}
		if diffs == nil {
			diffs = map[trace.OpID]analyze.PlanDiff{}
			for _, n := range analyze.NetPlans(x.Trace, o.Step) {
				diffs[n.Op] = diffs[n.Op].Or(n.Diff)
			}
		}
		other := Other{Input: v, From: g.from, To: g.to, Ops: p.wakes[v], Params: true}
		other.Unsure = unsure && slices.Contains(other.Ops, c.Op)
		for _, op := range other.Ops {
			other.Params = other.Params && !diffs[op].Regrids()
		}
		o.Others = append(o.Others, other)
	}
}

// add adds a cause to the origin. If the chain c already explains another count of the grid, add only adds
// the term to that cause.
func (o *Origin) add(term string, c Chain) {
	for i := range o.Causes {
		if slices.EqualFunc(o.Causes[i].Links, c.Links, func(a, b Link) bool {
			return a.Op == b.Op && a.Value == b.Value
		}) {
			o.Causes[i].Terms = append(o.Causes[i].Terms, term)
			return
		}
	}
	cause := Cause{Chain: c}
	if term != "" {
		cause.Terms = []string{term}
	}
	o.Causes = append(o.Causes, cause)
}

// maxChains limits the number of inputs to which a change is traced. No model's graph has more inputs.
const maxChains = 64

// inputOrder sorts shapes before SymInts.
func inputOrder(x *analyze.Index, v trace.ValueID) int {
	if x.Trace.Graph.Values[v].Kind == "symint" {
		return 1
	}
	return 0
}

// inputChange returns the dims or the count of an input of the graph before a step and in the step.
func inputChange(x *analyze.Index, step int, v trace.ValueID) (from, to []int) {
	at := func(step int) []int {
		if x.Trace.Graph.Values[v].Kind == "symint" {
			if n, ok := x.SymInt(step, v); ok {
				return []int{int(n)}
			}
			return nil
		}
		return x.Dims(step, v)
	}
	switch {
	case step > 0:
		from = at(step - 1)
	case x.Trace.DroppedSteps == 0 && x.Trace.Graph.Values[v].Kind != "symint":
		from = x.Trace.Graph.Values[v].MaxDims // the graph is built at its maximum shape
	}
	return from, at(step)
}
