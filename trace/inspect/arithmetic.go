package inspect

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Arithmetic is how a plan's workgroup count follows from the live shape: "96 = ⌈cols 384 / 4⌉ × rows 1"; ""
// where the trace does not say.
func Arithmetic(p *trace.Plan) string {
	if p.Grid == nil || len(p.Grid.Terms) == 0 {
		return ""
	}
	var parts []string
	groups := int64(1)
	for _, t := range p.Grid.Terms {
		groups *= (t.Value + t.Per - 1) / t.Per
		switch {
		case t.Per != 1:
			parts = append(parts, fmt.Sprintf("⌈%s %s / %d⌉", t.Name, table.Integer(t.Value), t.Per))
		case t.Value != 1 || len(p.Grid.Terms) < 3 || t.Name == "rows": // a batch of one says nothing
			parts = append(parts, fmt.Sprintf("%s %s", t.Name, table.Integer(t.Value)))
		}
	}
	says := strings.Join(parts, " × ")
	switch {
	case p.Grid.Rule == "grid_stride" && groups > p.NeededGroups:
		return fmt.Sprintf("%s workgroups stride over %s", table.Integer(p.NeededGroups), says)
	case product(p.NeededGrid) > p.NeededGroups:
		return fmt.Sprintf("%s for %s = %s, folded in two dimensions", table.Grid(p.NeededGrid),
			table.Integer(p.NeededGroups), says)
	}
	return table.Grid(p.NeededGrid) + " = " + says
}

// LaunchArithmetic is Arithmetic of what was launched: where that is more than the live shape needs it says
// so first.
func LaunchArithmetic(p *trace.Plan) string {
	needs := Arithmetic(p)
	if p.Workgroups == p.NeededGrid {
		return needs
	}
	if needs == "" {
		needs = table.Grid(p.NeededGrid)
	}
	return fmt.Sprintf("%s, pinned to the largest shape; needed %s", table.Grid(p.Workgroups), needs)
}

// changedTerms are the terms of a grid whose counts another plan had otherwise; nil where one of the two does
// not say.
func changedTerms(from, to *trace.Plan) (names []string, changes []goal) {
	if from == nil || from.Grid == nil || to.Grid == nil {
		return nil, nil
	}
	for _, t := range to.Grid.Terms {
		i := slices.IndexFunc(from.Grid.Terms, func(f trace.Term) bool { return f.Name == t.Name })
		if i >= 0 && from.Grid.Terms[i].Value != t.Value {
			names = append(names, t.Name)
			changes = append(changes, goal{[]int{int(from.Grid.Terms[i].Value)}, []int{int(t.Value)}})
		}
	}
	return names, changes
}
