// Package expertload describes in words and bars how routers divided tokens among experts.
package expertload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gpuscope/internal/cells"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/experts"
	"gpuscope/trace/table"
)

// Strip draws how many tokens each expert got, as a row of at most `most` bars. The busiest expert has the
// highest bar. If there are more experts than bars, a bar stands for several experts and shows the busiest of
// them. A dot stands for experts without tokens.
func Strip(tokens []float64, most int) string {
	if len(tokens) == 0 {
		return ""
	}
	highest := slices.Max(tokens)
	bars := []rune("▁▂▃▄▅▆▇█")
	var out []rune
	for several := range slices.Chunk(tokens, (len(tokens)+most-1)/most) {
		n := slices.Max(several)
		if n <= 0 {
			out = append(out, '·')
			continue
		}
		out = append(out, bars[min(len(bars)-1, int(n/highest*float64(len(bars))))])
	}
	return string(out)
}

// Loads finds the router and the tile counts of a dispatch. It computes them at the first call, and
// only if a dispatch depends on a router.
type Loads struct {
	once   sync.Once
	byID   map[trace.DispatchID]Load
	index  *analyze.Index
	chosen analyze.Selection
}

// Load is the load of a dispatch: its router, and the tiles that it needed.
type Load struct {
	*experts.Router
	tiles *experts.Dispatch
}

// New returns the loads of the dispatches of a selection.
func New(x *analyze.Index, selection analyze.Selection) *Loads {
	return &Loads{index: x, chosen: selection}
}

// Of returns the load of the dispatch that has plan p. `ok` is false if the work of this dispatch does not
// depend on a router.
func (e *Loads) Of(p *trace.Plan) (load Load, ok bool) {
	if p == nil || p.Experts.Rows == 0 {
		return Load{}, false
	}
	e.once.Do(func() {
		e.byID = map[trace.DispatchID]Load{}
		routers, _ := experts.Of(context.Background(), e.index, e.chosen)
		for _, r := range routers {
			for i := range r.Dispatches {
				e.byID[r.Dispatches[i].ID] = Load{r, &r.Dispatches[i]}
			}
		}
	})
	load, ok = e.byID[p.Dispatch]
	return load, ok
}

// Lines describes how a router divided the work of a dispatch in a step. p is the plan of the dispatch.
func Lines(x *analyze.Index, step int, p *trace.Plan) []string {
	load, ok := New(x, x.Step(step)).Of(p)
	if !ok {
		return nil
	}
	r, tiles, about := load.Router, load.tiles, ""
	if r.Modelled {
		about = "~"
	}
	first := fmt.Sprintf("%s%.0f of %d experts active, chosen by %s", about, r.Active, r.Experts, r.Op.Name)
	if r.Modelled {
		first += " (modelled: all experts chosen equally often)"
	}
	lines := []string{first}
	if e, n := r.Busiest(); e >= 0 {
		lines = append(lines, fmt.Sprintf("busiest #%d with %s, %.1f× the mean", e,
			table.Plural(int64(n), "token"), r.Largest), Strip(r.Tokens, 64))
	}
	all := tiles.Filled + tiles.Padded
	if tiles.Rows > 1 && all > 0 {
		pad := fmt.Sprintf("tiles of %d rows of one expert: %s%s of %s rows are padding (%.0f%%)",
			tiles.Rows, about, table.Integer(int64(tiles.Padded+0.5)), table.Integer(int64(all+0.5)),
			100*tiles.Padded/all)
		if tiles.Timed > 0 {
			pad += fmt.Sprintf(", ~%s of %s µs", table.Micros(tiles.PaddedNS/1e3, 1),
				table.Micros(tiles.NS/1e3, 1))
		}
		lines = append(lines, pad)
	}
	return append(lines, fmt.Sprintf("%s%s of %s exit at once: the grid is large enough for any choice of experts", about,
		table.Integer(int64(tiles.Idle+0.5)), table.Plural(tiles.Launched, "workgroup")))
}

// Strips draws how the most unbalanced routers divided their tokens, with at most `most` lines in the order
// of the layers. A line has at most `width` cells: the tokens of the router's experts as bars, and how
// unbalanced they are. Strips leaves out routers that saw only a part of the tokens, as in the last layer,
// which computes only the last token.
func Strips(routers []*experts.Router, most, width int) (lines []string) {
	all := 0.0
	for _, r := range routers {
		all = max(all, r.Pairs())
	}
	chosen := slices.DeleteFunc(slices.Clone(routers), func(r *experts.Router) bool {
		return r.Modelled || r.Steps == 0 || r.Pairs() < all
	})
	slices.SortStableFunc(chosen, func(a, b *experts.Router) int { return cmp.Compare(b.Largest, a.Largest) })
	chosen = chosen[:min(most, len(chosen))]
	slices.SortFunc(chosen, func(a, b *experts.Router) int { return cmp.Compare(a.ID, b.ID) })
	heads, texts := make([]string, len(chosen)), make([]string, len(chosen))
	head, text := 0, 0 // largest widths of heads and texts
	for i, r := range chosen {
		name := r.Op.Name
		if r.Op.Layer != nil {
			name = analyze.LayerName(*r.Op.Layer)
		}
		e, n := r.Busiest()
		heads[i] = name + " experts "
		texts[i] = fmt.Sprintf(" %.0f of %d active, most %s: #%d", r.Active, r.Experts,
			table.Plural(int64(n), "token"), e)
		if d := r.Total(); d.Padded > 0 {
			texts[i] += fmt.Sprintf(", padding %.0f%%", 100*d.Padded/(d.Padded+d.Filled))
		}
		head, text = max(head, cells.Width(heads[i])), max(text, cells.Width(texts[i]))
	}
	room := width - head - text
	if room < 8 {
		room, texts = width-head, make([]string, len(chosen))
	}
	for i, r := range chosen {
		pad := strings.Repeat(" ", head-cells.Width(heads[i]))
		lines = append(lines, heads[i]+pad+Strip(r.Tokens, max(1, min(room, 64)))+texts[i])
	}
	return lines
}

// Waste sums up the padding and the idle workgroups of the dispatches with these plans, in words. It returns
// "" if there are neither, or if no dispatch depends on a router.
func (e *Loads) Waste(plans []*trace.Plan) string {
	var sum experts.Dispatch
	about := ""
	for _, p := range plans {
		load, ok := e.Of(p)
		if !ok {
			continue
		}
		sum.Filled, sum.Padded = sum.Filled+load.tiles.Filled, sum.Padded+load.tiles.Padded
		sum.Launched, sum.Idle = sum.Launched+load.tiles.Launched, sum.Idle+load.tiles.Idle
		if load.Modelled {
			about = "~"
		}
	}
	all := sum.Filled + sum.Padded
	if all == 0 || sum.Padded == 0 && sum.Idle == 0 {
		return ""
	}
	return fmt.Sprintf("experts: %s%.0f%% of the rows of tiles are padding, %s%.0f%% of the workgroups exit at once",
		about, 100*sum.Padded/all, about, 100*sum.Idle/float64(max(1, sum.Launched)))
}
