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
		Doc: "GPU time of each block of the model, for steps at timing level block",
		Of: func(_ context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return Blocks(x, o.Selection), nil
		},
	})
}

// blockRow is a block with its times in all selected steps that timed it.
type blockRow struct {
	trace.Block // from the first of these steps
	key         string
	times       []int64
	Time        analyze.Stats
}

// Blocks returns the table of the blocks of the selected steps, in order of submission. Two blocks of
// different steps correspond if they have the same name and the same number of earlier blocks with that
// name.
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
	of := table.By(rows)
	t := table.New("blocks", []table.Column{
		{
			Name: "block", Title: "block", Width: 80,
			Doc: "block: part of a layer, or an operator outside the layers",
			Of:  of(func(r *blockRow) table.Cell { return table.Text(r.Name) }),
		},
		{
			Name: "dispatches", Title: "disp", Unit: "dispatches", Is: table.Exact, Right: true, Width: 80,
			Doc: "number of dispatches in the block",
			Of:  of(func(r *blockRow) table.Cell { return table.Count(r.Dispatches) }),
		},
		{
			Name: "us", Title: "µs", Unit: "us", Is: table.Measured, Right: true, Width: 80,
			Doc: "GPU time between the two timestamps of the block; for several steps, the median",
			Of:  of(func(r *blockRow) table.Cell { return microseconds(r.Time, quantum) }),
		},
		{
			Name: "n", Title: "n", Unit: "steps", Is: table.Exact, Right: true, Width: 80,
			Doc: "number of steps in which the block was timed",
			Of:  of(func(r *blockRow) table.Cell { return table.Count(r.Time.N) }),
		},
		{
			Name: "spread", Title: "min–max", Right: true, Width: 140, Doc: "times of the fastest and the slowest step",
			Of: of(func(r *blockRow) table.Cell {
				if r.Time.N < 2 {
					return table.Cell{}
				}
				return table.Text(microsRange(r.Time, decimals))
			}),
		},
		{
			Name: "share", Title: "%", Unit: "%", Is: table.Measured, Right: true, Width: 80,
			Doc: "share of the time of all blocks",
			Of: of(func(r *blockRow) table.Cell {
				if total == 0 || !r.Time.Measured() {
					return table.Missing()
				}
				return table.Number(100*r.Time.Median/total, 1)
			}),
		},
	}, table.Flat(len(rows), func(row int) string { return rows[row].key }))
	parts := []table.Segment{{Text: fmt.Sprintf("%d of %s timed by blocks", timed,
		table.Plural(len(selection.Steps), "step"))}}
	if selection.Chosen() {
		parts = append([]table.Segment{SelectionPart(selection)}, parts...)
	}
	t.Title = []table.Line{table.Title(parts...)}
	if timed == 0 {
		t.Notes = []string{"blocks are timed only in steps at timing level block"}
	}
	return t
}

// OfBlocks is the title segment of a step that was timed by blocks.
var OfBlocks = table.Segment{Rank: 1, Text: "timing level block: only whole blocks are timed", Short: "timing block"}
