// Package dispatch is the view Dispatches: a table of what ran, with grids, times and costs.
package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/view/rowchart"
	"gpuscope/tui/view/rowtext"
	"gpuscope/tui/widget"
)

// Page is view 2. It shows which dispatches ran, with which grid, how long they took, what
// changed, and what to fix first.
type Page struct {
	view.ListPage
	host  view.Host
	fold  analyze.Grouping
	now   view.Snapshot
	first view.AnswerTask
	chart rowchart.Pane
}

// New returns the view Dispatches.
func New(h view.Host) *Page {
	p := &Page{ListPage: view.ListOf("dispatches"), host: h}
	p.Rows.SortKeys = sortKeys(false)
	p.Rows.GiveUp, p.Rows.Soft = []string{"sum_us", "id", "grid"}, "kernel"
	p.Rows.Keep = []string{"spark", "limit", "layers", "sum_us", "gap_db"}
	p.Rows.Spare, p.Rows.Guest, p.Rows.Stays = p.spare, p.guest, p.stays
	p.Rows.Margin, p.Rows.KinOf, p.Rows.Class = p.joined, firstDispatch, p.class
	return p
}

// sortKeys reserves letters for the columns that users sort by most. `compared` means that the user chose a
// baseline. The letter d then sorts by the difference in time, else by the changes of plans.
func sortKeys(compared bool) []widget.SortKey {
	delta := "delta"
	if compared {
		delta = "delta_us"
	}
	return []widget.SortKey{
		{Letter: "s", Column: "save_us"},
		{Letter: "c", Column: "cost_us"},
		{Letter: "l", Column: "lost_us"},
		{Letter: "u", Column: "us"},
		{Letter: "m", Column: "sum_us"},
		{Letter: "d", Column: delta},
		{Letter: "h", Column: "share"},
	}
}

// Table returns the shown table, or nil if it is not ready yet.
func (p *Page) Table() *report.DispatchTable {
	if p.Rows.Table == nil {
		return nil
	}
	t, _ := p.Rows.Table.From.(*report.DispatchTable)
	return t
}

// joined returns the bracket in front of a row. The bracket connects adjacent rows whose dispatches run
// without a barrier between them.
func (p *Page) joined(i int) string {
	t := p.Table()
	if t == nil || p.Rows.Choice.Sort != "" || p.Rows.Choice.Reverse {
		return " "
	}
	rows := p.Rows.Rows
	with := func(i int) bool { return 0 < i && i < len(rows) && t.AtOnce(rows[i-1], rows[i]) }
	before, after := with(i), with(i+1)
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

func (p *Page) Load(j *widget.Jobs, s view.Snapshot, _ int) {
	p.now, p.Rows.SortKeys = s, sortKeys(s.Against.Chosen())
	p.Want(j, s, p.fold)
	view.WantAnswer(&p.first, j, s, p.Takes())
	if t := p.Table(); t != nil {
		p.chart.Load(j, &p.Rows, t.Index, t.Selection, func(row int) rowchart.Row { return charted(t, row) })
	}
}

// charted returns what the chart below the list needs to know about a row.
func charted(t *report.DispatchTable, row int) rowchart.Row {
	r := &t.Grouped[row]
	c := rowchart.Row{Name: r.Label, Each: r.Each}
	for _, unit := range r.Units {
		ids := make([]trace.DispatchID, len(unit))
		for k, i := range unit {
			ids[k] = t.Launches[i].ID
		}
		c.Units = append(c.Units, ids)
	}
	return c
}

// firstDispatch identifies a row by its first dispatch, so that the row is found again after the grouping has
// changed.
func firstDispatch(t *table.Table, row int) any {
	d, ok := t.From.(*report.DispatchTable)
	if !ok {
		return nil
	}
	return d.Launch(&d.Grouped[row]).ID
}

func (p *Page) Actions() []command.Action {
	return append(p.ListPage.Actions(), []command.Action{
		{Name: "group by", Run: p.refold},
		{Name: "why", Run: func() {
			t, explains := p.why()
			view.Explain(p.host, &p.Rows, t, explains)
		}},
		{Name: "cost", Off: p.cannotCost, Run: p.costOfRows},
		{Name: "cost of marked", Off: p.cannotCost, Run: p.costOfMarked},
		{Name: "verify", Off: p.cannotCost, Run: p.verifyRows},
		{Name: "verify step", Off: p.cannotCost, Run: p.verifyStep},
		{Name: "mark row", Run: p.Rows.Mark},
		{Name: "WGSL"},
		{Name: "use kernel"},
		{Name: "variants"},
	}...)
}

func (p *Page) Detailed() bool { return true }

func (p *Page) Look() any { return p.fold }

func (p *Page) Restore(s any) { p.fold = s.(analyze.Grouping) }

func (p *Page) refold() { p.fold = (p.fold + 1) % (analyze.GroupNone + 1) }

// About returns the summary line of the selected steps. It returns false while the table covers other steps.
func (p *Page) About(s view.Snapshot) (table.Line, bool) {
	t := p.Rows.Table
	if t != nil && len(t.Title) > 1 && p.Snapshot().Named(p.Takes()) == s.Named(p.Takes()) {
		return t.Title[0], true
	}
	return table.Line{}, true
}

func (p *Page) Title(w int) []table.Segment {
	t := p.Rows.Table
	if t == nil || len(t.Title) == 0 {
		return []table.Segment{{Rank: 0, Text: "Dispatches"}}
	}
	said := t.Title[len(t.Title)-1].Segments
	if p.first.Value.Costed() {
		said = view.WithoutFirst(p.Table(), said)
	}
	first := min(2, len(said))
	own := append([]table.Segment{p.edited(), p.uncosted()}, p.Rows.Own(w)...)
	return p.measureOn(slices.Concat(said[:first], p.together(), own, said[first:], p.Rows.Alike(w)))
}

func (p *Page) Render(t *widget.Theme, g widget.Glyphs, w, h int, focused bool) []string {
	var lines []string
	if first := p.first.Value.Draw(t, p.now, w); first != "" && h > 8 {
		lines = append(lines, first)
	}
	p.Rows.Line = len(lines)
	lines = append(lines, p.Draw(t, w, h-len(lines), focused, "The step has no dispatches.")...)
	for _, n := range p.Rows.Notes {
		broken := widget.WrapUnder("   "+n, w, 3, 5)
		if len(lines)+len(broken) > h {
			break // a truncated note could be misleading
		}
		for _, l := range broken {
			lines = append(lines, t.Put(widget.Dim, l))
		}
	}
	if p.Rows.Screen >= widget.SideWidth {
		lines = append(lines, p.chart.Draw(t, g, w, h-len(lines))...)
	}
	return lines
}

// Launch returns the first launch of the selected row.
func (p *Page) Launch() *analyze.Launch {
	t, r := p.Table(), p.Rows.Current()
	if t == nil || r < 0 {
		return nil
	}
	return t.Launch(&t.Grouped[r])
}

// Detail describes all dispatches of the row, and then its first dispatch.
func (p *Page) Detail() *view.Detail {
	t, r, s := p.Table(), p.Rows.Current(), p.Snapshot()
	if t == nil || r < 0 {
		return &view.Detail{}
	}
	title := timesOf(t.Grouped[r].Label, len(t.Grouped[r].Units))
	if up := t.Rows[r].Parent; up >= 0 && !t.Grouped[up].Group {
		title += " of " + timesOf(t.Grouped[up].Label, len(t.Grouped[up].Units))
	}
	canCost := p.canCost()
	return &view.Detail{
		Of: p.Rows.Key + t.Grouping.String(), Title: title,
		Lines: func(ctx context.Context) ([]string, error) {
			row := &t.Grouped[r]
			var lines []string
			if row.Count() > 1 || rowtext.OfSteps(t, row) {
				lines = append(lines, rowtext.Several(t, r)...)
			}
			if cost := t.CostLine(row); cost != "" {
				switch {
				case canCost && row.Other != nil:
					cost += command.Keyed(" · press {cost} to measure the cost")
				case canCost && row.Cost.Few():
					cost += command.Keyed(" · press {cost} to keep measuring")
				}
				lines = append(lines, cost)
				if shared := t.SharedLine(); shared != "" {
					lines = append(lines, shared)
				}
			}
			if joint := t.JointLine(r); joint != "" {
				lines = append(lines, joint)
			}
			if row.Group {
				return append(lines, t.NotesOf(r)...), nil
			}
			l, x := t.Launch(row), s.Index
			if of := rowtext.FirstOfAll(t, row); of != "" { // the lines above cover all dispatches of the row
				lines = append(lines, of)
			}
			if row.Gone() {
				x = t.Baseline.Index
				said := "This dispatch did not run in this step. In s%d:"
				if row.Count() > 1 {
					said = "The first of these dispatches, in s%d:"
				}
				lines = append(lines, fmt.Sprintf(said, x.Trace.Steps[l.Step].Index))
			}
			d, err := x.Detail(ctx, l.Step, l.ID, s.LastOfBase())
			if d != nil {
				if t.CostKnown(row) {
					d.Limit.ExcessNS = 0 // the cost line already shows what could be saved
				}
				lines = append(lines, report.DetailLines(d)...)
				if d.Time.N == 1 && s.Live && row.Count() == 1 {
					lines = append(lines, command.Keyed("Only 1 sample: press {repeat} for more"))
				}
			}
			return lines, err
		},
	}
}

// timesOf returns the name of a group of n things: "attn.q ×16", or "attn.q" if n is 1.
func timesOf(name string, n int) string {
	if n > 1 {
		name = fmt.Sprintf("%s ×%d", name, n)
	}
	return name
}

func (p *Page) why() (view.Text, bool) {
	l := p.Launch()
	if l == nil {
		id, _, step, asked := p.Elsewhere()
		if !asked {
			return view.Text{}, false
		}
		return view.WhyAt(p.Snapshot().Index, step, id, "", false), true
	}
	t, s := p.Table(), p.Snapshot()
	row := &t.Grouped[p.Rows.Current()]
	of := view.FirstOf(row.Count())
	if (row.Group || !row.Equal) && row.Count() > 1 { // the dispatches of the row differ from each other
		of = fmt.Sprintf(", the first of the %d dispatches in %s", row.Count(), row.Label)
	}
	if !row.Gone() {
		return view.WhyAt(s.Index, l.Step, l.ID, of, false), true
	}
	// Explain with the trace of this run why the dispatch did not run in this step. If only the model of
	// the baseline has the dispatch, use the baseline's trace.
	id, here := s.Index.Called(t.Baseline.Index.Name(l.ID))
	if !here {
		return view.WhyAt(t.Baseline.Index, l.Step, l.ID, of+", in the baseline", false), true
	}
	return view.WhyDispatch(s, id, of), true
}

// edited returns the title segment with the names of the edited kernels in use.
func (p *Page) edited() table.Segment {
	names := p.now.State.Edited
	if len(names) == 0 {
		return table.Segment{}
	}
	short := table.Plural(len(names), "kernel") + " edited"
	return table.Segment{Rank: 1, Text: "edited: " + strings.Join(names, ", "), Short: short}
}
