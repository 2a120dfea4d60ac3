// Package inspect computes what a trace says: what ran in a step and where its time went, what changed and
// why, what was wasted, what bounds it.
//
// Index adds to a trace what a step inherits from the steps before it. From it come tables (package table) of
// dispatches, steps and resize passes, the detail of a dispatch, and why its grid is what it is.
//
//	x := inspect.NewIndex(t)
//	dispatches, err := x.Dispatches(ctx, inspect.Options{Scope: x.Step(len(t.Steps) - 1)})
//	...
//	filter, err := dispatches.ParseFilter("us:>10 !norm")
//	...
//	rows, err := dispatches.Select(ctx, table.Selection{Filter: filter, Sort: "lost_us", Reverse: true})
//	...
//	err = dispatches.Print(ctx, os.Stdout, "text", rows, 140)
//
// Tables are registered: Tables lists them, and who adds one adds a file.
//
// Nothing here panics on a trace that passed its Check. A number is measured, exact or modelled (then it has
// a ~); what was not measured is absent.
package inspect
