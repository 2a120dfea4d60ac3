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

// Tree holds the dispatches that were compared with a reference, grouped by step and by place in a layer.
type Tree struct {
	Places []Row
	// Compared is the number of compared dispatches. Diverge is the number of dispatches whose errors
	// exceed their tolerances. Inherit is the number of dispatches that read data from an earlier diverging
	// dispatch.
	Compared, Diverge, Inherit int
	First                      *Comparison // the first dispatch that diverges
	NotFinite                  *Comparison // the first dispatch that produced NaN or Inf
	Samples, Runs              bool
}

// Comparison is a dispatch of a step that was compared with a reference.
type Comparison struct {
	Step     int // index into Trace.Steps
	Dispatch trace.DispatchID
	Error    *trace.NumericError
	Inherits bool
}

// Diverges reports whether the kernel's own error exceeds its tolerance. If the dispatch inherits an error
// and its reference is not finite, its own error is not known, and Diverges returns false.
func (h *Comparison) Diverges() bool {
	follows := h.Inherits && math.IsNaN(0*float64(h.Error.Want))
	return h.Error.Tolerance != "" && !(h.Error.Share <= 1) && !follows
}

// Row is a row of the tree: a step, the dispatches at one place of all layers, or a single dispatch.
type Row struct {
	tree.Row
	Label       string        // "" for a step
	Step        int           // index of the row's step
	Comparisons []*Comparison // sorted by error, largest first
}

// Worst returns the comparison with the largest error, and nil for a step.
func (r *Row) Worst() *Comparison {
	if len(r.Comparisons) == 0 {
		return nil
	}
	return r.Comparisons[0]
}

// Of returns the comparisons with a reference in a selection. If the selection has no steps, it covers the
// whole run.
func Of(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*Tree, error) {
	steps := selection.Steps
	for i := range x.Trace.Steps {
		if len(selection.Steps) == 0 { // cold steps are included, because they compute the same values
			steps = append(steps, i)
		}
	}
	g := &Tree{}
	odd := map[trace.ValueID]bool{} // values that depend on a divergence
	for _, step := range steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		g.addStep(x, step, g.compare(x, step, odd))
	}
	return g, nil
}

// compare returns the comparisons of a step in order of submission. odd holds the values that depend on a
// divergence, and compare updates it with the outputs of each dispatch.
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
			passesOn = g.count(h) || passesOn // always call count, even if the dispatch inherits an error
		}
		for _, v := range writes {
			state := x.Trace.Graph.Values[x.Root(v)].Role == trace.RoleState
			odd[x.Root(v)] = passesOn || state && odd[x.Root(v)]
		}
	}
	return list
}

// count adds a comparison to the totals, and reports whether it diverges.
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

// addStep adds the rows of a step. The same dispatch of several equal layers becomes one row that can be
// opened.
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

// farther sorts comparisons by error relative to the tolerance, largest first. An error of NaN comes before
// all others.
func farther(a, b *Comparison) int {
	size := func(h *Comparison) float64 {
		if share := float64(h.Error.Share); !math.IsNaN(share) {
			return share
		}
		return math.Inf(1)
	}
	return cmp.Compare(size(b), size(a))
}
