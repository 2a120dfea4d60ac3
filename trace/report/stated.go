package report

import (
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// An imported profile has the time of each dispatch, and it may state the time of a whole step. The
// difference is the part of the step in which no dispatch runs.

// stated returns the wall time that the profile states for a step of a phase. It also returns `outside`,
// the part of the wall time in which no dispatch runs. `busy` is the sum of the dispatch times. The wall
// time and `busy` come from different steps, so `busy` can be larger. Then `outside` is not measured.
func stated(x *analyze.Index, phase trace.Phase, busy trace.Time) (wall, outside trace.Time) {
	s, _ := x.Trace.StatedFor(phase)
	outside = analyze.Minus(s.WallNS, busy)
	if ns, _ := outside.NS(); ns < 0 {
		outside = trace.Time{}
	}
	return s.WallNS, outside
}

// StatedStep returns the title segments with the stated time of an imported step.
func StatedStep(r *analyze.StepSummary) []table.Segment {
	return statedParts(stated(r.Index, r.Step.Phase, r.Busy))
}

func statedParts(wall, outside trace.Time) []table.Segment {
	if !analyze.Measured(wall) {
		none := "the profile states no time of the whole step"
		return []table.Segment{{Rank: 1, Text: none, Short: "step time unknown"}}
	}
	step := "step " + Millis(wall)
	parts := []table.Segment{{Rank: 0, Text: step + ", stated by the profile", Short: step + " stated"}}
	if analyze.Measured(outside) {
		part := outsidePart(wall, outside)
		parts = append(parts, table.Segment{Rank: 1, Text: part + " outside of dispatches", Short: part + " outside"})
	}
	return parts
}

// outsidePart returns the part of a step outside of its dispatches, in ms and as a share: "5.95 (66 %)".
func outsidePart(wall, outside trace.Time) string {
	all, _ := wall.NS()
	ns, _ := outside.NS()
	return fmt.Sprintf("%s (%.0f %%)", table.MillisBare(ns, true), 100*float64(ns)/float64(all))
}

// imported holds the times of selected steps of an imported profile.
type imported struct {
	sums          analyze.Stats // sums of the dispatches of each step
	wall, outside trace.Time    // results of stated(); left unmeasured if the steps have several phases
}

func importedOf(x *analyze.Index, selection analyze.Selection) imported {
	var sums []int64
	phases := map[trace.Phase]bool{}
	for _, step := range selection.Steps {
		s := &x.Trace.Steps[step]
		phases[s.Phase] = true
		busy, _ := x.BusyOf(s)
		if ns, ok := busy.NS(); ok {
			sums = append(sums, ns)
		}
	}
	r := imported{sums: analyze.StatsOf(sums)}
	if len(phases) == 1 {
		for phase := range phases {
			r.wall, r.outside = stated(x, phase, r.sums.Time())
		}
	}
	return r
}

// importedTimes returns the title line with the time of selected steps.
func importedTimes(x *analyze.Index, selection analyze.Selection) table.Line {
	r := importedOf(x, selection)
	parts := []table.Segment{
		{Rank: 0, Text: analyze.SumName + " " + Millis(r.sums.Time())},
		{Rank: 2, With: true, Text: "isolated"},
	}
	if r.sums.N > 1 {
		least, most := analyze.Whole(r.sums.Min), analyze.Whole(r.sums.Max)
		parts = append(parts, table.Segment{Rank: 5, With: true, Text: fmt.Sprintf("(%s–%s)",
			table.MillisBare(least, true), table.MillisBare(most, true))})
	}
	return table.Line{Separator: " │ ", Segments: append(parts, statedParts(r.wall, r.outside)...)}
}

// importedPace returns a line with the stated speed of an imported run.
func importedPace(x *analyze.Index) table.Line {
	var parts []table.Segment
	for _, s := range x.Trace.Stated {
		if ns, ok := s.WallNS.NS(); ok && ns > 0 && s.Tokens > 0 {
			parts = append(parts, table.Say(0, "%s of %s in %s, %.*f tok/s", s.Phase,
				table.Plural(s.Tokens, "token"), Millis(s.WallNS), 1, 1e9*float64(s.Tokens)/float64(ns)))
		}
	}
	if parts == nil {
		parts = []table.Segment{{Rank: 0, Text: "the profile states no time of a whole step"}}
	} else {
		parts = append(parts, table.Segment{Rank: 2, Text: "stated by the profile"})
	}
	return table.Line{Separator: " · ", Segments: parts}
}

// importedVerdict says for how much of a step no dispatch runs.
func importedVerdict(r *analyze.StepSummary) string {
	wall, outside := stated(r.Index, r.Step.Phase, r.Busy)
	switch {
	case !analyze.Measured(wall):
		return "bottleneck unknown: the profile states no time of the whole step"
	case !analyze.Measured(outside):
		return fmt.Sprintf("the dispatches take %s, more than the %s that the profile states for a step",
			Millis(r.Busy), Millis(wall))
	}
	all, _ := wall.NS()
	ns, _ := outside.NS()
	line := fmt.Sprintf("no dispatch runs in %.0f %% of the step: %s of %s, the time that the profile states",
		100*float64(ns)/float64(all), table.MillisBare(ns, true), Millis(wall))
	if 2*ns > all {
		line = "CPU-bound: " + line
	}
	return line
}

// baselineStep returns the title segment with the stated time of a step of an imported baseline. It is empty
// if the baseline has no such time.
func (t *DispatchTable) baselineStep() table.Segment {
	if t.Baseline.Index.Trace.Engine == "" || t.Baseline.Index == t.Index {
		return table.Segment{}
	}
	r := importedOf(t.Baseline.Index, t.Baseline.Selection)
	if !analyze.Measured(r.wall) {
		return table.Segment{}
	}
	part := table.Segment{Rank: 1, Text: "its step " + Millis(r.wall) + ", stated"}
	if analyze.Measured(r.outside) {
		part.Short = part.Text
		part.Text += ", " + outsidePart(r.wall, r.outside) + " outside of dispatches"
	}
	return part
}
