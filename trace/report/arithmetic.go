package report

import (
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// Arithmetic explains how a plan's workgroup count follows from the live shape: "96 = ⌈cols 384 / 4⌉ × rows
// 1". It returns "" if the trace has no explanation.
func Arithmetic(p *trace.Plan) string {
	if p.Grid == nil || len(p.Grid.Terms) == 0 {
		return ""
	}
	var parts []string
	groups := int64(1)
	for i := range p.Grid.Terms {
		t := &p.Grid.Terms[i]
		groups *= t.Groups()
		if t.Value != 1 || t.Name != "z" { // z is the batch; do not show a batch of one
			parts = append(parts, termText(t))
		}
	}
	says := strings.Join(parts, " × ")
	switch {
	case p.Grid.Rule == "grid_stride" && groups > p.NeededGroups:
		return fmt.Sprintf("%s workgroups stride over %s", table.Integer(p.NeededGroups), says)
	case analyze.Product(p.NeededGrid) > p.NeededGroups:
		return fmt.Sprintf("%s (two dimensions) to cover %s workgroups = %s", table.Grid(p.NeededGrid),
			table.Integer(p.NeededGroups), says)
	}
	return table.Grid(p.NeededGrid) + " = " + says
}

// termText formats one factor of the workgroup count, with the divisor that turns it into workgroups:
// "min(⌈context 2,100 / 64⌉, 32)".
func termText(t *trace.Term) string {
	s := fmt.Sprintf("%s %s", t.Name, table.Integer(t.Value))
	if t.Times > 1 {
		s += fmt.Sprintf(" × %s", table.Integer(t.Times))
	}
	if t.Per != 1 {
		s = fmt.Sprintf("⌈%s / %s⌉", s, table.Integer(t.Per))
	}
	if t.Most > 0 {
		s = fmt.Sprintf("min(%s, %s)", s, table.Integer(t.Most))
	}
	return s
}

// LaunchArithmetic explains the launched workgroup count like Arithmetic. If more workgroups are launched
// than the live shape needs, the text begins with this fact.
func LaunchArithmetic(p *trace.Plan) string {
	needs := Arithmetic(p)
	if p.Workgroups == p.NeededGrid {
		return needs
	}
	if needs == "" {
		needs = table.Grid(p.NeededGrid)
	}
	return fmt.Sprintf("%s, the size for the largest shape; this step needs %s",
		table.Grid(p.Workgroups), needs)
}
