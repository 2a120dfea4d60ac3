package why

import (
	"slices"

	"gpuscope/trace"
)

// changedTerms compares the terms of the grids of two plans. It returns the names of those terms whose counts
// differ, and the change of each of these counts. If a plan is nil or does not record the terms of its grid,
// the result is nil.
func changedTerms(from, to *trace.Plan) (names []string, changes []goal) {
	if from == nil || to == nil || from.Grid == nil || to.Grid == nil {
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
