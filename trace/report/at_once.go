package report

import (
	"slices"
)

// JointLine says what a row costs together with those that it runs with at once; "" where that is not
// known.
func (t *DispatchTable) JointLine(row int) string {
	for i := range t.Grouped {
		if r := &t.Grouped[i]; slices.Contains(r.Joins, row) && r.Cost.Significant() {
			return t.NameOf(r) + ": " + t.CostLine(r)
		}
	}
	return ""
}
