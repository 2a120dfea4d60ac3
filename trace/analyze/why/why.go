package why

import (
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Why explains a dispatch's plan: how its grid is computed, and which steps last set its grid and its
// params, each traced back to the graph's inputs. Of a dispatch that does not run in a step it is where that
// comes from.
type Why struct {
	Index  *analyze.Index
	Name   string
	Step   *trace.Step
	Plan   *trace.Plan // nil where it does not run in the step
	Grid   *Origin     // nil: as the graph was built, or set in a step that is not in the trace
	Params *Origin     // the same; where the params changed with the grid it is Grid
	Ends   *Origin     // the next change after which it does not run, nil if there is none
	At     int         // index into Trace.Steps
	ID     trace.DispatchID
	// Changes are the steps, indices into Trace.Steps, in which the grid or the route changed, or in which it
	// began to run, or ran no more.
	Changes []int
}

// Origin is the change that set something.
type Origin struct {
	At       int // index into Trace.Steps
	Step     *trace.Step
	From, To *trace.Plan // nil where the dispatch did not run before, or runs no more
	// Instead are the plans of the dispatches that have the work since, of one that runs no more.
	Instead []*trace.Plan
	Causes  []Cause
	// Others are inputs that changed in the step and are not to blame.
	Others []Other
}

// Cause is why counts of a grid's arithmetic are others: the shortest way back to an input that is to blame.
type Cause struct {
	Terms []string // of the grid; none where the change is not one of them
	Chain
}

// Other is an input of the graph that changed in a step, and the operators that it woke.
type Other struct {
	Input    trace.ValueID
	From, To []int
	Ops      []trace.OpID
	Params   bool // it changed nothing of theirs but params
	Unsure   bool // the dispatch's own operator is among them, and the arithmetic of its grid is not known
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

// Of explains the plan that a dispatch had in a step, or why it had none.
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

// GridChanges are the steps, indices into Trace.Steps, in which a dispatch got another grid or another route,
// ran again, or ran no more.
func GridChanges(x *analyze.Index, id trace.DispatchID) []int {
	var steps []int
	for _, i := range x.Replanned.Of(int(id)) {
		if c, changed := analyze.NetPlan(x.Trace, &x.Trace.Steps[i], id); changed && c.Diff.Regrids() {
			steps = append(steps, i)
		}
	}
	return steps
}

// origin is the last change of a dispatch's plan up to a step that is of a kind, and after which it runs, or
// does not.
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

// instead are the plans by which others have the work of a dispatch that runs no more from a step on: of its
// own operator those that are new there or came by another route. Else those of them that take what it gave,
// or what operators that have nothing to do then made of it, and read what it read, or something else that
// comes from where that came from.
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

// takers are the operators that take what an operator gives, or what others that do not run make of it.
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

// readsFor reports whether a plan's dispatch reads what another one read: something of each operator that
// runs and gave it something, and itself what no operator gives, constants apart.
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

// blame finds what an origin comes from.
func blame(x *analyze.Index, o *Origin, id trace.DispatchID, c analyze.PlannedChange) {
	p := propagate(x, o.At)
	gives := p.moved(x.Trace.Graph.Dispatches[id].Writes)
	if gives == nil { // it writes what its operator alone reads
		gives = p.moved(x.Trace.Graph.Ops[c.Op].Outputs)
	}
	terms, goals := changedTerms(o.From, o.To)
	if !c.Diff.Regrids() {
		terms, goals = nil, nil
	}
	unsure := len(goals) == 0 // the grid does not say which of its counts changed
	if unsure {
		terms, goals = []string{""}, []goal{{}}
	}
	for i := range goals {
		for _, chain := range p.chains(c.Op, goals[i], gives) {
			o.add(terms[i], chain)
		}
	}
	slices.SortStableFunc(o.Causes, func(a, b Cause) int { // of several, a shape explains more than a SymInt
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

// add adds a cause, of several counts of a grid once.
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

// maxChains is how many inputs a change is followed back to: more than any model's graph has.
const maxChains = 64

// inputOrder puts shapes before SymInts.
func inputOrder(x *analyze.Index, v trace.ValueID) int {
	if x.Trace.Graph.Values[v].Kind == "symint" {
		return 1
	}
	return 0
}

// inputChange is what a value that no operator gave was before a step, and is in it.
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
		from = x.Trace.Graph.Values[v].MaxDims // the graph is built at its largest shape
	}
	return from, at(step)
}
