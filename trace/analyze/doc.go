// Package analyze computes the numbers of a recorded run: which dispatches ran in a step, how long each took
// and what bounds it, what changed and why, what each row costs, and how much of the launched work was not
// needed. It formats no tables; package report does this with the results.
//
// An Index adds to a trace the state that each step inherits from earlier steps. A Selection is a set of
// steps. Launches, rows, costs and comparisons are computed from an Index and a Selection:
//
//	x := analyze.NewIndex(t)
//	rows, err := x.DispatchTree(ctx, analyze.Options{Selection: x.Step(len(t.Steps) - 1)})
//
// Larger analyses have their own packages below this one. No function panics on a trace that passed
// trace.Check. Every number is measured, exact or modelled. A number that was not measured is absent.
package analyze
