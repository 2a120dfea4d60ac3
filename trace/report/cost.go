package report

import (
	"fmt"
	"math"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/table"
)

// says returns a text with the time that rows share, and its error: "22 rows share 137 ± 12 µs". If the time
// is not significantly different from 0, the text has only the error.
func says(s analyze.Shared) string {
	if s.Nothing() {
		return fmt.Sprintf("shared time of %s is within the noise (± %s µs)", table.Plural(s.Rows, "row"),
			analyze.Short(s.ErrorNS))
	}
	return words(s, " ± "+analyze.Short(s.ErrorNS))
}

func words(s analyze.Shared, off string) string {
	rows := table.Plural(s.Rows, "row")
	if s.Less() {
		return fmt.Sprintf("costs of %s add up to %s%s µs more than the step", rows,
			analyze.Short(-s.NS), off)
	}
	return fmt.Sprintf("%s share %s%s µs", rows, analyze.Short(s.NS), off)
}

// SharedLine explains why the costs of the rows add up to more than the step. It returns "" if they do not.
func (t *DispatchTable) SharedLine() string {
	s, ok := t.Shared()
	if !ok || !s.Less() {
		return ""
	}
	return says(s) + ": the rows slow each other down, so a cost includes time of other rows"
}

// sharedCostParts returns two title segments about costs: the step in which they were measured, and the time
// that the rows share (see analyze.Shared). If this time differs significantly from zero, its segment is
// essential: the costs of the rows then do not add up to the time of the step.
func sharedCostParts(c *analyze.StepCosts, t *DispatchTable) []table.Segment {
	at := fmt.Sprintf("cost at s%d", c.Step.Index)
	of := table.Segment{Rank: 3, Text: at + ", " + trace.Rounds(c.Step.Costs), Short: at}
	if by := analyze.ClockMovedBy(c.Step.Whole); by > trace.ClockMoved {
		of.Text += fmt.Sprintf(", clock moved %.0f %%", 100*by)
	}
	s, ok := t.Shared()
	if !ok {
		return []table.Segment{of}
	}
	shared := table.Segment{Rank: 1, Text: says(s)}
	if !s.Nothing() {
		shared.Rank, shared.Short = 0, words(s, "")
	}
	return []table.Segment{of, shared}
}

// CostLine describes the cost of all dispatches of a row together, and the cost per dispatch. If a measured
// cost does not apply to the row, CostLine gives the reason. It returns "" if no cost was measured.
func (t *DispatchTable) CostLine(r *analyze.DispatchRow) string {
	c := r.Cost
	switch {
	case r.Other != nil:
		return "cost unknown: " + OtherWork(t.Costs, r.Other)
	case c == nil:
		return ""
	}
	line := "cost " + c.CostText()
	if n := len(r.Units); n > 1 {
		if c.Significant() {
			line += fmt.Sprintf(", %.1f each", float64(c.NS)/1e3/float64(n))
		}
		if r.Time.Measured() {
			line += fmt.Sprintf("; isolated %.1f", r.Time.Median/1e3)
		}
	} else if r.Summed {
		line += fmt.Sprintf("; isolated %.1f", r.SumNS/1e3)
	}
	if save, ok := c.SaveNS(); ok && c.LeastNS > 0 && c.Significant() {
		line += fmt.Sprintf(" · ~save %s µs: the row's bytes and FLOPs need only ~%s µs",
			analyze.Short(save),
			analyze.Short(c.LeastNS))
	}
	return line
}

// costColumns returns the columns of costs and potential savings. If no costs were measured, the columns
// show isolated times instead.
func (t *DispatchTable) costColumns() (cost []table.Column, lost table.Column) {
	ran := t.ran()
	// Screens of every width show ~excess if no costs were measured.
	width := 80
	if t.Baseline.Chosen() {
		width = 110
	}
	of := func(r *analyze.DispatchRow) *analyze.RowCost { return r.Cost }
	columns := CostColumns(t.Index, ran, of)
	if t.AnyCost {
		pace := headline.PaceOf(t.Index, t.Selection)
		twice := TwiceColumn(ran, 110, pace, t.Costs.Step.Whole, of)
		twice.Title = "~if 2×" // the headline above the table has the unit
		columns = append(columns, twice)
		width = 200
	} else {
		for i := range columns {
			columns[i].Width = table.Unseen
		}
	}
	for i, c := range columns { // rows whose costs are not significant are sorted by isolated time
		columns[i].Of = func(row int) table.Cell {
			cell := c.Of(row)
			cell.Then = t.Grouped[row].SumNS
			return cell
		}
	}
	return columns, ran.Cell(width, table.Modelled, "lost_us", "~excess", "us",
		"modelled: isolated time minus the time that the device needs for the row's bytes and FLOPs",
		func(r *analyze.DispatchRow) table.Cell {
			if r.ExcessNS == 0 {
				return table.Cell{}
			}
			return table.Number(r.ExcessNS/1e3, 0)
		})
}

// CostPart returns a cost as a fraction of the step, for the heat of a column. It returns 0 if the cost is
// not known.
func CostPart(c *analyze.RowCost) float64 {
	if c == nil {
		return 0
	}
	return c.Share
}

// CostCell returns the cell of a cost for any table.
func CostCell(x *analyze.Index, c *analyze.RowCost) table.Cell {
	cell := table.Microseconds(float64(c.NS)/1e3, min(1, table.DecimalsOfUS(x.Trace.Clock.QuantumNS)))
	cell.Text, cell.Mark = c.Marked(cell.Text), c.Mark
	return cell
}

// CostColumns returns the columns of costs for any table that has costs. The last argument is a function
// that returns the cost of a row, or nil if it was not measured.
func CostColumns[R any](x *analyze.Index, of table.Columns[R],
	cost func(*R) *analyze.RowCost,
) []table.Column {
	known := func(cell func(*analyze.RowCost) table.Cell) func(*R) table.Cell {
		return func(r *R) table.Cell {
			if c := cost(r); c != nil {
				return cell(c)
			}
			return table.Missing()
		}
	}
	save := 110
	if analyze.NoSave(&x.Trace.Device) != "" {
		save = table.Unseen // the title explains why there are no savings
	}
	us := of.Cell(80, table.Measured, "cost_us", "cost", "us",
		"time that the untimed step saves when this row is skipped: trimmed mean of the rounds (on a software "+
			"device, their median); = means that the cost is smaller than its error, ? means that the error is not known",
		known(func(c *analyze.RowCost) table.Cell { return CostCell(x, c) }))
	us = of.WithHeat(us, func(r *R) float64 { return CostPart(cost(r)) })
	return []table.Column{
		us, table.Marks(us),
		of.Cell(110, table.Measured, "cost_spread_us", "±", "us",
			fmt.Sprintf("error of the cost: half the interquartile range of the rounds or, if that is larger, the "+
				"distance from the cost to the farther end of the median's confidence interval; unknown with fewer than %d rounds",
				trace.FewestWithin),
			known(func(c *analyze.RowCost) table.Cell {
				if !c.ErrorKnown {
					return table.Missing()
				}
				return ShortCell(c.ErrorNS)
			})),
		of.Cell(save, table.Modelled, "save_us", "~save", "us",
			"modelled: potential saving, which is the row's cost minus the time that its bytes and FLOPs take at "+
				"measured rates; = means that the cost is not significant",
			known(func(c *analyze.RowCost) table.Cell {
				ns, ok := c.SaveNS()
				switch {
				case !ok:
					return table.Missing()
				case c.IsZero():
					return noneCell()
				}
				return ShortCell(ns)
			})),
	}
}

// TwiceColumn returns the column with the modelled speed if a row were twice as fast, for screens of at least
// w cells. `whole` is the time of the whole step when the costs were measured, or nil.
func TwiceColumn[R any](of table.Columns[R], w int, pace headline.Pace, whole *trace.Whole,
	cost func(*R) *analyze.RowCost,
) table.Column {
	return of.Cell(w, table.Modelled, "twice_per_s", "~"+pace.Unit()+" if 2×", pace.Unit(),
		"modelled: speed of untimed steps if this row were twice as fast",
		func(r *R) table.Cell {
			if rate, ok := pace.Twice(cost(r), whole); ok {
				return table.Cell{Text: table.Digits(rate), Number: rate, Has: true}
			}
			return table.Missing()
		})
}

// costPart returns the title segment that names what the shares are computed from: costs or isolated times.
// It also counts the rows without a cost, because these rows take time too.
func (t *DispatchTable) costPart() table.Segment {
	part := table.Segment{Rank: 3, Text: "share by cost"} // the cost columns already suggest this
	switch {
	case !t.AnyCost && t.Costs != nil && t.OtherWork > 0:
		return table.Say(0, "costs were measured only on other routes or shapes")
	case !t.AnyCost && t.Costs != nil:
		return table.Say(3, "no cost was measured for these rows")
	case !t.AnyCost:
		return table.Segment{}
	case !t.CostOrder:
		if part.Text = "share of " + analyze.SumName; t.MostCosted {
			return table.Segment{
				Rank: 0, Text: part.Text + ": the errors of the costs are not known yet", Short: part.Text,
			}
		}
	default:
		part = t.ofStep(part)
	}
	if t.RowsUncosted == 0 {
		return part
	}
	without := fmt.Sprintf("%s: %d of %d", part.Text, t.RowsUncosted, t.LeafRows)
	if t.OtherWork > 0 {
		without += fmt.Sprintf(" rows have no measured cost (%d have one on another route or shape)",
			t.OtherWork)
		return table.Segment{Rank: 0, Text: without, Short: fmt.Sprintf("%s: %d without cost", part.Text,
			t.RowsUncosted)}
	}
	return table.Segment{Rank: 0, Text: without + " rows have no measured cost", Short: without + " without cost"}
}

// costsApart is a limit. Shares by cost are shares of the GPU time of the runs in which the costs were
// measured. The title shows this time if its relative difference from the GPU time of the selected steps is
// larger than costsApart.
const costsApart = 0.1

// ofStep appends to a title segment the GPU time of the runs in which the costs were measured. Shares by cost
// are percentages of this time. ofStep appends nothing if the time differs from the GPU time of the selected
// steps by at most costsApart.
func (t *DispatchTable) ofStep(part table.Segment) table.Segment {
	w, of := t.Costs.Step.Whole, t.Index.UntimedOf(t.Selection)
	if w == nil {
		return part
	}
	if gpu, ok := of.GPU.NS(); ok && math.Abs(float64(w.NS)/float64(gpu)-1) <= costsApart {
		return part
	}
	took := table.Millis(w.NS, true)
	return table.Segment{
		Rank: 1, Text: fmt.Sprintf("%s, relative to the %s GPU time when costs were measured",
			part.Text, took),
		Short: "share of " + took + " GPU",
	}
}

// FixFirst names the row with the largest potential saving, or with the largest cost if savings are not
// known. The title also shows the row's share of the whole runs in which the costs were measured. A row whose
// saving is within its error is not named, because the next measurement would name a different row. If the
// GPU idles longer in the untimed step than the row could save, the idle time is named first.
func (t *DispatchTable) FixFirst() []table.Segment {
	if !t.MostCosted {
		return nil
	}
	first, most, idle := headline.First(t.DispatchTree)
	if first < 0 {
		return []table.Segment{t.Undecided()}
	}
	_, _, what := t.Most()
	said, name := "fix first ", headline.Name(t.DispatchTree, first)
	brief, off := said+name, analyze.Short(t.Grouped[first].Cost.ErrorNS)
	if idle != nil {
		said = "fix GPU idle first (" + plusMinus(idle.NS, idle.ErrorNS) + " ms, see Step), then "
		brief = "fix GPU idle first, then " + name
	}
	parts := []table.Segment{{
		Text:  fmt.Sprintf("%s%s: %s %s ± %s µs", said, name, what, analyze.Short(most), off),
		Short: brief,
	}}
	if w, c := t.Costs.Step.Whole, t.Grouped[first].Cost; c.Share > 0 {
		part, of := 100*most/float64(w.NS), analyze.Short(float64(w.NS))
		parts = append(parts, table.Segment{
			Rank: 4, With: true, Text: fmt.Sprintf("(%.0f %% of the whole step's %s µs)", part, of),
			Short: fmt.Sprintf("(%.0f %% of %s µs)", part, of),
		})
	}
	return parts
}

// Undecided returns the title segment that replaces "fix first" if the costs do not show which row to fix
// first. The segment gives the reason.
func (t *DispatchTable) Undecided() table.Segment {
	known, rounds := false, 0
	for i := range t.Grouped {
		if c := t.Grouped[i].Cost; c != nil {
			known, rounds = known || !c.Few(), max(rounds, c.N)
		}
	}
	if !known {
		return table.Segment{
			Rank: 0, Text: analyze.OfRounds(rounds) + ": the errors of the costs are not known yet",
			Short: analyze.OfRounds(rounds),
		}
	}
	yet := ""
	if t.FewRounds() {
		yet = " yet"
	}
	no := "no cost exceeds the noise"
	switch {
	case headline.AnySignificant(t.DispatchTree):
		no = "no saving exceeds the noise"
	case headline.LargestGroup(t.DispatchTree) != nil:
		no = "only groups exceed the noise"
		if yet != "" {
			yet = " so far"
		}
	}
	said := table.Say(0, "%s%s, after %s", no, yet, trace.Rounds(t.Costs.Step.Costs))
	said.Short = no + yet
	return said
}

// ShareDoc describes a column of shares (see ShareColumn).
const ShareDoc = "share of the step's time, computed from costs if most rows have a cost with a known error, otherwise " +
	"from isolated times (Σgpu); = means that the cost is not significant"

// ShareColumn returns the column of a row's share of the step, with bars and heat, for any table. byCost says
// what the shares are computed from: the costs or the isolated times. `of` returns the cost of a row, or nil
// if it was not measured, and the share of its isolated time, as a fraction.
func ShareColumn[R any](rows table.Columns[R], byCost bool,
	of func(*R) (cost *analyze.RowCost, isolated float64),
) table.Column {
	column := rows.Cell(80, table.Measured, "share", "share", "%", ShareDoc, func(r *R) table.Cell {
		cost, isolated := of(r)
		switch {
		case byCost && cost == nil:
			return table.Missing()
		case byCost:
			return ShareCell(cost)
		case isolated == 0:
			return table.Cell{}
		}
		return table.Number(100*isolated, 1)
	})
	return rows.WithHeat(column.WithBars(), func(r *R) float64 {
		cost, isolated := of(r)
		if byCost {
			return CostPart(cost)
		}
		return isolated
	})
}
