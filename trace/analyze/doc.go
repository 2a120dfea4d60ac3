// Package analyze computes the numbers of a recorded run: which dispatches ran in a step, how long each took
// and what bounds it, what changed and why, what a row costs and how much of its work was wasted. It knows no
// tables and no sentences; package report shows what is computed here.
//
// Index adds to a trace what a step inherits from earlier steps. A Selection selects steps, and from both
// come launches, rows, costs and comparisons:
//
//	x := analyze.NewIndex(t)
//	rows, err := x.DispatchTree(ctx, analyze.Options{Scope: x.Step(len(t.Steps) - 1)})
//
// Larger questions have packages of their own below this one. Nothing here panics on a trace that passed its
// Check. A number is measured, exact or modelled; one that was not measured is absent.
package analyze
