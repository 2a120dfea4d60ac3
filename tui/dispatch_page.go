package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
)

// dispatchPage is view 2: what ran, with which grid, how long, what to fix first, what changed.
type dispatchPage struct {
	rows   tablePane
	fold   inspect.Fold
	s      snapshot
	loaded loadedFor
	table  *inspect.DispatchTable
}

// loadedFor is what a table was computed for; it is computed anew when one of these is another.
type loadedFor struct {
	version, step, base int
	fold                inspect.Fold
}

func newDispatchPage() *dispatchPage {
	p := &dispatchPage{loaded: loadedFor{step: -2}, rows: tablePane{
		sortFirst: []string{"lost_us", "sum_us", "us", "delta"}, giveUp: []string{"id", "sum_us", "grid"},
	}}
	p.rows.margin = p.joined
	return p
}

// joined draws a bracket before rows whose dispatches run side by side: no barrier stands between them.
func (p *dispatchPage) joined(i int) string {
	if p.rows.choice.Sort != "" || p.rows.choice.Reverse {
		return " "
	}
	level := func(i int) int {
		if i < 0 || i >= len(p.rows.rows) {
			return -1
		}
		row := &p.table.Folded[p.rows.rows[i]]
		if row.Group || row.Children && p.fold != inspect.FoldLayer {
			return -1
		}
		return p.table.Launch(row).Level
	}
	here := level(i)
	before, after := here >= 0 && level(i-1) == here, here >= 0 && level(i+1) == here
	switch {
	case before && after:
		return "├"
	case before:
		return "└"
	case after:
		return "┌"
	}
	return " "
}

func (p *dispatchPage) name() string { return "Dispatches" }

func (p *dispatchPage) pane() *tablePane { return &p.rows }

func (p *dispatchPage) load(s snapshot) {
	want := loadedFor{s.version, s.step, s.base, p.fold}
	if want == p.loaded {
		return
	}
	p.s, p.loaded, p.table = s, want, nil
	if s.step < 0 || s.trace == nil {
		p.rows.load(nil)
		return
	}
	// Without a way to cancel there is no error.
	p.table, _ = s.index.Dispatches(context.Background(),
		inspect.Options{Scope: s.index.Step(s.step), Fold: p.fold, Base: p.base()})
	p.rows.load(p.table.Table)
}

func (p *dispatchPage) title(w int) []table.Part {
	if p.table == nil {
		return []table.Part{{Rank: 0, Text: "Dispatches"}}
	}
	// The cost of the step has a line of its own on the screen; this is the other.
	said := p.table.Title[len(p.table.Title)-1].Parts
	return slices.Concat(said[:2], p.rows.own(), said[2:], p.rows.alike(w))
}

func (p *dispatchPage) render(t *theme, _ glyphs, w, h int, focused bool) []string {
	empty := "No step was run yet. Press i and type a prompt."
	switch {
	case p.rows.filter != "" && p.table != nil:
		empty = "No row matches the filter. Esc clears it."
	case p.s.step >= 0:
		empty = "The step has no dispatches."
	}
	lines := p.rows.render(t, w, h, focused, empty)
	if p.table != nil {
		for _, n := range p.table.Notes {
			if len(lines) < h {
				lines = append(lines, t.put(dim, cut("   "+printable.Clean(n), w)))
			}
		}
	}
	return lines
}

func (p *dispatchPage) move(m motion) { p.rows.move(m) }

func (p *dispatchPage) filtered() string { return p.rows.filter }

func (p *dispatchPage) setFilter(s string) { p.rows.setFilter(s) }

// selected is the dispatch of the selected row, of a fold its first.
func (p *dispatchPage) selected() (trace.DispatchID, bool) {
	r := p.rows.current()
	if p.table == nil || r < 0 {
		return 0, false
	}
	return p.table.Launch(&p.table.Folded[r]).ID, true
}

func (p *dispatchPage) about() string { return p.rows.key + p.fold.String() }

// detail is what is known of the dispatch, under what the row says of all that it stands for.
func (p *dispatchPage) detail(w int) []string {
	r := p.rows.current()
	if p.table == nil || r < 0 {
		return nil
	}
	row := &p.table.Folded[r]
	var lines []string
	if row.Count() > 1 {
		lines = append(lines, wrapText(p.several(r), w)...)
	}
	if row.Group {
		for _, n := range p.table.Notes {
			lines = append(lines, wrapText(n, w)...)
		}
		return lines
	}
	d, _ := p.s.index.Detail(context.Background(), p.s.step, p.table.Launch(row).ID, p.base())
	if d == nil {
		return lines
	}
	for _, l := range d.Lines() {
		lines = append(lines, wrapText(l, w)...)
	}
	return lines
}

// several says what a row that stands for more than one dispatch adds up to.
func (p *dispatchPage) several(r int) string {
	row, t := &p.table.Folded[r], p.table
	cell := func(name string) string { return t.Cell(r, t.Column(name)).Text }
	parts := []string{fmt.Sprintf("%s: %s", row.Label, plural(row.Count(), "dispatch"))}
	if us := cell("us"); us != "" && len(row.Units) > 1 {
		parts = append(parts, fmt.Sprintf("median of %d %s µs", len(row.Units), us))
		if spread := cell("layers"); spread != "" {
			parts[1] += " (" + spread + ")"
		}
	}
	if !row.Summed {
		parts = append(parts[:1], "not all were timed")
	} else {
		parts = append(parts, "Σ "+cell("sum_us")+" µs")
	}
	if lost := cell("lost_us"); lost != "" {
		parts = append(parts, "~"+lost+" µs lost")
	}
	switch {
	case row.Outlier >= 0:
		parts = append(parts, "outlier "+p.s.index.Name(p.table.Launches[row.Units[row.Outlier][0]].ID))
	case row.Judged:
		parts = append(parts, "no outlier")
	}
	if !row.Group {
		parts = append(parts, "below: "+p.s.index.Name(p.table.Launch(row).ID))
	}
	return strings.Join(parts, " · ")
}

func (p *dispatchPage) base() *inspect.Base {
	if p.s.base < 0 {
		return nil
	}
	return &inspect.Base{Index: p.s.index, Scope: p.s.index.Step(p.s.base)}
}

func (p *dispatchPage) why() (title string, lines []string) {
	if id, ok := p.selected(); ok {
		return whyDispatch(p.s, id)
	}
	return "", nil
}

// nextFold folds the rows another way.
func (a *App) nextFold() {
	if p, ok := a.views[a.current].(*dispatchPage); ok {
		p.fold = (p.fold + 1) % (inspect.FoldNone + 1)
	}
}

func (p *dispatchPage) source() (title, text string) {
	r := p.rows.current()
	if p.table == nil || r < 0 {
		return "", ""
	}
	l := p.table.Launch(&p.table.Folded[r])
	if l.Kernel == nil {
		return l.Plan.Kernel, ""
	}
	return l.Plan.Kernel, l.Kernel.Source
}
