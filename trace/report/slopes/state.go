package slopes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func init() {
	report.Register(report.Table{
		Name: "state", Takes: report.NoSteps,
		Doc: "for models with recurrent layers: bytes of the recurrent state (constant) and of the KV cache (growing) at each position",
		Of: func(ctx context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			c, err := curves.Of(ctx, x, trace.AlongPosition, nil)
			if err != nil {
				return nil, err
			}
			return StateTable(c), nil
		},
	})
}

// stateRow is the state of a row of the curves at a position.
type stateRow struct {
	row *curves.CurveRow
	at  int
}

// StateTable returns the table of the sizes of recurrent state and KV caches. First it has rows for the whole
// step: at the first position, at powers of two, at the position where the KV cache becomes larger than the
// recurrent state, and at the last position. Then it has one row for each operator with state, at the last
// position.
func StateTable(c *curves.Curves) *table.Table {
	var rows []stateRow
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.State == nil {
			continue
		}
		places := []int{c.To}
		if r.Dispatches == nil {
			places = append(places, c.From)
			for at := 1; at < c.To; at *= 2 {
				places = append(places, max(at, c.From))
			}
			if at, crosses := c.Crossing(r.State); crosses {
				places = append(places, at)
			}
		}
		slices.Sort(places)
		for _, at := range slices.Compact(places) {
			rows = append(rows, stateRow{r, at})
		}
	}
	of := table.ColumnsOf(rows)
	bytes := func(n int64) table.Cell {
		return table.Cell{Text: table.Bytes(n), Number: float64(n), Has: true}
	}
	recurrent := of.Where(func(r *stateRow) bool { return r.row.State.Recurrent > 0 })
	cached := of.Where(func(r *stateRow) bool { return r.row.State.HasCache() })
	both := of.Where(func(r *stateRow) bool { return r.row.State.Compares() })
	cache := func(r *stateRow) int64 { return r.row.State.Cache(c.Text(r.at)) }
	t := table.New("state", []table.Column{
		of.Text(80, "op", "op", "the whole step, or an operator (summed over all layers)",
			func(r *stateRow) string { return r.row.Name }),
		of.Int(80, "position", "position", "position", "position of a decode step",
			func(r *stateRow) int64 { return int64(r.at) }),
		recurrent.Cell(80, table.Exact, "recurrent", "recurrent", "bytes",
			"recurrent state at one position; its size is the same at every position",
			func(r *stateRow) table.Cell { return bytes(r.row.State.Recurrent) }),
		cached.Cell(80, table.Exact, "cache", "KV cache", "bytes",
			"bytes of the KV caches that are in use after a step at this position",
			func(r *stateRow) table.Cell { return bytes(cache(r)) }),
		both.Cell(80, table.Exact, "ratio", "KV/recurrent", "ratio",
			"KV cache divided by the recurrent state",
			func(r *stateRow) table.Cell {
				return table.Number(float64(cache(r))/float64(r.row.State.Recurrent), 3)
			}),
	}, table.Flat(len(rows), func(row int) string {
		return fmt.Sprintf("%s@%d", rows[row].row.Name, rows[row].at)
	}))
	whole := &c.Rows[0]
	if whole.State == nil {
		t.Title = []table.Line{table.Title(table.Say(0, "no recurrent state"))}
		t.Notes = []string{"no layer of the graph is recurrent, or the trace was recorded by an older version of gpuscope"}
		return t
	}
	parts := []table.Segment{
		table.Say(0, "recurrent state %s at every position", table.Bytes(whole.State.Recurrent)),
	}
	if whole.State.Compares() {
		parts = append(parts, table.Say(1, "KV cache %s for each token", table.Bytes(whole.State.Cache(1))),
			table.Say(0, "%s", crossing(c, whole)))
	}
	parts = append(parts, table.Say(2, "%s", slots(whole.State)))
	t.Title = []table.Line{table.Title(parts...)}
	return t
}

// slots says for how many positions the memory holds the recurrent state.
func slots(s *curves.State) string {
	return "memory holds the recurrent state of " + table.Plural(s.Slots, "position")
}

// crossing says from which position or token count on the KV caches use more bytes than the recurrent
// state. It returns "" if the row has only one kind of state.
func crossing(c *curves.Curves, r *curves.CurveRow) string {
	if r.State == nil || !r.State.Compares() {
		return ""
	}
	place := func(at int) string {
		if c.Along == trace.AlongTokens {
			return table.Plural(at, "token")
		}
		return "position " + table.Integer(at)
	}
	if at, crosses := c.Crossing(r.State); crosses {
		return fmt.Sprintf("KV cache larger from %s on", place(at))
	}
	return fmt.Sprintf("KV cache not larger up to %s", place(c.To))
}

// CrossingPart returns a title segment that says from which position or token count on the KV caches of a
// row use more bytes than its recurrent state.
func CrossingPart(c *curves.Curves, r *curves.CurveRow) table.Segment {
	text := crossing(c, r)
	short := strings.Replace(strings.TrimSuffix(text, " on"), "KV cache", "KV", 1)
	return table.Segment{Rank: 1, Text: text, Short: strings.Replace(short, "position ", "", 1)}
}

// StateAt formats the sizes of the state of a row after a step at a position or token count: "KV 1.2 kB,
// recurrent 19.1 MB".
func StateAt(c *curves.Curves, r *curves.CurveRow, at int) string {
	if r.State == nil {
		return "no state"
	}
	var parts []string
	if r.State.HasCache() {
		parts = append(parts, "KV "+table.Bytes(r.State.Cache(c.Text(at))))
	}
	if r.State.Recurrent > 0 {
		parts = append(parts, "recurrent "+table.Bytes(r.State.Recurrent))
	}
	return strings.Join(parts, ", ")
}

// stateLines describes the state of a row at a position or token count.
func stateLines(c *curves.Curves, r *curves.CurveRow, at int, add func(string, ...any)) {
	s := r.State
	if s == nil {
		return
	}
	if s.HasCache() {
		add("KV cache  %s in use after the step, %s for each token", table.Bytes(s.Cache(c.Text(at))),
			table.Bytes(s.Cache(1)))
	}
	if s.Recurrent > 0 {
		add("recurrent %s of state at every position; %s", table.Bytes(s.Recurrent), slots(s))
	}
	if where := crossing(c, r); where != "" {
		add("crossing  %s", where)
	}
}
