package accuracy

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/tree"
)

// HeldTree is the dispatches of some steps that were compared with a reference, by step and by place.
type HeldTree struct {
	Places []HeldRow
	// Compared dispatches, those that Diverge, being over their tolerance, and those that Inherit, since
	// something diverges before them that they take in.
	Compared, Diverge, Inherit int
	First                      *HeldDispatch // that diverges
	NotFinite                  *HeldDispatch // the first that gave what is no number
	Samples, Runs              bool
}

// HeldDispatch is a dispatch of a step that was held to a reference.
type HeldDispatch struct {
	Step     int // index into Trace.Steps
	Dispatch trace.DispatchID
	Gap      *trace.NumericGap
	Inherits bool
}

// Diverges says that the kernel's own error is over its tolerance. Where its reference gives no number, on
// what comes from a divergence, that is not known.
func (h *HeldDispatch) Diverges() bool {
	follows := h.Inherits && math.IsNaN(0*float64(h.Gap.Want))
	return h.Gap.Tolerance != "" && !(h.Gap.Share <= 1) && !follows
}

// HeldRow is a row: a step, a place in it with all layers that have it, or one dispatch.
type HeldRow struct {
	tree.Row
	Label string          // "" of a step
	Step  int             // that the row is of, or in
	Held  []*HeldDispatch // the one that is farthest from its reference is first
}

// Worst answers for the row; nil for a step.
func (r *HeldRow) Worst() *HeldDispatch {
	if len(r.Held) == 0 {
		return nil
	}
	return r.Held[0]
}

// Of finds what was compared with a reference in a scope; that of no steps is the whole run.
func Of(ctx context.Context, x *analyze.Index, scope analyze.Scope) (*HeldTree, error) {
	steps := scope.Steps
	for i := range x.Trace.Steps {
		if len(scope.Steps) == 0 { // cold ones, too: they compute the same
			steps = append(steps, i)
		}
	}
	g := &HeldTree{}
	odd := map[trace.ValueID]bool{} // values that come from what diverges
	for _, step := range steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		g.addStep(x, step, g.hold(x, step, odd))
	}
	return g, nil
}

// hold goes through the dispatches of a step, in order of submission, and along what they pass on.
func (g *HeldTree) hold(x *analyze.Index, step int, odd map[trace.ValueID]bool) (list []*HeldDispatch) {
	s := &x.Trace.Steps[step]
	for i := range s.Dispatches {
		d := &s.Dispatches[i]
		h := &HeldDispatch{Step: step, Dispatch: x.Trace.Plans[d.Plan].Dispatch, Gap: d.Gap}
		reads, writes := x.Touches(&x.Trace.Plans[d.Plan])
		h.Inherits = slices.ContainsFunc(reads, func(v trace.ValueID) bool { return odd[x.Root(v)] })
		passesOn := h.Inherits
		if d.Gap != nil {
			list = append(list, h)
			passesOn = g.count(h) || passesOn // counted, whatever it takes in
		}
		for _, v := range writes {
			state := x.Trace.Graph.Values[x.Root(v)].Role == trace.RoleState
			odd[x.Root(v)] = passesOn || state && odd[x.Root(v)]
		}
	}
	return list
}

// count adds a dispatch to the sums, and says whether it diverges.
func (g *HeldTree) count(h *HeldDispatch) bool {
	g.Compared++
	g.Samples = g.Samples || h.Gap.Compared < h.Gap.Elements
	g.Runs = g.Runs || h.Gap.Run != nil
	if h.Gap.NotFinite > 0 && g.NotFinite == nil {
		g.NotFinite = h
	}
	switch {
	case h.Diverges():
		if g.Diverge++; g.First == nil {
			g.First = h
		}
	case h.Inherits:
		g.Inherit++
	}
	return h.Diverges()
}

// addStep adds the rows of a step: those of equal layers are one, which opens.
func (g *HeldTree) addStep(x *analyze.Index, step int, list []*HeldDispatch) {
	if len(list) == 0 {
		return
	}
	s := &x.Trace.Steps[step]
	key := fmt.Sprintf("s%d", s.Index)
	heading := len(g.Places)
	g.Places = append(g.Places, HeldRow{
		Row: tree.Row{Key: key, Parent: -1, Open: true, Group: true}, Step: step,
	})
	var places []string
	at := map[string][]*HeldDispatch{}
	for _, h := range list {
		d := &x.Trace.Graph.Dispatches[h.Dispatch]
		place := d.Named(x.Trace.Graph.Ops[d.Op].Place())
		if at[place] == nil {
			places = append(places, place)
		}
		at[place] = append(at[place], h)
	}
	for _, place := range places {
		held := at[place]
		label := place
		if len(held) > 1 {
			label = fmt.Sprintf("%s ×%d", place, len(held))
		}
		in := len(g.Places)
		g.Places = append(g.Places, HeldRow{
			Row:   tree.Row{Key: key + " " + place, Parent: heading, Depth: 1},
			Label: label, Held: slices.SortedStableFunc(slices.Values(held), farther),
		})
		if len(held) == 1 {
			continue
		}
		for _, h := range held {
			g.Places = append(g.Places, HeldRow{
				Row:   tree.Row{Key: fmt.Sprintf("%s %d", key, h.Dispatch), Parent: in, Depth: 2},
				Label: x.Name(h.Dispatch), Held: []*HeldDispatch{h},
			})
		}
		g.Places[in].Open = slices.ContainsFunc(held, (*HeldDispatch).Diverges)
	}
}

// farther orders dispatches: that which takes most of its tolerance is first.
func farther(a, b *HeldDispatch) int {
	size := func(h *HeldDispatch) float64 {
		if share := float64(h.Gap.Share); !math.IsNaN(share) {
			return share
		}
		return math.Inf(1)
	}
	return cmp.Compare(size(b), size(a))
}
