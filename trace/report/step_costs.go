package report

import (
	"cmp"
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// OtherWork describes how a launch differs from the launch whose cost was measured.
func OtherWork(c *analyze.StepCosts, l *analyze.Launch) string {
	name, step, was := c.X.Name(l.ID), fmt.Sprintf("s%d", c.Step.Index), c.Ran[l.ID]
	ways := func(p *trace.Plan) string { return cmp.Or(p.Route, p.Kernel) }
	switch {
	case was == nil:
		return fmt.Sprintf("%s did not run in %s, where costs were measured", name, step)
	case ways(was) != ways(l.Plan):
		return fmt.Sprintf("%s uses route %s, but its cost in %s was measured on route %s", name,
			ways(l.Plan), step, ways(was))
	case was.Kernel != l.Plan.Kernel:
		return fmt.Sprintf("%s runs kernel %s, but its cost in %s was measured with kernel %s", name,
			l.Plan.Kernel, step, was.Kernel)
	}
	return fmt.Sprintf("%s processes %s, but its cost in %s was measured with %s", name,
		table.Plural(l.Tokens, "token"), step, table.Plural(len(c.Step.Tokens), "token"))
}

// otherWorkNotes lists the rows that have no cost because the costs were measured on different work. It
// also says how to measure costs for them.
func (t *DispatchTable) otherWorkNotes(about func(row int) bool) []string {
	var said []string
	for i := range t.Grouped {
		if r := &t.Grouped[i]; r.Other != nil && t.Single(i) && about(i) {
			said = append(said, OtherWork(t.Costs, r.Other))
		}
	}
	const some = 3
	if n := len(said) - some; n > 0 {
		said = append(said[:some], fmt.Sprintf("%d more", n))
	}
	if said == nil {
		return nil
	}
	return []string{"no cost: " + strings.Join(said, "; ") + ". Measure costs again at a step like the selected ones."}
}
