package inspect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/tree"
)

// HeldTree is the dispatches of some steps that were compared with a reference, by step and by place.
type HeldTree struct {
	rows []HeldRow
	// Compared dispatches, those that Diverge, being over their tolerance, and those that Inherit, since
	// something diverges before them that they take in.
	Compared, Diverge, Inherit int
	First                      *HeldDispatch // that diverges
	NotFinite                  *HeldDispatch // the first that gave what is no number
	samples, runs              bool
}

// HeldDispatch is a dispatch of a step that was held to a reference.
type HeldDispatch struct {
	Step     int // index into Trace.Steps
	Dispatch trace.DispatchID
	Gap      *trace.NumericGap
	inherits bool
}

// Diverges says that the kernel's own error is over its tolerance. Where its reference gives no number, on
// what comes from a divergence, that is not known.
func (h *HeldDispatch) Diverges() bool {
	follows := h.inherits && math.IsNaN(0*float64(h.Gap.Want))
	return h.Gap.Tolerance != "" && !(h.Gap.Share <= 1) && !follows
}

// HeldRow is a row: a step, a place in it with all layers that have it, or one dispatch.
type HeldRow struct {
	tree.Row
	label string          // "" of a step
	step  int             // that the row is of, or in
	held  []*HeldDispatch // the one that is farthest from its reference is first
}

// worst answers for the row; nil for a step.
func (r *HeldRow) worst() *HeldDispatch {
	if len(r.held) == 0 {
		return nil
	}
	return r.held[0]
}

// HeldTree finds what was compared with a reference in a scope; that of no steps is the whole run.
func (x *Index) HeldTree(ctx context.Context, scope Scope) (*HeldTree, error) {
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
func (g *HeldTree) hold(x *Index, step int, odd map[trace.ValueID]bool) (list []*HeldDispatch) {
	s := &x.Trace.Steps[step]
	for i := range s.Dispatches {
		d := &s.Dispatches[i]
		h := &HeldDispatch{Step: step, Dispatch: x.Trace.Plans[d.Plan].Dispatch, Gap: d.Gap}
		reads, writes := x.touches(&x.Trace.Plans[d.Plan])
		h.inherits = slices.ContainsFunc(reads, func(v trace.ValueID) bool { return odd[x.root(v)] })
		passesOn := h.inherits
		if d.Gap != nil {
			list = append(list, h)
			passesOn = g.count(h) || passesOn // counted, whatever it takes in
		}
		for _, v := range writes {
			state := x.Trace.Graph.Values[x.root(v)].Role == "state"
			odd[x.root(v)] = passesOn || state && odd[x.root(v)]
		}
	}
	return list
}

// count adds a dispatch to the sums, and says whether it diverges.
func (g *HeldTree) count(h *HeldDispatch) bool {
	g.Compared++
	g.samples = g.samples || h.Gap.Compared < h.Gap.Elements
	g.runs = g.runs || h.Gap.Run != nil
	if h.Gap.NotFinite > 0 && g.NotFinite == nil {
		g.NotFinite = h
	}
	switch {
	case h.Diverges():
		if g.Diverge++; g.First == nil {
			g.First = h
		}
	case h.inherits:
		g.Inherit++
	}
	return h.Diverges()
}

// addStep adds the rows of a step: those of equal layers are one, which opens.
func (g *HeldTree) addStep(x *Index, step int, list []*HeldDispatch) {
	if len(list) == 0 {
		return
	}
	s := &x.Trace.Steps[step]
	key := fmt.Sprintf("s%d", s.Index)
	heading := len(g.rows)
	g.rows = append(g.rows, HeldRow{
		Row: tree.Row{Key: key, Parent: -1, Open: true, Group: true}, step: step,
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
		in := len(g.rows)
		g.rows = append(g.rows, HeldRow{
			Row:   tree.Row{Key: key + " " + place, Parent: heading, Depth: 1},
			label: label, held: slices.SortedStableFunc(slices.Values(held), farther),
		})
		if len(held) == 1 {
			continue
		}
		for _, h := range held {
			g.rows = append(g.rows, HeldRow{
				Row:   tree.Row{Key: fmt.Sprintf("%s %d", key, h.Dispatch), Parent: in, Depth: 2},
				label: x.Name(h.Dispatch), held: []*HeldDispatch{h},
			})
		}
		g.rows[in].Open = slices.ContainsFunc(held, (*HeldDispatch).Diverges)
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
