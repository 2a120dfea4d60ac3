// Package costtable shows the costs of a step: a table of parts that add up, and a table of groups of these
// parts.
package costtable

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/costs"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func init() {
	report.Register(report.Table{
		Name: "cost", Takes: report.WholeRun,
		Doc: "cost of each part of a step, as last measured, sorted by potential saving; each dispatch is in one part, so costs can be added up",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return Parts(ctx, x, o.Selection)
		},
	})
	report.Register(report.Table{
		Name: "cost-groups", Takes: report.WholeRun,
		Doc: "cost of layers, blocks, kernels and other groups of dispatches, as last measured; groups overlap each other",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return Groups(ctx, x, o.Selection)
		},
	})
}

// Parts returns the costs of the last selected step that has costs. Each dispatch of the step is in
// exactly one row. An empty selection means the whole run. If no step has costs, the table shows isolated
// times of the last step that has these.
func Parts(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*table.Table, error) {
	t, err := costedStep(ctx, x, selection)
	if err != nil || t == nil {
		return table.New("cost", costTableColumns(x, nil, nil), nil), err
	}
	rows := costs.Parts(t)
	made := costTable(t, "cost", rows)
	made.Title = costTitle(t, rows)
	if !costsUnknown(t, rows) { // else the title explains why no cost is known
		made.Notes = append(sumNotes(t, rows), markNotes(rows)...)
	}
	return made, nil
}

// Groups returns the costs of groups of dispatches in the step of Parts: layers, blocks, dispatches
// that run at once, kernels, kinds of operators, and dispatches that were skipped together on request. Groups
// overlap each other, so their costs do not add up to the step.
func Groups(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*table.Table, error) {
	t, err := costedStep(ctx, x, selection)
	if err != nil || t == nil {
		return table.New("cost-groups", groupColumns(x, nil, nil), nil), err
	}
	rows := costs.Groups(t)
	made := costTable(t, "cost-groups", rows)
	made.Title = []table.Line{
		table.Title(table.Say(0, "groups of dispatches in step s%d", stepIndex(t))),
		table.Title(table.Say(0, "groups overlap: their shares do not add up")),
	}
	if made.Notes = costNotes(t); !costsUnknown(t, rows) {
		made.Notes = append(made.Notes, markNotes(rows)...)
	}
	return made, nil
}

// costedStep returns the dispatches, grouped by layer, of the last selected step that has costs, or of the
// last step in which all dispatches were timed, or of the last step. It returns nil if there is no step. An
// empty selection means the whole run.
func costedStep(ctx context.Context, x *analyze.Index, selection analyze.Selection) (
	*analyze.DispatchTree, error,
) {
	steps := selection.Steps
	if steps == nil {
		steps = x.EveryStep()
	}
	if len(steps) == 0 {
		return nil, nil
	}
	step := steps[len(steps)-1]
	for _, has := range []func(*trace.Step) bool{
		func(s *trace.Step) bool { return len(s.Costs) > 0 }, analyze.EachTimed,
	} {
		i := len(steps) - 1
		for i >= 0 && !has(&x.Trace.Steps[steps[i]]) {
			i--
		}
		if i >= 0 {
			step = steps[i]
			break
		}
	}
	return x.DispatchTree(ctx, analyze.Options{Selection: x.Step(step), Grouping: analyze.GroupLayer})
}

// costTable returns a table of costs without title and notes.
func costTable(t *analyze.DispatchTree, name string, rows []costs.Row) *table.Table {
	columns := costTableColumns(t.Index, rows, t)
	if name == "cost-groups" {
		columns = groupColumns(t.Index, rows, t)
	}
	made := table.New(name, columns, table.Flat(len(rows), func(i int) string { return rows[i].Key }))
	if costsUnknown(t, rows) {
		quiet := &made.Columns[made.Column("cost_us")]
		of := quiet.Of
		quiet.Of = func(row int) table.Cell { // the title already states that no cost is known
			cell := of(row)
			cell.Text = table.Unmeasured
			return cell
		}
	}
	return made
}

// costsUnknown reports whether costs were measured but no row has a known cost.
func costsUnknown(t *analyze.DispatchTree, rows []costs.Row) bool {
	return t.Costs != nil && !slices.ContainsFunc(rows, costs.Row.Known)
}

// stepIndex returns the number in the name of the table's step: 3 for s3.
func stepIndex(t *analyze.DispatchTree) int { return t.Index.Trace.Steps[t.Selection.Last()].Index }

// groupColumns returns the columns of the table of groups: those of the table of costs, and the kind of each
// group.
func groupColumns(x *analyze.Index, rows []costs.Row, t *analyze.DispatchTree) []table.Column {
	kind := table.ColumnsOf(rows).Text(80, "kind", "kind",
		"kind of group: layers (equal ones); block (of equal layers, or outside the layers); at once (dispatches that run "+
			"concurrently); kernel; operators (of one kind); together (dispatches that the user chose)",
		func(r *costs.Row) string { return string(r.Kind) })
	return slices.Insert(costTableColumns(x, rows, t), 1, kind)
}

// costTableColumns returns the columns of the table of costs. t is the table of the dispatches of the rows,
// or nil if there are no rows.
func costTableColumns(x *analyze.Index, rows []costs.Row, t *analyze.DispatchTree) []table.Column {
	of := table.ColumnsOf(rows)
	decimals := table.DecimalsOfUS(x.Trace.Clock.QuantumNS)
	cost := func(r *costs.Row) *analyze.RowCost { return r.Cost }
	var pace headline.Pace
	var whole *trace.Whole
	byCost := false
	if t != nil {
		step := t.Selection.Last()
		pace, whole = headline.PaceOf(x, t.Selection), x.Trace.Steps[step].Whole
		byCost = slices.ContainsFunc(rows, costs.Row.Known)
	}
	return slices.Concat([]table.Column{
		of.Int(80, "id", "#", "id", "id of the first dispatch",
			func(r *costs.Row) int64 { return int64(r.Dispatches[0]) }),
		of.Text(80, "part", "part", "part that was skipped",
			func(r *costs.Row) string { return r.Name }),
		of.Int(80, "dispatches", "n", "dispatches", "number of dispatches that were skipped",
			func(r *costs.Row) int64 { return int64(len(r.Dispatches)) }),
		of.Cell(80, table.Measured, "share", "%", "%",
			"cost as a share of the whole step; = means that the cost is not significant. If no cost is known: "+
				"isolated time as a share of the isolated times of the whole step",
			func(r *costs.Row) table.Cell {
				switch {
				case byCost && r.Cost != nil:
					return report.ShareCell(r.Cost)
				case byCost || r.Share == 0:
					return table.Missing()
				}
				return table.Number(100*r.Share, 1)
			}),
	}, report.CostColumns(x, of, cost), []table.Column{
		report.TwiceColumn(of, 110, pace, whole, cost),
		of.Cell(80, table.Modelled, "lost_us", "~excess", "us",
			"modelled: isolated time minus the time that the device needs for the part's bytes and FLOPs; shown only if no cost was measured",
			func(r *costs.Row) table.Cell {
				if r.ExcessNS == 0 {
					return table.Cell{}
				}
				return report.ShortCell(r.ExcessNS)
			}),
		of.Cell(80, table.Measured, "alone_us", "total isolated", "us",
			"sum of the GPU times of the part's dispatches, each timed in isolation",
			func(r *costs.Row) table.Cell {
				if !r.Isolated {
					return table.Missing()
				}
				return table.Microseconds(r.IsolatedNS/1e3, decimals)
			}),
		of.Cell(110, table.Exact, "rounds", "rounds", "rounds",
			"number of rounds in which the part was skipped",
			func(r *costs.Row) table.Cell {
				if r.Cost == nil {
					return table.Missing()
				}
				return table.Count(r.Cost.N)
			}),
	})
}

// costTitle returns the title of the table of costs, with one fact in each line: the step and the order, how
// the costs were measured or why none is known, and the duration of the whole step.
func costTitle(t *analyze.DispatchTree, rows []costs.Row) (title []table.Line) {
	say := func(format string, args ...any) {
		title = append(title, table.Title(table.Say(0, format, args...)))
	}
	noSave := analyze.NoSave(&t.Index.Trace.Device)
	order := ", largest potential saving first"
	switch known := slices.ContainsFunc(rows, costs.Row.Known); {
	case known && noSave != "":
		order = ", largest cost first"
	case known:
	case !t.Timed():
		order = ""
	case noSave == "" && slices.ContainsFunc(rows, func(r costs.Row) bool { return r.ExcessNS > 0 }):
		order = ", largest ~excess of the isolated time first"
	default:
		order = ", longest isolated time first"
	}
	say("parts of step s%d%s", stepIndex(t), order)
	if t.Costs == nil {
		say("no costs measured")
		return title
	}
	switch why := doubts(rows, analyze.MarkUnknown); {
	case costsUnknown(t, rows) && why == nil:
		say("costs measured only for groups")
	case costsUnknown(t, rows):
		say("no costs known: %s", strings.Join(why, "; or "))
	default:
		say("costs measured in %s", trace.Rounds(t.Costs.Step.Costs))
	}
	if by := analyze.ClockMovedBy(t.Costs.Step.Whole); by > trace.ClockMoved {
		say("clock moved %.0f %% between the rounds", 100*by)
	}
	if w := t.Costs.Step.Whole; w != nil {
		say("whole step %s µs on the GPU (quartiles %s–%s)", analyze.Short(float64(w.NS)),
			analyze.Short(float64(w.Q1NS)), analyze.Short(float64(w.Q3NS)))
	}
	if noSave != "" {
		say("%s", noSave)
	}
	return title
}

// sumNotes says what the rows of the table of costs add up to.
func sumNotes(t *analyze.DispatchTree, rows []costs.Row) []string {
	if t.Costs == nil || t.Costs.Step.Whole == nil || t.Costs.Step.Whole.NS <= 0 || costsUnknown(t, rows) {
		return nil
	}
	whole := float64(t.Costs.Step.Whole.NS)
	var known, sum, off float64
	for _, r := range rows {
		if r.Known() {
			known++
			sum, off = sum+float64(r.Cost.NS), math.Hypot(off, r.Cost.ErrorNS)
		}
	}
	adds := fmt.Sprintf("add up to %s ± %s µs, %.1f %% of the step", analyze.Short(sum), analyze.Short(off),
		100*sum/whole)
	if missing := len(rows) - int(known); missing > 0 {
		return []string{fmt.Sprintf("%.0f of %d rows have a known cost; they %s", known, len(rows), adds)}
	}
	notes := []string{fmt.Sprintf("the %s %s", table.Plural(len(rows), "row"), adds)}
	switch shared := whole - sum; {
	case shared > off:
		notes = append(notes, fmt.Sprintf("in the other %s µs several rows run or wait together",
			analyze.Short(shared)))
	case shared < -off:
		notes = append(notes, "that is more than the step, because rows slow each other down")
	}
	return notes
}

// markNotes explains the marks that appear in the rows.
func markNotes(rows []costs.Row) (notes []string) {
	for _, mark := range []string{analyze.MarkNone, analyze.MarkUnknown} {
		if why := doubts(rows, mark); why != nil {
			notes = append(notes, mark+" "+strings.Join(why, "; or "))
		}
	}
	return notes
}

// doubts returns the distinct reasons why rows have the given mark.
func doubts(rows []costs.Row, mark string) (why []string) {
	for _, r := range rows {
		if c := r.Cost; c != nil && c.Mark == mark && !slices.Contains(why, c.Doubt) {
			why = append(why, c.Doubt)
		}
	}
	return why
}

// costNotes returns a note that compares the sum of the groups' costs with the time of the whole step.
func costNotes(t *analyze.DispatchTree) []string {
	if t.Costs == nil || t.Costs.Step.Whole == nil {
		return nil
	}
	c, ok := t.Cover(false)
	if !ok || !slices.ContainsFunc(c.Rows, func(row int) bool { return t.Grouped[row].Group }) {
		return nil
	}
	var names []string
	for _, row := range c.Rows {
		names = append(names, costs.NameApart(t, row))
	}
	return []string{fmt.Sprintf("the costs of %s add up to %s ± %s µs; the whole step takes %s µs", strings.Join(names, " + "),
		analyze.Short(c.Ns), analyze.Short(c.SpreadNS), analyze.Short(float64(t.Costs.Step.Whole.NS)))}
}
