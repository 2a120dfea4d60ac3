package report

import (
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// noneCell returns the cell "=". It stands for a number that is computed from a cost which does not differ
// significantly from 0.
func noneCell() table.Cell {
	return table.Cell{Text: analyze.MarkNone, Mark: analyze.MarkNone, Has: true}
}

// ShareCell returns the cell of a cost's share of the step. It shows "=" if the cost does not differ
// significantly from 0. The cell is empty for a negative cost, and "–" for a cost that is not known.
func ShareCell(c *analyze.RowCost) table.Cell {
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

// ShortCell returns the cell of a time in ns, in µs with few digits (see analyze.Short).
func ShortCell(ns float64) table.Cell {
	return table.Cell{Text: analyze.Short(ns), Number: ns / 1e3, Has: true}
}
