package view

import (
	"fmt"
	"slices"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// costOfRows measures what each row that is shown costs.
func (p *DispatchPage) costOfRows() {
	parts, step := p.Parts(false)
	if len(parts) > trace.MaxCosts/2 {
		p.host.Remark(fmt.Sprintf(command.Keyed("%d rows are too many to skip one by one: group or filter them ({group by}, {filter})"),
			len(parts)))
		return
	}
	p.Ranked()
	p.ask(session.Cost, step, parts...)
}

// costOfMarked measures what the marked rows cost together.
func (p *DispatchPage) costOfMarked() {
	if parts, step, ok := p.markedParts(); ok {
		p.ask(session.Cost, step, analyze.Together(parts))
	}
}

// verifyRows compares the dispatches of the marked rows, or of the selected one, with their references.
func (p *DispatchPage) verifyRows() {
	if parts, step, ok := p.markedParts(); ok {
		p.ask(session.Verify, step, analyze.Together(parts))
	}
}

// verifyStep compares all dispatches of the step with the references, and with a reference run of the text.
func (p *DispatchPage) verifyStep() {
	_, step := p.Parts(true)
	p.ask(session.Verify, step)
}

// markedParts are the marked rows, or the selected one; it says so where the table has none of them.
func (p *DispatchPage) markedParts() (parts []trace.Part, step *trace.Step, ok bool) {
	if parts, step = p.Parts(true); len(parts) == 0 {
		p.host.Remark("the marked rows are not in this table")
	}
	return parts, step, len(parts) > 0
}

// ask sends a command about parts of a step.
func (p *DispatchPage) ask(kind session.CommandKind, step *trace.Step, parts ...trace.Part) {
	c := session.Command{Kind: kind, Parts: parts}
	if step.Index != p.now.State.Step {
		c.Step = &step.Index
	}
	p.host.Do(c)
}

// Parts are the rows that are shown, or the marked ones (the selected where none is marked), and the step
// that they are of.
func (p *DispatchPage) Parts(marked bool) ([]trace.Part, *trace.Step) {
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

// withHeadings are rows and the headings that they stand under in the graph, in its order: an order by a
// column shows no headings, and without them their costs would stay of fewer rounds. What a filter leaves of
// a heading is not what it stands for.
func (p *DispatchPage) withHeadings(t *report.DispatchTable, rows []int) []int {
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

// member says that a row is a member of one that is measured as a whole: what a member costs alone is too
// little to tell from noise. Members that a filter chose are what somebody asks for.
func (p *DispatchPage) member(t *report.DispatchTable, row int) bool {
	up := t.Grouped[row].Parent
	return up >= 0 && !t.Grouped[up].Group && (p.Rows.Shown == nil || p.Rows.Shown[up] == p.Rows.Leaves[up])
}

// Ranked shows first what there is most to save in, where nobody chose another order.
func (p *DispatchPage) Ranked() {
	if p.Rows.Wanted.Sort == "" && !p.Rows.Wanted.Reverse {
		p.Rows.SortBy(p.at().Index.CostOrder())
	}
}

// markedRows are the marked rows of what is shown.
func (p *DispatchPage) markedRows() (rows []int) {
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

// together says in a line what marked rows cost that were left out together, and what that is for.
func (p *DispatchPage) together() []table.Segment {
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
			Text: "(the most that fusing them can save)",
		})
	}
	return parts
}

// canCost says that costs can be measured now.
func (p *DispatchPage) canCost() bool {
	t := p.Table()
	return t != nil && p.now.Live && !p.now.Running && !t.Index.Trace.Device.None()
}

// measureOn says in a title where nothing stands out of the scatter what goes on until something does.
func (p *DispatchPage) measureOn(title []table.Segment) []table.Segment {
	t := p.Table()
	if !p.canCost() || t.Costs == nil || t.Uncosted() > 0 || !t.FewRounds() {
		return title
	}
	if at := slices.Index(title, t.Undecided()); at >= 0 {
		title[at].Text += command.Keyed(": {cost} keeps measuring")
		title[at].Short += command.Keyed(", {cost} keeps measuring")
	}
	return title
}

// uncosted says how the rows get a cost that have none, where they can get it.
func (p *DispatchPage) uncosted() table.Segment {
	t := p.Table()
	switch {
	case !p.canCost():
		return table.Segment{}
	case t.Costs == nil:
		return table.Segment{
			Rank: 1,
			Text: command.Keyed("{cost} measures what each row costs"), Short: command.Keyed("{cost} measures costs"),
		}
	case t.Uncosted() == 0:
		return table.Segment{}
	case t.Costed():
		return table.Segment{Rank: 1, Text: fmt.Sprintf(command.Keyed("{cost} measures the other %d"),
			t.Uncosted())}
	}
	return table.Segment{Rank: 3, Text: command.Keyed("{cost} measures them")}
}

// cannotCost says why rows cannot be left out now.
func (p *DispatchPage) cannotCost() string {
	if p.at().Step != p.now.Step {
		return "the rows of the step are still being computed"
	}
	return ""
}

// From roomy cells on there is room for all that a row says.
const Roomy = 200

// spare leaves out beside the detail what it says too, where there is no room for all: sums of times alone,
// where no costs stand beside them, and where rows have costs, which say more, of how many steps they are.
// What was not needed is of all dispatches of a row, and so is then the time that stands beside it, as it is
// beside a cost.
func (p *DispatchPage) spare(name string, screen int) bool {
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
	return name == "sum_us" && beside && !static && !t.Costed()
}

// guest says that what costs may be off by, which the detail has too, stands beside it where there is room.
func (p *DispatchPage) guest(name string, screen int) bool {
	return name == "cost_spread_us" && screen >= widget.SideWidth && screen < Roomy
}

// stays says that the sum of times alone stays beside costs, which are of all dispatches of a row as well,
// but where the detail has it.
func (p *DispatchPage) stays(name string) bool {
	t := p.Table()
	return t != nil && name == "sum_us" && t.Costed() && p.Rows.Screen < widget.SideWidth
}
