package report

import (
	"context"
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

func init() {
	Register(Table{
		Name: "blocks", Takes: AnySteps,
		Doc: "GPU time of each block of the model, for steps at timing level \"block\"",
		Of: func(_ context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return Blocks(x, o.Selection), nil
		},
	})
}

// blockRow is a block with its times in all selected steps in which it was timed.
type blockRow struct {
	trace.Block // from the first of these steps
	key         string
	times       []int64
	Time        analyze.Stats
}

// Blocks returns the table of the blocks of the selected steps, in order of submission. Blocks of different
// steps share a row if they have the same name. If a step has several blocks with that name, the first ones
// share a row, the second ones share a row, and so on.
func Blocks(x *analyze.Index, selection analyze.Selection) *table.Table {
	var rows []blockRow
	at := map[string]int{}
	total, timed := 0.0, 0
	for _, step := range selection.Steps {
		s := &x.Trace.Steps[step]
		if len(s.Blocks) > 0 {
			timed++
		}
		seen := map[string]int{}
		for _, b := range s.Blocks {
			key := b.Name
			if seen[b.Name]++; seen[b.Name] > 1 {
				key = fmt.Sprintf("%s/%d", b.Name, seen[b.Name])
			}
			i, there := at[key]
			if !there {
				i = len(rows)
				at[key], rows = i, append(rows, blockRow{Block: b, key: key})
			}
			if ns, ok := b.GPUNS.NS(); ok {
				rows[i].times = append(rows[i].times, ns)
			}
		}
	}
	for i := range rows {
		rows[i].Time = analyze.StatsOf(rows[i].times)
		total += rows[i].Time.Median
	}
	quantum := x.Trace.Clock.QuantumNS
	decimals := table.DecimalsOfUS(quantum)
	of := table.ColumnsOf(rows)
	t := table.New("blocks", []table.Column{
		of.Text(80, "block", "block", "name of the block: a part of a layer, or an operator outside the layers",
			func(r *blockRow) string { return r.Name }),
		of.Int(80, "dispatches", "disp", "dispatches", "number of dispatches in the block",
			func(r *blockRow) int64 { return int64(r.Dispatches) }),
		of.Cell(80, table.Measured, "us", "µs", "us",
			"GPU time from the first to the second timestamp of the block; over several steps, the median",
			func(r *blockRow) table.Cell { return microseconds(r.Time, quantum) }),
		of.Int(80, "n", "n", "steps", "number of steps in which the block was timed",
			func(r *blockRow) int64 { return int64(r.Time.N) }),
		of.Words(140, "spread", "min–max", "shortest and longest time of the block in a step",
			func(r *blockRow) table.Cell {
				if r.Time.N < 2 {
					return table.Cell{}
				}
				return table.Text(microsRange(r.Time, decimals))
			}).AlignRight(),
		of.Cell(80, table.Measured, "share", "%", "%", "share of the time of all blocks",
			func(r *blockRow) table.Cell {
				if total == 0 || !r.Time.Measured() {
					return table.Missing()
				}
				return table.Number(100*r.Time.Median/total, 1)
			}),
	}, table.Flat(len(rows), func(row int) string { return rows[row].key }))
	parts := []table.Segment{{Text: fmt.Sprintf("%d of %s timed at level block", timed,
		table.Plural(len(selection.Steps), "step"))}}
	if selection.Chosen() {
		parts = append([]table.Segment{SelectionPart(selection)}, parts...)
	}
	t.Title = []table.Line{table.Title(parts...)}
	if timed == 0 {
		t.Notes = []string{"blocks are timed only in steps at timing level \"block\""}
	}
	return t
}

// OfBlocks is the title segment which says that only whole blocks of the step were timed.
var OfBlocks = table.Segment{Rank: 1, Text: "timing level block: only whole blocks are timed", Short: "timing block"}
