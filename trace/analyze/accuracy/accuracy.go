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

// Tree holds the dispatches that were compared with a reference. They are grouped by step and, within a step,
// by their place in a layer.
type Tree struct {
	Places []Row
	// Compared is the number of compared dispatches. Diverge is the number of dispatches with an error above
	// the tolerance. Inherit is the number of dispatches that read data from a dispatch that diverged
	// earlier.
	Compared, Diverge, Inherit int
	First                      *Comparison // the first dispatch that diverges
	NotFinite                  *Comparison // the first dispatch that produced NaN or Inf
	Samples, Runs              bool
}

// Comparison is the comparison of one dispatch of a step with a reference.
type Comparison struct {
	Step     int // index into Trace.Steps
	Dispatch trace.DispatchID
	Error    *trace.NumericError
	Inherits bool
}

// Diverges reports whether the kernel's own error exceeds its tolerance. The kernel's own error is not known
// if the dispatch inherits an error and its reference is not finite. Diverges then returns false.
func (h *Comparison) Diverges() bool {
	follows := h.Inherits && math.IsNaN(0*float64(h.Error.Want))
	return h.Error.Tolerance != "" && !(h.Error.Share <= 1) && !follows
}

// Row is a row of the tree: a step, the dispatches that have the same place in several layers, or a single
// dispatch.
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

// Of returns the comparisons that were made in the selected steps. If no steps are selected, Of uses all
// steps of the run.
func Of(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*Tree, error) {
	steps := selection.Steps
	for i := range x.Trace.Steps {
		if len(selection.Steps) == 0 { // including cold steps, because they compute the same values
			steps = append(steps, i)
		}
	}
	g := &Tree{}
	odd := map[trace.ValueID]bool{} // values that depend on a dispatch that diverged
	for _, step := range steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		g.addStep(x, step, g.compare(x, step, odd))
	}
	return g, nil
}

// compare returns the comparisons of a step in order of submission. The set `odd` holds the values that
// depend on a dispatch that diverged; compare updates it for the values that each dispatch writes.
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
			passesOn = g.count(h) || passesOn // count is always called, even if h.Inherits is set
		}
		for _, v := range writes {
			state := x.Trace.Graph.Values[x.Root(v)].Role == trace.RoleState
			odd[x.Root(v)] = passesOn || state && odd[x.Root(v)]
		}
	}
	return list
}

// count adds a comparison to the totals of the tree and reports whether the comparison diverges.
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

// addStep adds the rows of a step. Dispatches that have the same place in their layers share one row, and
// each of them gets a child row below it.
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

// farther is a sort order of comparisons: the largest ratio of error to tolerance comes first. An error of
// NaN comes before all others.
func farther(a, b *Comparison) int {
	size := func(h *Comparison) float64 {
		if share := float64(h.Error.Share); !math.IsNaN(share) {
			return share
		}
		return math.Inf(1)
	}
	return cmp.Compare(size(b), size(a))
}
