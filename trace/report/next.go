package report

import (
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/table"
)

// NextChange describes where the grid or the route of a dispatch changes next: as the position grows, and
// with a longer prompt. An example is "at position 576: 64 → 72 · at 2 tokens: route gemv → rows2". The
// result is exact, because it comes from the forecast. It is "" if the trace has no forecast.
func NextChange(x *analyze.Index, step int, id trace.DispatchID) string {
	var parts []string
	if c, known := curves.Around(x, step, id, trace.AlongPosition); known {
		said := fmt.Sprintf("same grid up to position %s", table.Integer(c.Last))
		if c.Next != nil {
			said = fmt.Sprintf("at position %s: %s", table.Integer(c.Next.At), changeOf(c.Next))
		}
		parts = append(parts, said)
	}
	if c, known := curves.Around(x, step, id, trace.AlongTokens); known {
		said := fmt.Sprintf("same grid up to %s tokens", table.Integer(c.Last))
		if c.Next != nil {
			said = fmt.Sprintf("at %s tokens: %s", table.Integer(c.Next.At), changeOf(c.Next))
		}
		parts = append(parts, said)
	}
	return strings.Join(parts, " · ")
}

// LastChange describes the last change of the grid or route at a smaller position and at a smaller number of
// tokens, in the format of NextChange.
func LastChange(x *analyze.Index, step int, id trace.DispatchID) string {
	var parts []string
	if c, known := curves.Around(x, step, id, trace.AlongPosition); known && c.Previous != nil {
		parts = append(parts,
			fmt.Sprintf("at position %s: %s", table.Integer(c.Previous.At), changeOf(c.Previous)))
	}
	if c, known := curves.Around(x, step, id, trace.AlongTokens); known && c.Previous != nil {
		parts = append(parts,
			fmt.Sprintf("at %s tokens: %s", table.Integer(c.Previous.At), changeOf(c.Previous)))
	}
	return strings.Join(parts, " · ")
}

// changeOf describes a change in the forecast.
func changeOf(c *curves.Change) string {
	switch {
	case c.From == nil:
		return "launched, grid " + table.Grid(c.To.Workgroups)
	case c.To == nil:
		return "not launched"
	}
	var parts []string
	if c.From.Workgroups != c.To.Workgroups {
		parts = append(parts, table.Grid(c.From.Workgroups)+" → "+table.Grid(c.To.Workgroups))
	}
	if c.Rerouted() {
		a, b := c.From.Route, c.To.Route
		if a == b {
			a, b = c.From.Kernel, c.To.Kernel
		}
		parts = append(parts, fmt.Sprintf("route %s → %s", a, b))
	}
	return strings.Join(parts, ", ")
}
