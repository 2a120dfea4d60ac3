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

// Tree is the dispatches of some steps that were compared with a reference, by step and by place.
type Tree struct {
	Places []Row
	// Compared dispatches, those that Diverge, being over their tolerance, and those that Inherit, since
	// something diverges before them that they take in.
	Compared, Diverge, Inherit int
	First                      *Comparison // that diverges
	NotFinite                  *Comparison // the first that gave NaN or Inf
	Samples, Runs              bool
}

// Comparison is a dispatch of a step that was held to a reference.
type Comparison struct {
	Step     int // index into Trace.Steps
	Dispatch trace.DispatchID
	Error    *trace.NumericError
	Inherits bool
}

// Diverges reports that the kernel's own error is over its tolerance. Where its reference gives no number, on
// what comes from a divergence, that is not known.
func (h *Comparison) Diverges() bool {
	follows := h.Inherits && math.IsNaN(0*float64(h.Error.Want))
	return h.Error.Tolerance != "" && !(h.Error.Share <= 1) && !follows
}

// Row is a row: a step, a place in it with all layers that have it, or one dispatch.
type Row struct {
	tree.Row
	Label       string        // "" of a step
	Step        int           // that the row is of, or in
	Comparisons []*Comparison // the one that is farthest from its reference is first
}

// Worst answers for the row; nil for a step.
func (r *Row) Worst() *Comparison {
	if len(r.Comparisons) == 0 {
		return nil
	}
	return r.Comparisons[0]
}

// Of finds what was compared with a reference in a selection; that of no steps is the whole run.
func Of(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*Tree, error) {
	steps := selection.Steps
	for i := range x.Trace.Steps {
		if len(selection.Steps) == 0 { // cold ones, too: they compute the same
			steps = append(steps, i)
		}
	}
	g := &Tree{}
	odd := map[trace.ValueID]bool{} // values that come from what diverges
	for _, step := range steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		g.addStep(x, step, g.compare(x, step, odd))
	}
	return g, nil
}

// compare goes through the dispatches of a step, in order of submission, and along what they pass on.
func (g *Tree) compare(x *analyze.Index, step int, odd map[trace.ValueID]bool) (list []*Comparison) {
	s := &x.Trace.Steps[step]
	for i := range s.Dispatches {
		d := &s.Dispatches[i]
		h := &Comparison{Step: step, Dispatch: x.Trace.Plans[d.Plan].Dispatch, Error: d.Error}
		reads, writes := x.Touches(&x.Trace.Plans[d.Plan])
		h.Inherits = slices.ContainsFunc(reads, func(v trace.ValueID) bool { return odd[x.Root(v)] })
		passesOn := h.Inherits
		if d.Error != nil {
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

// count adds a dispatch to the sums, and reports whether it diverges.
func (g *Tree) count(h *Comparison) bool {
	g.Compared++
	g.Samples = g.Samples || h.Error.Compared < h.Error.Elements
	g.Runs = g.Runs || h.Error.Run != nil
	if h.Error.NotFinite > 0 && g.NotFinite == nil {
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
func (g *Tree) addStep(x *analyze.Index, step int, list []*Comparison) {
	if len(list) == 0 {
		return
	}
	s := &x.Trace.Steps[step]
	key := fmt.Sprintf("s%d", s.Index)
	heading := len(g.Places)
	g.Places = append(g.Places, Row{
		Row: tree.Row{Key: key, Parent: -1, Open: true, Group: true}, Step: step,
	})
	var places []string
	at := map[string][]*Comparison{}
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
		g.Places = append(g.Places, Row{
			Row:   tree.Row{Key: key + " " + place, Parent: heading, Depth: 1},
			Label: label, Comparisons: slices.SortedStableFunc(slices.Values(held), farther),
		})
		if len(held) == 1 {
			continue
		}
		for _, h := range held {
			g.Places = append(g.Places, Row{
				Row:   tree.Row{Key: fmt.Sprintf("%s %d", key, h.Dispatch), Parent: in, Depth: 2},
				Label: x.Name(h.Dispatch), Comparisons: []*Comparison{h},
			})
		}
		g.Places[in].Open = slices.ContainsFunc(held, (*Comparison).Diverges)
	}
}

// farther sorts by the error as a share of the tolerance, largest first; NaN sorts before everything.
func farther(a, b *Comparison) int {
	size := func(h *Comparison) float64 {
		if share := float64(h.Error.Share); !math.IsNaN(share) {
			return share
		}
		return math.Inf(1)
	}
	return cmp.Compare(size(b), size(a))
}
