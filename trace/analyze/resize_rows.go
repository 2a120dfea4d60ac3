package analyze

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/tree"
)

// ResizeRow is a row of the table of shape propagation. It shows a pass, a hook of the pass, or hooks of
// equal layers that did the same. Or it shows a value or a plan that a hook changed.
type ResizeRow struct {
	tree.Row
	Pass *trace.Pass
	Hook *trace.Hook // the first of Hooks; nil for a row of a pass
	// Hooks are the hooks that the row shows.
	Hooks []*trace.Hook
	// Same reports that in the previous step the hook of the same operator changed the same kinds of things.
	Same    bool
	Grouped bool              // the row is below the row of several equal layers
	Change  *trace.Change     // the change of a value, nil for other rows
	Plan    *trace.PlanChange // the change of a dispatch's plan, nil for other rows
}

// Dispatch returns the dispatch that the row is about. For a row that shows a change of a plan, it is the
// dispatch of this plan. For a row of hooks, it is the first dispatch that got a plan. If the hooks only
// removed plans, it is the first dispatch that lost its plan. The bool is false if the row is about no
// dispatch.
func (r *ResizeRow) Dispatch(t *trace.Trace) (id trace.DispatchID, ok bool) {
	if r.Plan != nil {
		return Changed(t, *r.Plan), true
	}
	if !r.Planning() {
		return 0, false
	}
	for _, c := range r.Hook.Plans {
		switch {
		case c.To != nil:
			return Changed(t, c), true
		case c.From != nil && !ok:
			id, ok = Changed(t, c), true
		}
	}
	return id, ok
}

// Values returns the values that the row changed. For a row that shows a pass, these are the values that were
// dirty before the pass.
func (r *ResizeRow) Values() (ids []trace.ValueID) {
	switch {
	case r.Change != nil:
		return []trace.ValueID{r.Change.Value}
	case r.Plan != nil:
	case r.Hook == nil:
		return r.Pass.Dirty
	default:
		for i := range r.Hook.Changed {
			ids = append(ids, r.Hook.Changed[i].Value)
		}
	}
	return ids
}

// Planning reports whether the row shows re-planned operators, and not a pass or a change.
func (r *ResizeRow) Planning() bool { return r.Hook != nil && r.Change == nil && r.Plan == nil }

// Resizes reports whether a hook changed the grid or route of a dispatch.
func Resizes(t *trace.Trace, h *trace.Hook) bool {
	return slices.ContainsFunc(h.Plans, func(c trace.PlanChange) bool {
		return trace.LaunchesOtherwise(PlanOf(t, c.From), PlanOf(t, c.To))
	})
}

// SomeOf joins names with commas. If there are more than four, it lists only the first three, followed by the
// total number.
func SomeOf(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s, … %d", strings.Join(names[:3], ", "), len(names))
	}
	return strings.Join(names, ", ")
}
