package why

import (
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Why explains the plan of a dispatch in a step: the arithmetic of its grid, and the changes that last set
// its grid and its params. Each of these changes is traced back to inputs of the graph. If the dispatch does
// not run in the step, Why explains what stopped it.
type Why struct {
	Index *analyze.Index
	Name  string
	Step  *trace.Step
	Plan  *trace.Plan // nil if the dispatch does not run in the step
	// Grid is the change that set the grid. It is nil if the grid is unchanged since the graph was built, or
	// if the trace does not contain the step that set it.
	Grid *Origin
	// Params is the change that set the params. It is equal to Grid if the grid changed in the same step. It
	// can be nil for the same reasons as Grid.
	Params *Origin
	Ends   *Origin // next change after which the dispatch does not run; nil if there is none
	At     int     // index into Trace.Steps
	ID     trace.DispatchID
	// Changes holds the steps (as indices into Trace.Steps) in which the dispatch changed its grid or route,
	// or started or stopped running.
	Changes []int
}

// Origin is a change that set the grid or the params of a dispatch.
type Origin struct {
	At   int // index into Trace.Steps
	Step *trace.Step
	// From is the plan before the change, or nil if the dispatch did not run. To is the plan after the
	// change, or nil if the dispatch does not run any more.
	From, To *trace.Plan
	// Instead is set if the dispatch stopped running. It holds the plans of the dispatches that do its work
	// now.
	Instead []*trace.Plan
	Causes  []Cause
	// Others holds inputs of the graph that changed in the same step but are not a cause of this change.
	Others []Other
}

// Cause is an input of the graph that changed counts in the arithmetic of a grid. It comes with the shortest
// chain that leads back to the input.
type Cause struct {
	Terms []string // terms of the grid that changed; nil if no term did
	Chain
}

// Other is an input of the graph that changed in a step. Ops holds the operators that were re-planned because
// of this change.
type Other struct {
	Input    trace.ValueID
	From, To []int
	Ops      []trace.OpID
	Params   bool // these operators changed nothing but params
	// Unsure reports that this input may be a cause after all: the dispatch's operator is in Ops, and the
	// arithmetic of its grid is not known.
	Unsure bool
}

// Chain is a list of operators that leads from an operator back to an input of the graph.
type Chain struct {
	Links []Link
	Input trace.ValueID
	From  []int // dims of the input before the step; nil if not known
	To    []int
}

// Link is an operator that was planned because Value changed.
type Link struct {
	Op       *trace.Op
	Value    trace.ValueID
	From, To []int // dims of Value before and after the change
}

// Of explains the plan that a dispatch had in a step. If the dispatch did not run in the step, Of explains
// why.
func Of(x *analyze.Index, step int, id trace.DispatchID) *Why {
	w := &Why{
		Index: x, Name: x.Name(id), Step: &x.Trace.Steps[step], Plan: x.PlanOf(step, id), At: step, ID: id,
	}
	w.Changes = GridChanges(x, id)
	w.Grid = origin(x, step, id, w.Plan != nil, trace.PlanDiff.Regrids)
	w.Params = origin(x, step, id, w.Plan != nil, trace.PlanDiff.Any)
	for _, i := range w.Changes {
		if c, _ := analyze.NetPlan(x.Trace, &x.Trace.Steps[i], id); i > step && c.Diff.Gone {
			w.Ends = originAt(x, i, id, c)
			break
		}
	}
	return w
}

// GridChanges returns the steps (as indices into Trace.Steps) in which a dispatch changed its grid or route,
// or started or stopped running.
func GridChanges(x *analyze.Index, id trace.DispatchID) []int {
	var steps []int
	for _, i := range x.Replanned.Of(int(id)) {
		if c, changed := analyze.NetPlan(x.Trace, &x.Trace.Steps[i], id); changed && c.Diff.Regrids() {
			steps = append(steps, i)
		}
	}
	return steps
}

// origin returns the last change of the plan of a dispatch, up to and including a step. Only changes for
// which `kind` returns true are considered. If `runs` is true, the dispatch must run after the change, and if
// `runs` is false, it must not run after the change.
func origin(x *analyze.Index, step int, id trace.DispatchID, runs bool,
	kind func(trace.PlanDiff) bool,
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
// step. They are other dispatches of the same operator that started running in this step or changed their
// route. If there are none, `instead` looks for dispatches of the operators that takers returns. These
// dispatches, too, must have started running or changed their route, and they must read what the stopped
// dispatch read (see readsFor).
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

// takers returns the operators that read the outputs of an operator. If such an operator does not run, takers
// continues with the operators that read its outputs.
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

// readsFor reports whether the dispatch of a plan reads what the dispatch `gone` read. If a running operator
// produced an input of `gone`, the plan may read any output of this operator instead. If no operator produces
// the input, the plan must read this input itself, unless it is a constant. Inputs from operators that do not
// run are not required.
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

// blame sets the causes of the change in o: the inputs of the graph that caused it. It also sets Others: the
// inputs that changed without causing it.
func blame(x *analyze.Index, o *Origin, id trace.DispatchID, c analyze.PlannedChange) {
	p := propagate(x, o.At)
	gives := p.moved(x.Trace.Graph.Dispatches[id].Writes)
	if gives == nil { // the dispatch writes only values inside the operator
		gives = p.moved(x.Trace.Graph.Ops[c.Op].Outputs)
	}
	terms, goals := changedTerms(o.From, o.To)
	if !c.Diff.Regrids() {
		terms, goals = nil, nil
	}
	unsure := len(goals) == 0 // the plans do not record the counts of the grid
	if unsure {
		terms, goals = []string{""}, []goal{{}}
	}
	for i := range goals {
		for _, chain := range p.chains(c.Op, goals[i], gives) {
			o.add(terms[i], chain)
		}
	}
	// Causes that are shapes come first, because a shape explains more than a SymInt.
	slices.SortStableFunc(o.Causes, func(a, b Cause) int {
		return inputOrder(x, a.Input) - inputOrder(x, b.Input)
	})
	blamed := map[trace.ValueID]bool{}
	for i := range o.Causes {
		blamed[o.Causes[i].Input] = true
	}
	var diffs map[trace.OpID]trace.PlanDiff
	for _, v := range p.inputs {
		g := p.change(v)
		if blamed[v] || g.from == nil || !g.moved() {
			continue
		}
		if diffs == nil {
			diffs = map[trace.OpID]trace.PlanDiff{}
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

// add adds a chain as a cause of the change of a term. If the chain is already a cause of the change of
// another term, only the term is added.
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

// maxChains is the maximum number of inputs to which a change is traced. Every model's graph has fewer
// inputs.
const maxChains = 64

// inputOrder is the order of inputs: shapes come before SymInts.
func inputOrder(x *analyze.Index, v trace.ValueID) int {
	if x.Trace.Graph.Values[v].Kind == "symint" {
		return 1
	}
	return 0
}

// inputChange returns the dims of an input of the graph (or its number, if it is a SymInt) before a step and
// in the step.
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
		from = x.Trace.Graph.Values[v].MaxDims // before the first step, values have their maximum shape
	}
	return from, at(step)
}
