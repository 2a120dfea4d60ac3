package inspect

import (
	"gpuscope/trace/table"
)

// noneCell is a figure made of a cost that is not different from 0.
func noneCell() table.Cell { return table.Cell{Text: markNone, Mark: markNone, Has: true} }

// shareCell is a cost's part of the step, = of one that is not different from 0. Below 0 it is no part, and
// nothing is known of one that is not told.
func (c *RowCost) shareCell() table.Cell {
	switch {
	case c.none():
		return noneCell()
	case !c.Told():
		return table.Missing()
	case c.Share < 0:
		return table.Cell{}
	}
	return table.Number(100*c.Share, 1)
}

func shortCell(ns float64) table.Cell {
	return table.Cell{Text: short(ns), Number: ns / 1e3, Has: true}
}
