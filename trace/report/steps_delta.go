package report

import (
	"fmt"
	"math"

	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// stepDelta returns the cell of a step's wall time minus that of the baseline.
func stepDelta(b *analyze.StepBaseline, x *analyze.Index, step int) table.Cell {
	s := &x.Trace.Steps[step]
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

// stepDeltaColumn returns the column of time differences from the baseline. The last argument is a function
// that returns the step of a row.
func stepDeltaColumn(b *analyze.StepBaseline, x *analyze.Index, of func(row int) int) table.Column {
	return table.Column{
		Name: "delta_ms", Title: "Δwall ms", Unit: "ms", Is: table.Measured, Right: true, Width: 80,
		Doc: "wall time minus the median of the baseline's steps; = means a difference within the noise, clk a " +
			"changed GPU clock; empty if no baseline step has the same timing level",
		Of: func(row int) table.Cell { return stepDelta(b, x, of(row)) },
	}
}
