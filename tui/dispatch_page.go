package tui

import (
	"fmt"
	"strings"

	"gpuscope/trace"
)

// dispatchPage is view 2: what ran, with which grid, how long, what to fix first, what changed.
type dispatchPage struct {
	rows   tablePane
	fold   trace.Fold
	s      snapshot
	loaded loadedFor
	table  *trace.DispatchTable
}

// loadedFor is what a table was computed for; it is computed anew when one of these is another.
type loadedFor struct {
	version, step, base int
	fold                trace.Fold
}

func newDispatchPage() *dispatchPage { return &dispatchPage{loaded: loadedFor{step: -2}} }

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
	o := trace.DispatchOptions{Fold: p.fold}
	if s.base >= 0 {
		o.Base = &trace.Base{Index: s.index, Step: s.base}
	}
	p.table = s.index.Dispatches(s.step, o)
	p.rows.load(p.table.Table())
}

func (p *dispatchPage) title(w int) []string {
	if p.table == nil {
		return []string{"Dispatches"}
	}
	t := p.table.Table()
	parts := strings.Split(t.Title[len(t.Title)-1], " · ")
	// What is fixed by the person comes right after the count, what is compared last.
	head := parts[:2]
	tail := parts[2:]
	out := append([]string{}, head...)
	if f := p.rows.shown(); f != "" {
		out = append(out, f)
	}
	out = append(out, "order "+p.rows.order())
	if s := p.rows.same(w); s != "" {
		out = append(out, "all rows "+s)
	}
	return append(out, tail...)
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
		for _, n := range p.table.Table().Notes {
			if len(lines) < h {
				lines = append(lines, t.put(dim, cut("   "+n, w)))
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
	return p.table.Launch(&p.table.Rows[r]).ID, true
}

func (p *dispatchPage) about() string { return p.rows.key + p.fold.String() }

func (p *dispatchPage) detail(w int) []string {
	return []string{fmt.Sprint("detail ", p.rows.key)}
}

// nextFold folds the rows another way.
func (a *App) nextFold() {
	if p, ok := a.views[a.current].(*dispatchPage); ok {
		p.fold = (p.fold + 1) % (trace.FoldNone + 1)
	}
}

func (p *dispatchPage) source() (title, text string) {
	r := p.rows.current()
	if p.table == nil || r < 0 {
		return "", ""
	}
	l := p.table.Launch(&p.table.Rows[r])
	if l.Kernel == nil {
		return l.Plan.Kernel, ""
	}
	return l.Plan.Kernel, l.Kernel.Source
}
