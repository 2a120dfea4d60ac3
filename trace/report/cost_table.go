package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/table"
)

func init() {
	Register(Table{
		Name: "cost", Takes: WholeRun,
		Doc: "cost of each part of a step, as last measured, sorted by potential saving; no dispatch is in two parts",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return CostTable(ctx, x, o.Selection)
		},
	})
	Register(Table{
		Name: "cost-groups", Takes: WholeRun,
		Doc: "cost of groups of parts, as last measured: layers, blocks, kernels and dispatches that run at once, which overlap each other",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return CostGroups(ctx, x, o.Selection)
		},
	})
}

// CostTable returns the costs of the last selected step that has costs. No dispatch is in two of its rows. An
// empty selection means the whole run. If no step has costs, the table shows isolated times of the last step
// that has these.
func CostTable(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*table.Table, error) {
	return costs(ctx, x, selection, false)
}

// CostGroups returns the costs of all rows that overlap the rows of CostTable: layers, blocks, kernels, and
// dispatches that were skipped together.
func CostGroups(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*table.Table, error) {
	return costs(ctx, x, selection, true)
}

// costs returns the table of costs: the rows that overlap others, or the other rows.
func costs(ctx context.Context, x *analyze.Index, selection analyze.Selection, overlap bool) (
	*table.Table, error,
) {
	steps := selection.Steps
	if steps == nil {
		steps = x.EveryStep()
	}
	last := func(has func(*trace.Step) bool) int {
		for i := len(steps) - 1; i >= 0; i-- {
			if has(&x.Trace.Steps[steps[i]]) {
				return steps[i]
			}
		}
		return -1
	}
	step := last(func(s *trace.Step) bool { return len(s.Costs) > 0 })
	if step < 0 {
		step = last(analyze.EachTimed)
	}
	if step < 0 && len(steps) > 0 {
		step = steps[len(steps)-1]
	}
	var t *DispatchTable
	var rows []analyze.CostRow
	var err error
	if step >= 0 {
		if t, err = Dispatches(ctx, x, analyze.Options{
			Selection: x.Step(step),
			Grouping:  analyze.GroupLayer,
		}); err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(t.CostRows(), func(r analyze.CostRow) bool { return r.Overlaps != overlap })
	}
	name := "cost"
	if overlap {
		name = "cost-groups"
	}
	made := table.New(name, costTableColumns(x, rows, step), table.Flat(len(rows), func(i int) string {
		return rows[i].Key
	}))
	switch {
	case t == nil:
	case t.Costs != nil && !slices.ContainsFunc(rows, analyze.CostRow.Known):
		if made.Title = groupsTitle; !overlap {
			made.Title = t.costTitle(t.unknown(rows))
		}
		quiet := &made.Columns[made.Column("cost_us")]
		of := quiet.Of
		quiet.Of = func(row int) table.Cell { // the title already states that no cost is known
			cell := of(row)
			cell.Text = table.Unmeasured
			return cell
		}
	case overlap:
		made.Title = groupsTitle
		made.Notes = append(t.costNotes(), markNotes(rows)...)
	default:
		made.Title, made.Notes = t.costTitle(), markNotes(rows)
	}
	return made, nil
}

// groupsTitle is the title of the table of groups.
var groupsTitle = []table.Line{table.Title(table.Say(0, "groups and kernels, which overlap each other"))}

// unknown returns the title segment that explains why the cost of no row is known.
func (t *DispatchTable) unknown(rows []analyze.CostRow) table.Segment {
	said := "no costs measured"
	if t.Timed() {
		said += "; showing isolated times"
	}
	return table.Say(0, "%s: %s", said, strings.Join(doubts(rows, analyze.MarkUnknown), "; or "))
}

// costTableColumns returns the columns of the table of costs. `step` is the index of the step of the rows, or
// -1.
func costTableColumns(x *analyze.Index, rows []analyze.CostRow, step int) []table.Column {
	of := table.ColumnsOf(rows)
	decimals := table.DecimalsOfUS(x.Trace.Clock.QuantumNS)
	cost := func(r *analyze.CostRow) *analyze.RowCost { return r.Cost }
	var pace headline.Pace
	var whole *trace.Whole
	if step >= 0 {
		pace, whole = headline.PaceAt(x, step), x.Trace.Steps[step].Whole
	}
	return slices.Concat([]table.Column{
		of.Int(80, "id", "#", "id", "id of the first dispatch",
			func(r *analyze.CostRow) int64 { return int64(r.Dispatches[0]) }),
		of.Text(80, "part", "part",
			"part that was skipped: one row of the dispatches table, or several rows together",
			func(r *analyze.CostRow) string { return r.Name }),
		of.Int(80, "dispatches", "n", "dispatches", "number of dispatches that were skipped",
			func(r *analyze.CostRow) int64 { return int64(len(r.Dispatches)) }),
		of.Cell(80, table.Measured, "share", "%", "%",
			"cost as a share of the whole step; = means that the cost is not significant",
			func(r *analyze.CostRow) table.Cell {
				if r.Cost == nil {
					return table.Missing()
				}
				return shareCell(r.Cost)
			}),
	}, CostColumns(x, of, cost), []table.Column{
		twiceColumn(of, 110, pace, whole, cost),
		of.Cell(80, table.Modelled, "lost_us", "~excess", "us",
			"modelled: isolated time minus the time that the device needs for the part's bytes and FLOPs; shown only if no cost was measured",
			func(r *analyze.CostRow) table.Cell {
				if r.ExcessNS == 0 {
					return table.Cell{}
				}
				return shortCell(r.ExcessNS)
			}),
		of.Cell(80, table.Measured, "alone_us", "Σµs isolated", "us",
			"sum of the GPU times of the part's dispatches, each timed in isolation",
			func(r *analyze.CostRow) table.Cell {
				if !r.Isolated {
					return table.Missing()
				}
				return table.Microseconds(r.IsolatedNS/1e3, decimals)
			}),
		of.Cell(110, table.Exact, "rounds", "rounds", "rounds",
			"number of rounds in which the part was skipped",
			func(r *analyze.CostRow) table.Cell {
				if r.Cost == nil {
					return table.Missing()
				}
				return table.Count(r.Cost.N)
			}),
	})
}

// costTitle returns the title, which names the step in which the costs were measured and ends with the given
// segments. If no costs were measured, the title says so.
func (t *DispatchTable) costTitle(more ...table.Segment) []table.Line {
	if t.Costs == nil {
		text := "no costs measured"
		switch {
		case t.Timed() && analyze.NoSave(&t.Index.Trace.Device) != "":
			text += ": showing isolated times"
		case t.Timed():
			text += ": sorted by ~excess, which comes from isolated times"
		}
		return []table.Line{table.Title(table.Say(0, "s%d", t.Index.Trace.Steps[t.Selection.Last()].Index),
			table.Say(0, "%s", text))}
	}
	parts := append(sharedCostParts(t.Costs, t), more...)
	if w := t.Costs.Step.Whole; w != nil {
		parts = append(parts, table.Say(1, "whole step %s µs on the GPU (quartiles %s–%s)",
			analyze.Short(float64(w.NS)),
			analyze.Short(float64(w.Q1NS)), analyze.Short(float64(w.Q3NS))))
	}
	if why := analyze.NoSave(&t.Index.Trace.Device); why != "" {
		parts = append(parts, table.Say(2, "%s", why))
	}
	lines := make([]table.Line, 0, len(parts))
	for _, part := range parts { // one fact for each line
		if part.Text != "" {
			lines = append(lines, table.Title(part))
		}
	}
	return lines
}

// markNotes explains the marks that appear in the rows.
func markNotes(rows []analyze.CostRow) (notes []string) {
	for _, mark := range []string{analyze.MarkNone, analyze.MarkUnknown} {
		if why := doubts(rows, mark); why != nil {
			notes = append(notes, mark+" "+strings.Join(why, "; or "))
		}
	}
	return notes
}

// doubts returns the distinct reasons why rows have the given mark.
func doubts(rows []analyze.CostRow, mark string) (why []string) {
	for _, r := range rows {
		if c := r.Cost; c != nil && c.Mark == mark && !slices.Contains(why, c.Doubt) {
			why = append(why, c.Doubt)
		}
	}
	return why
}

// costNotes returns a note that compares the sum of the groups' costs with the time of the whole step.
func (t *DispatchTable) costNotes() []string {
	if t.Costs == nil || t.Costs.Step.Whole == nil {
		return nil
	}
	c, ok := t.Cover(false)
	if !ok || !slices.ContainsFunc(c.Rows, func(row int) bool { return t.Grouped[row].Group }) {
		return nil
	}
	var names []string
	for _, row := range c.Rows {
		names = append(names, t.Called(row))
	}
	return []string{fmt.Sprintf("the costs of %s add up to %s ± %s µs; the whole step takes %s µs", strings.Join(names, " + "),
		analyze.Short(c.Ns), analyze.Short(c.SpreadNS), analyze.Short(float64(t.Costs.Step.Whole.NS)))}
}
