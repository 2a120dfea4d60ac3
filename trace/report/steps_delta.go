package report

import (
	"fmt"
	"math"

	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// stepDelta returns the cell of a step's wall time minus that of the baseline.
func stepDelta(b *analyze.StepBaseline, x *analyze.Index, s *stepRow) table.Cell {
	ns, ok := s.CPU.TotalNS.NS()
	wall, there := b.Walls[s.Timing]
	switch {
	case !ok || !there:
		return table.Cell{}
	case b.Baseline.SpeedMoved(x, s.Canary, b.Canary):
		return table.Text("clk")
	}
	by := (float64(ns) - wall.Median) / 1e6
	figure := func(ns float64) float64 { return math.Round(ns / 1e4) } // rounded as displayed in the column
	shown := (figure(float64(ns)) - figure(wall.Median)) / 100
	cell := table.Cell{Text: fmt.Sprintf("%+.2f", shown), Number: by, Has: true}
	if wall.N > 1 && math.Abs(by)*1e6 <= wall.Noise() {
		cell.Text = "="
	}
	return cell
}

// stepDeltaColumn returns the column of time differences from the baseline.
func stepDeltaColumn(b *analyze.StepBaseline, x *analyze.Index, of table.Columns[stepRow]) table.Column {
	return of.Cell(80, table.Measured, "delta_ms", "Δwall ms", "ms",
		"wall time minus the median of the baseline's steps; =: a difference within the noise; clk: the "+
			"GPU clock changed; empty if no baseline step has the same timing level",
		func(s *stepRow) table.Cell { return stepDelta(b, x, s) })
}
