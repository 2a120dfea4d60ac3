package slopes

import (
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

// delta is what a row takes at the last position less what it took at the base.
func delta(r *curves.CurveRow) table.Cell {
	if r.Base == nil || r.Fit == nil {
		return table.Cell{}
	}
	return report.DifferenceCell(r.Base.By, 1, r.Base.Equal)
}

// baseParts say in a title what curves are compared with.
func baseParts(c *curves.Curves) []table.Segment {
	switch {
	case c.Base == nil:
		return nil
	case c.ClockMoved:
		return []table.Segment{{Rank: 0, Text: "clock moved: no Δ", Short: "clock moved"}}
	case c.Rows[0].Base == nil:
		return []table.Segment{table.Say(1, "Δ %s: not timed at level %s", c.Base.Scope.Called(), c.Level)}
	}
	part := table.Say(0, "Δlast against %s at %.0f", c.Base.Scope.Called(), c.Rows[0].Base.At)
	part.Short = "Δ " + c.Base.Scope.Short()
	return []table.Segment{part, report.OtherTrace(c.Index, c.Base.Index)}
}
