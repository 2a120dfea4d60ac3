// Package report presents the numbers of a recorded run: tables with columns, titles and notes, detail
// lines, and verdicts. The screens, the commands and the exports all use this package and therefore show
// the same.
//
//	x := analyze.NewIndex(t)
//	dispatches, err := report.Dispatches(ctx, x, analyze.Options{Selection: x.Step(len(t.Steps) - 1)})
//	...
//	filter, err := dispatches.ParseFilter(ctx, "us:>10 !norm")
//	...
//	rows, err := dispatches.Select(ctx, table.Selection{Filter: filter, Sort: "lost_us", Reverse: true})
//	...
//	err = dispatches.Print(ctx, os.Stdout, "text", rows, 140)
//
// Tables register themselves. A new table is a file with an init function. The packages in subfolders
// contain the larger tables, and package all imports these packages. Package analyze computes the numbers.
package report
