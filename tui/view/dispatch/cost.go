package dispatch

import (
	"fmt"
	"slices"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// costOfRows measures the cost of each visible row.
func (p *Page) costOfRows() {
	parts, step := p.Parts(false)
	if len(parts) > trace.MaxCosts/2 {
		p.host.Remark(fmt.Sprintf(command.Keyed("%d rows are too many to measure one by one: group or filter the rows ({group by}, {filter})"),
			len(parts)))
		return
	}
	p.Ranked()
	p.ask(session.Cost, step, parts...)
}

// costOfMarked measures the cost of all marked rows together.
func (p *Page) costOfMarked() {
	if parts, step, ok := p.markedParts(); ok {
		p.ask(session.Cost, step, analyze.Together(parts))
	}
}

func (p *Page) verifyRows() {
	if parts, step, ok := p.markedParts(); ok {
		p.ask(session.Verify, step, analyze.Together(parts))
	}
}

// verifyStep compares each dispatch of the step with its reference, and the outputs of the step with a
// reference run of the whole text.
func (p *Page) verifyStep() {
	_, step := p.Parts(true)
	p.ask(session.Verify, step)
}

// markedParts returns the marked rows or, if no row is marked, the selected row. If the marked rows are not
// in the table, it tells the user and returns false.
func (p *Page) markedParts() (parts []trace.Part, step *trace.Step, ok bool) {
	if parts, step = p.Parts(true); len(parts) == 0 {
		p.host.Remark("the marked rows are not in this table")
	}
	return parts, step, len(parts) > 0
}

// ask sends the session a command about parts of a step.
func (p *Page) ask(kind session.CommandKind, step *trace.Step, parts ...trace.Part) {
	view.Measure(p.host, p.now, kind, step, parts)
}

// Parts returns the visible rows and the step they belong to. If `marked` is set, it returns only the marked
// rows, or the selected row if none is marked.
func (p *Page) Parts(marked bool) ([]trace.Part, *trace.Step) {
	t := p.Table()
	step := &t.Index.Trace.Steps[t.Selection.Last()]
	if !marked {
		rows := slices.DeleteFunc(p.withHeadings(t, p.Rows.Rows), func(r int) bool { return p.member(t, r) })
		return t.CostParts(rows), step
	}
	rows := p.markedRows()
	if r := p.Rows.Current(); len(rows) == 0 && len(p.Rows.Marked) == 0 && r >= 0 {
		rows = []int{r}
	}
	return t.Parts(rows), step
}

// withHeadings returns `rows` and the headings of their groups, in the order of the graph. It includes
// headings that the table does not show because it is sorted, so that their costs are measured, too. If a
// filter is active, withHeadings adds no headings, because a filter hides some rows of a group.
func (p *Page) withHeadings(t *report.DispatchTable, rows []int) []int {
	all := slices.Clone(rows)
	if p.Rows.Shown == nil {
		for _, r := range rows {
			for up := t.Grouped[r].Parent; up >= 0 && t.Grouped[up].Group; up = t.Grouped[up].Parent {
				all = append(all, up)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// member reports whether a row is not measured on its own, because its parent row is measured as a whole. The
// cost of a single member is usually too small to distinguish from noise. A row that a filter selected is
// measured, because the user asked for this row.
func (p *Page) member(t *report.DispatchTable, row int) bool {
	up := t.Grouped[row].Parent
	return up >= 0 && !t.Grouped[up].Group && (p.Rows.Shown == nil || p.Rows.Shown[up] == p.Rows.Leaves[up])
}

// Ranked sorts the rows with the largest potential saving first, unless the user chose another order.
func (p *Page) Ranked() {
	if p.Rows.Wanted.Sort == "" && !p.Rows.Wanted.Reverse {
		p.Rows.SortBy(p.Snapshot().Index.CostOrder())
	}
}

// class divides the rows of a table that is sorted by costs into classes, such as "cost above the noise". It
// returns the class of a row, and in `dim` whether the cost of the row is within the noise. A row inside
// another row belongs to the class of that row.
func (p *Page) class(row int) (name string, dim bool) {
	t, rows := p.Table(), p.Rows.Listing.Table.Rows
	if t == nil || !slices.Contains([]string{"cost_us", "save_us", "twice_per_s"}, p.Rows.Choice.Sort) {
		return "", false
	}
	for rows[row].Parent >= 0 {
		row = rows[row].Parent
	}
	switch c := t.Grouped[row].Cost; {
	case !c.Known():
		return "cost not known, by isolated time", false
	case c.IsZero():
		return "cost within the noise, by isolated time", true
	case c.NS < 0:
		return "the step is faster with the row", false
	}
	return "cost above the noise", false
}

// markedRows returns the marked rows of the shown table.
func (p *Page) markedRows() (rows []int) {
	t := p.Table()
	if t == nil {
		return nil
	}
	for i := range t.Grouped {
		if p.Rows.Marked[t.Grouped[i].Key] {
			rows = append(rows, i)
		}
	}
	return rows
}

// together returns a title segment with the time that the step saves if all marked rows are skipped at once.
// If this time is significant, a second segment says that fusing the rows can save at most this time.
// together returns nil if fewer than two rows are marked or if this time was not measured.
func (p *Page) together() []table.Segment {
	t := p.Table()
	if t == nil || t.Costs == nil {
		return nil
	}
	marked := t.Parts(p.markedRows())
	if len(marked) < 2 {
		return nil
	}
	all := analyze.Together(marked)
	c := t.CostOf(all)
	if c == nil {
		return nil
	}
	parts := []table.Segment{{
		Rank: 0, Text: fmt.Sprintf("%s together cost %s", widget.Plural(len(marked), "marked row"),
			c.CostText()),
		Short: "together " + c.Short(),
	}}
	if c.Significant() {
		parts = append(parts, table.Segment{
			Rank: 3, With: true,
			Text: "(fusing them can save at most this)",
		})
	}
	return parts
}

// canCost reports whether costs can be measured now.
func (p *Page) canCost() bool {
	t := p.Table()
	return t != nil && p.now.Live && !p.now.Running && !t.Index.Trace.Device.None()
}

// measureOn adds a hint to the title if no cost exceeds the noise yet: more rounds are needed.
func (p *Page) measureOn(title []table.Segment) []table.Segment {
	t := p.Table()
	if !p.canCost() || t.Costs == nil || t.Uncosted() > 0 || !t.FewRounds() {
		return title
	}
	if at := slices.Index(title, t.Undecided()); at >= 0 {
		title[at].Text += command.Keyed("; press {cost} to measure more rounds")
		title[at].Short += command.Keyed(", {cost}: measure more")
	}
	return title
}

// uncosted returns a hint on how to measure the rows without a cost, if costs can be measured now.
func (p *Page) uncosted() table.Segment {
	t := p.Table()
	switch {
	case !p.canCost(), t.Costs == nil, t.Uncosted() == 0:
		return table.Segment{}
	case t.Costed():
		return table.Segment{Rank: 1, Text: fmt.Sprintf(command.Keyed("{cost} measures the remaining %s"),
			table.Plural(t.Uncosted(), "row"))}
	}
	return table.Segment{Rank: 3, Text: command.Keyed("{cost} measures costs")}
}

// cannotCost returns the reason that the costs of rows cannot be measured now, or "" if they can.
func (p *Page) cannotCost() string {
	if p.Snapshot().Step != p.now.Step {
		return "the rows of the step are still being computed"
	}
	return ""
}

// Roomy is the screen width, in cells, from which every column fits.
const Roomy = 200

// spare reports whether to hide a column on a screen without room for all columns. The detail shows what is
// hidden. Without costs, spare hides the sum of isolated times. With costs, it hides the number of steps. In
// a run with static grids, it hides the time of a single dispatch instead of the sum of isolated times.
func (p *Page) spare(name string, screen int) bool {
	t := p.Table()
	if t == nil || screen >= Roomy {
		return false
	}
	beside, static := screen >= widget.SideWidth, t.Index.Static()
	switch name {
	case "us":
		return static
	case "n":
		return beside && t.ByCost()
	}
	return name == "sum_us" && beside && !static && !t.Costed() && !t.Baseline.Chosen()
}

// guest reports whether to show a column only if all other columns fit, too. On a wide screen, this applies
// to the error of the costs, which the detail shows too.
func (p *Page) guest(name string, screen int) bool {
	return name == "cost_spread_us" && screen >= widget.SideWidth && screen < Roomy
}

// stays reports whether to keep a column as long as possible. It keeps the sum of isolated times if the user
// chose a baseline. It also keeps this sum beside costs on a narrow screen, because both cover all dispatches
// of a row. On a wide screen, the detail shows this sum.
func (p *Page) stays(name string) bool {
	t := p.Table()
	return t != nil && name == "sum_us" &&
		(t.Baseline.Chosen() || t.Costed() && p.Rows.Screen < widget.SideWidth)
}
