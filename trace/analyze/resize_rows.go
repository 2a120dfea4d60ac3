package analyze

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/tree"
)

// ResizeRow is a line of a step's propagation: a pass, a hook in it (or the hooks of equal layers, which did
// the same), or what a hook changed: a value or a plan.
type ResizeRow struct {
	tree.Row
	Pass *trace.Pass
	Hook *trace.Hook // of equal layers the first; nil: the row is a pass
	// Hooks are those that the row stands for.
	Hooks []*trace.Hook
	// Same reports that the hook of the same operator in the step before changed the same kinds of things.
	Same    bool
	Grouped bool              // it stands in the row of equal layers
	Change  *trace.Change     // a value's
	Plan    *trace.PlanChange // a dispatch's
}

// Dispatch is the one whose plan the row is of; of hooks the first that they gave a plan, or where they only
// took some away the first of those. It is false if there is none.
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

// Values are those that the row changed; of a pass those that were dirty before it.
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

// Planning reports that the row is of hooks.
func (r *ResizeRow) Planning() bool { return r.Hook != nil && r.Change == nil && r.Plan == nil }

// Resizes reports whether a hook gave a dispatch another grid or route.
func Resizes(t *trace.Trace, h *trace.Hook) bool {
	return slices.ContainsFunc(h.Plans, func(c trace.PlanChange) bool {
		return LaunchesOtherwise(PlanOf(t, c.From), PlanOf(t, c.To))
	})
}

// SomeOf joins names; of many the first three, and how many there are.
func SomeOf(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s, … %d", strings.Join(names[:3], ", "), len(names))
	}
	return strings.Join(names, ", ")
}
