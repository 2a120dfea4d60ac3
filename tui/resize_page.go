package tui

import "gpuscope/trace"

// resizePage is view 3: which change woke which operator, pass by pass.
type resizePage struct {
	rows   tablePane
	s      snapshot
	loaded loadedFor
}

func newResizePage() *resizePage { return &resizePage{loaded: loadedFor{step: -2}} }

func (p *resizePage) name() string { return "Resize" }

func (p *resizePage) pane() *tablePane { return &p.rows }

func (p *resizePage) load(s snapshot) {
	want := loadedFor{s.version, s.step, s.base, 0}
	if want == p.loaded {
		return
	}
	p.s, p.loaded = s, want
}

func (p *resizePage) title(w int) []part { return []part{{0, "Resize"}} }

func (p *resizePage) render(t *theme, _ glyphs, w, h int, focused bool) []string {
	return p.rows.render(t, w, h, focused, "No step was run yet. Press i and type a prompt.")
}

func (p *resizePage) move(m motion) { p.rows.move(m) }

func (p *resizePage) filtered() string { return p.rows.filter }

func (p *resizePage) setFilter(s string) { p.rows.setFilter(s) }

func (p *resizePage) selected() (trace.DispatchID, bool) { return 0, false }
