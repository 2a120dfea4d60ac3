package report

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/table"
)

func (t *DispatchTable) title() []table.Line {
	line := table.Plural(len(t.Launches), "dispatch")
	levels, in := t.Levels()
	switch {
	case in == len(t.Launches) && in > 0:
		line += " in " + table.Plural(levels, "level")
	case in > 0:
		line += fmt.Sprintf(", %d of them in %s", in, table.Plural(levels, "level"))
	}
	waste := t.wasteParts()
	parts := []table.Segment{{Rank: 1, Text: line}, {Rank: 2, Text: "by " + t.Grouping.String()}}
	step, one := t.Selection.One()
	if !one {
		selection := SelectionPart(t.Selection)
		if n := t.TimedSteps(); n > 0 && n < len(t.Selection.Steps) {
			selection = table.Say(0, "%s: %s, %d of them timed", t.Selection.Name, StepCount(t.Selection), n)
			selection.Short = fmt.Sprintf("%s, %d timed", t.Selection.Counted(), n)
		}
		parts = append([]table.Segment{selection}, parts...)
	} else if t.Index.Trace.Steps[step].Cold {
		parts = append(parts, table.Segment{Rank: 2, Text: "cold"})
	}
	if one && t.Selection.Chosen() {
		of := strings.TrimPrefix(t.Selection.Chunk+", "+StepCount(t.Selection), ", ")
		part := table.Segment{Rank: 2, Text: of}
		if t.Selection.Rerouted > 0 {
			part.Rank = 0
		}
		parts = append(parts, part)
	}
	parts = append(parts, t.costPart())
	if t.Costs != nil {
		parts = append(parts, sharedCostParts(t.Costs, t)...)
	}
	parts = append(append(parts, t.timingPart()), t.FixFirst()...)
	if t.Index.Trace.Engine == "" {
		parts = append(parts, SumParts(t.Index, t.Selection)...)
	}
	if t.Timed() && levels < in {
		parts = append(parts, table.Say(5, "dispatches that can overlap when untimed: %d", in-levels))
	}
	if t.Costs == nil && slices.ContainsFunc(t.Grouped,
		func(r analyze.DispatchRow) bool { return r.ExcessNS > 0 }) {
		parts = append(parts, table.Say(6, "no costs measured: ~excess comes from isolated times"))
	}
	if why := analyze.NoSave(&t.Index.Trace.Device); why != "" && t.AnyCost {
		parts = append(parts, table.Segment{Rank: 2, Text: why, Short: "~save unknown"})
	} else if t.Index.Trace.Device.Software() {
		parts = append(parts, table.Segment{Rank: 3, Text: "software device: compare ratios only"})
	}
	if t.Index.Static() {
		parts = append(waste, parts...)
	} else {
		parts = append(parts, waste...)
	}
	if t.Baseline != nil {
		parts = append(parts, t.baseParts()...)
	}
	return []table.Line{TimesLine(t.Index, t.Selection), table.Title(parts...)}
}

// timingPart returns the title segment about how the dispatches were timed.
func (t *DispatchTable) timingPart() table.Segment {
	_, one := t.Selection.One()
	n := t.Repeats()
	switch {
	case !t.Timed() && one:
		level := t.Index.Trace.Steps[t.Selection.Last()].Timing
		if level == "block" {
			return OfBlocks
		}
		return table.Segment{Rank: 1, Text: "timing level " + string(level) + ": dispatches not timed", Short: "no times"}
	case t.TimedSteps() == 0:
		return table.Segment{Rank: 1, Text: "dispatches not timed", Short: "no times"}
	case one && n == 1:
		return table.Segment{Rank: 3, Text: "1 sample"}
	case one && n > 1 && n < analyze.Enough:
		return table.Say(3, "n=%d repeats of each dispatch: too few for an IQR", n)
	case one && n > 1:
		return table.Say(3, "n=%d repeats of each dispatch", n)
	}
	return table.Segment{}
}

// most is the maximum number of counts in the essential title segment about differences. A count is a text
// such as "3 grid". The other counts are in an optional segment.
const most = 2

// baseParts returns the title segments that count the differences from the baseline.
func (t *DispatchTable) baseParts() []table.Segment {
	var grid, route, text, params, added int
	for i := range t.Launches {
		d := t.Launches[i].Delta
		for _, c := range []struct {
			on bool
			n  *int
		}{{d.Grid, &grid}, {d.Route, &route}, {d.Text, &text}, {d.Params, &params}, {d.New, &added}} {
			if c.on {
				*c.n++
			}
		}
	}
	var counts []string
	for _, c := range []struct {
		n    int
		what string
	}{{grid, "grid"}, {route, "route"}, {text, "edited"}, {params, "params"}, {added, "new"}, {len(t.Gone), "gone"}} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if counts == nil {
		counts = []string{"same plans"}
	}
	first := min(most, len(counts))
	differ := strings.Join(counts[:first], ", ")
	delta := table.Say(0, "Δ %s: %s", BaselineName(t.Baseline.Selection), differ)
	delta.Short = fmt.Sprintf("Δ %s: %s", t.Baseline.Selection.Short(), differ)
	if len(t.Baseline.Selection.Short()) > 8 { // the differences matter more than a long name
		delta.Short = "Δ " + differ
	}
	parts := []table.Segment{delta}
	if rest := counts[first:]; len(rest) > 0 {
		parts = append(parts, table.Segment{Rank: 1, With: true, Text: "and " + strings.Join(rest, ", ")})
	}
	parts = append(parts, OtherTrace(t.Index, t.Baseline.Index), t.baselineStep())
	if t.Baseline.Index != t.Index {
		parts = append(parts, table.Segment{Text: OtherTokens(t.Index, t.Selection, t.Baseline), Short: "other work"})
	}
	switch {
	case t.Joined == join.ByOrder:
		parts = append(parts, table.Segment{
			Rank: 0, Text: "the baseline has other operators: shown in dispatch order, not compared",
			Short: "not compared",
		})
	case t.Joined == join.ByOperator:
		parts = append(parts, table.Segment{Text: "compared by operator"},
			table.Segment{Rank: 4, With: true, Text: "(a fused dispatch with the sum of its parts)"})
	case t.Baseline.Index != t.Index:
		parts = append(parts, table.Segment{Rank: 4, Text: "compared by dispatch id"})
	}
	if t.ClockMoved {
		parts = append(parts, table.Segment{Rank: 0, Text: "GPU clock moved: times not compared", Short: "clock moved"})
	}
	return parts
}

func (t *DispatchTable) notes() []string {
	all := make([]int, len(t.Grouped))
	for i := range all {
		all[i] = i
	}
	return t.NotesOf(all...)
}

// NotesOf returns the notes about the given rows and the rows inside them. The notes say how many dispatches
// are as short as an empty timed pass, and which members are outliers.
func (t *DispatchTable) NotesOf(rows ...int) []string {
	about := make([]bool, len(t.Grouped)) // rows come after their parents
	for _, r := range rows {
		about[r] = true
	}
	theirs := map[int]bool{}
	for i := range t.Grouped {
		r := &t.Grouped[i]
		about[i] = about[i] || r.Parent >= 0 && about[r.Parent]
		for _, l := range slices.Concat(r.Units...) {
			if about[i] {
				theirs[l] = true
			}
		}
	}
	var notes []string
	floors := 0
	for i := range theirs {
		if t.Launches[i].Limit.Kind == analyze.FloorBound {
			floors++
		}
	}
	if c := t.Index.Trace.Device.Ceilings; floors > 0 {
		ns, _ := c.TimedPassNS.NS()
		notes = append(notes,
			fmt.Sprintf("≈floor: %d of %d dispatches take at most %g× as long as an empty timed pass (%.1f µs)", floors,
				len(theirs), analyze.FloorFactor, float64(ns)/1e3))
	}
	for i := range t.Grouped {
		r := &t.Grouped[i]
		if r.Outlier >= 0 && about[i] {
			l := &t.Launches[r.Units[r.Outlier][0]]
			notes = append(notes,
				fmt.Sprintf("outlier: %s takes %.1f µs; the median of the %d members of its group is %.1f µs",
					t.Index.Name(l.ID), l.Time.Median/1e3, len(r.Units), r.Time.Median/1e3))
		}
	}
	return append(notes, t.otherWorkNotes(func(row int) bool { return about[row] })...)
}
