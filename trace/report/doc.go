// Package report shows the numbers of a recorded run: tables with their columns, titles and notes, the lines
// of details, and verdicts. The screens, the commands and the exports all use it, so they show the same.
//
//	x := analyze.NewIndex(t)
//	dispatches, err := report.Dispatches(ctx, x, analyze.Options{Scope: x.Step(len(t.Steps) - 1)})
//	...
//	filter, err := dispatches.ParseFilter("us:>10 !norm")
//	...
//	rows, err := dispatches.Select(ctx, table.Selection{Filter: filter, Sort: "lost_us", Reverse: true})
//	...
//	err = dispatches.Print(ctx, os.Stdout, "text", rows, 140)
//
// Tables register themselves: a new one is a file with an init function. Packages below this one hold the
// larger tables, and package all imports them. The numbers come from package analyze.
package report
