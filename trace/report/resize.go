package report

import (
	"fmt"
	"strings"

	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// ResizeLine returns the summary of a resize in one line: "50 operators re-planned, 0 grids, 50 params, same
// as s16".
func ResizeLine(r *analyze.ResizeSummary) string {
	var said []string
	for _, p := range resizeParts(r, "") {
		said = append(said, p.Text)
	}
	return strings.Join(said, ", ")
}

// resizeParts returns the summary as title segments. If order is not empty, the order of propagation comes
// first. The segments about what changed are essential. The segments about how the propagation went may be
// omitted.
func resizeParts(r *analyze.ResizeSummary, order string) []table.Segment {
	if r.Hooks == 0 {
		return []table.Segment{{
			Text:  "nothing changed: no operator was re-planned",
			Short: "nothing changed",
		}}
	}
	planned := table.Plural(r.Operators, "operator") + " re-planned"
	if r.Hooks > r.Operators {
		planned = fmt.Sprintf("%s in %s", planned, table.Plural(r.Hooks, "planning run"))
	}
	grids := ", " + table.Plural(r.Grids, "grid")
	lead := table.Segment{
		Rank: 0, Text: planned + grids + " changed", Short: fmt.Sprintf("%d re-planned", r.Operators) + grids,
	}
	for _, c := range []struct {
		n           int
		what, short string
	}{{r.Routes, "routes", "routes"}, {r.New, "dispatches new", "new"}, {
		r.Gone, "dispatches removed", "removed",
	}} {
		if c.n > 0 {
			lead.Text += fmt.Sprintf(", %d %s", c.n, c.what)
			lead.Short += fmt.Sprintf(", %d %s", c.n, c.short)
		}
	}
	if order != "" {
		lead.Text = order + ": " + lead.Text
	}
	if order != usualOrder && order != "" { // the usual order may be omitted if there is little room
		lead.Short = order + ": " + lead.Short
	}
	params := fmt.Sprintf("%d params", r.Params)
	parts := []table.Segment{lead, {Rank: 0, Text: params + " changed", Short: params}}
	for _, c := range []struct {
		n    int
		what string
	}{{r.Noops, "no-op"}, {r.Glitches, "glitch"}, {r.Deferred, "deferred"}} {
		if c.n > 0 {
			parts = append(parts, table.Say(2, "%d %s", c.n, c.what))
		}
	}
	if ns, ok := r.Time.NS(); ok {
		parts = append(parts, table.Say(4, "%.1f µs", float64(ns)/1e3))
	}
	if r.SameAs >= 0 {
		parts = append(parts, table.Say(2, "re-planned the same operators as s%d", r.SameAs))
	}
	return parts
}
