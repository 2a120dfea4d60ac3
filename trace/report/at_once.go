package report

import "slices"

// JointLine describes the joint cost of a row and all rows that run concurrently with it. It returns "" if
// this cost is not known.
func (t *DispatchTable) JointLine(row int) string {
	for i := range t.Grouped {
		if r := &t.Grouped[i]; slices.Contains(r.Joins, row) && r.Cost.Significant() {
			return t.NameOf(r) + ": " + t.CostLine(r)
		}
	}
	return ""
}
