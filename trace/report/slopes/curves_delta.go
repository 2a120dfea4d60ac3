package slopes

import (
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

// delta returns the cell of a row's time at the last position minus its time at the baseline.
func delta(r *curves.CurveRow) table.Cell {
	if r.Baseline == nil || r.Fit == nil {
		return table.Cell{}
	}
	return report.DifferenceCell(r.Baseline.By, 1, r.Baseline.Equal)
}

// baseParts returns the title segments that name the baseline of the curves.
func baseParts(c *curves.Curves) []table.Segment {
	switch {
	case c.Baseline == nil:
		return nil
	case c.ClockMoved:
		return []table.Segment{{Rank: 0, Text: "GPU clock moved: times not compared", Short: "clock moved"}}
	case c.Rows[0].Baseline == nil:
		return []table.Segment{table.Say(1, "no Δ: %s was not timed at level %s",
			c.Baseline.Selection.Called(), c.Level)}
	}
	part := table.Say(0, "Δlast against %s at position %.0f",
		c.Baseline.Selection.Called(), c.Rows[0].Baseline.At)
	part.Short = "Δ " + c.Baseline.Selection.Short()
	if c.OtherGraph {
		part.Text += " for the whole step: the graphs differ"
	}
	return []table.Segment{part, report.OtherTrace(c.Index, c.Baseline.Index)}
}
