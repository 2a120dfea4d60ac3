package report

import (
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// noneCell is a figure made of a cost that is not different from 0.
func noneCell() table.Cell {
	return table.Cell{Text: analyze.MarkNone, Mark: analyze.MarkNone, Has: true}
}

// shareCell is a cost's part of the step, = of one that is not different from 0. Below 0 it is no part, and
// nothing is known of one that is not told.
func shareCell(c *analyze.RowCost) table.Cell {
	switch {
	case c.IsZero():
		return noneCell()
	case !c.Significant():
		return table.Missing()
	case c.Share < 0:
		return table.Cell{}
	}
	return table.Number(100*c.Share, 1)
}

func shortCell(ns float64) table.Cell {
	return table.Cell{Text: analyze.Short(ns), Number: ns / 1e3, Has: true}
}
