// Package classes shows the times of a step by class of work, beside those of another engine.
package classes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/classes"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func init() {
	report.Register(report.Table{
		Name: "classes", Takes: report.AnySteps, Compares: true,
		Doc: "GPU time of each class of work (q and o, gate and up, norms, …), compared with another run or engine",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			c, err := classes.Of(ctx, x, o)
			if err != nil {
				return nil, err
			}
			return Table(x, c), nil
		},
	})
}

// Table returns the table of a comparison. Its last row is the sum of all classes.
func Table(x *analyze.Index, c *classes.Comparison) *table.Table {
	rows := append([]classes.Row(nil), c.Rows...)
	rows = append(rows, c.Total)
	decimals := table.DecimalsOfUS(x.Trace.Clock.QuantumNS)
	time := func(of func(*classes.Row) *classes.Side) func(*classes.Row) table.Cell {
		return func(r *classes.Row) table.Cell {
			switch s := of(r); {
			case s.Rows == 0:
				return table.Cell{}
			case !s.Measured:
				return table.Missing()
			default:
				return table.Microseconds(s.NS/1e3, decimals)
			}
		}
	}
	now := func(r *classes.Row) *classes.Side { return &r.Now }
	base := func(r *classes.Row) *classes.Side { return &r.Base }
	width := 80
	if c.Baseline == nil {
		width = table.Unseen
	}
	of := table.ColumnsOf(rows)
	t := table.New("classes", []table.Column{
		of.Text(80, "class", "class of work", "operators that do the same kind of work in every engine",
			func(r *classes.Row) string { return cmp.Or(string(r.Class), "all") }),
		of.Cell(80, table.Measured, "us", "total", "us", "GPU time in a step, in µs: the sum of the medians of the dispatches",
			time(now)),
		of.Cell(width, table.Measured, "base_us", "total baseline", "us",
			"GPU time in a step of the baseline, computed in the same way", time(base)),
		of.Cell(width, table.Measured, "difference_us", "difference µs", "us",
			"time minus the time of the baseline; above 0 the baseline is faster",
			func(r *classes.Row) table.Cell {
				ns, known := r.DifferenceNS()
				if !known {
					return table.Missing()
				}
				return table.Cell{
					Text: fmt.Sprintf("%+.*f", decimals, ns/1e3), Number: ns / 1e3, Has: true,
				}
			}),
		of.Cell(width, table.Measured, "ratio", "ratio", "×", "time divided by the time of the baseline",
			func(r *classes.Row) table.Cell {
				ratio, known := r.Ratio()
				if !known {
					return table.Cell{}
				}
				return table.Number(ratio, 2)
			}),
		of.Int(80, "rows", "dispatches", "dispatches", "dispatches of the class in a step",
			func(r *classes.Row) int64 { return int64(r.Now.Rows) }),
		of.Int(width, "base_rows", "baseline", "dispatches", "dispatches of the class in a step of the baseline",
			func(r *classes.Row) int64 { return int64(r.Base.Rows) }),
		of.Text(width, "joined", "matched by",
			"how rows of an imported profile were matched with operators of the model: by tensor name, operator id, "+
				"operation and shape, or order", joined),
	}, table.Flat(len(rows), func(row int) string { return cmp.Or(string(rows[row].Class), "all") }))
	t.Title = append(t.Title, table.Title(table.Segment{Text: title(x, c)}))
	return t
}

// joined says how the rows of a profile were joined, on either side.
func joined(r *classes.Row) string {
	var ways []string
	for _, by := range trace.Joins {
		for _, side := range []*classes.Side{&r.Now, &r.Base} {
			for _, j := range side.Joined {
				if j == by && (len(ways) == 0 || ways[len(ways)-1] != string(by)) {
					ways = append(ways, string(by))
				}
			}
		}
	}
	return strings.Join(ways, ", ")
}

// title says which steps are compared with which.
func title(x *analyze.Index, c *classes.Comparison) string {
	text := fmt.Sprintf("%s, %s", engine(x.Trace), stepsOf(c.Selection))
	if b := c.Baseline; b != nil {
		text += fmt.Sprintf(" · baseline %s, %s", engine(b.Index.Trace), stepsOf(b.Selection))
		if other := report.OtherTokens(x, c.Selection, b); other != "" {
			text += " · " + other
		}
	}
	return text
}

// stepsOf names the selected steps, with their number if some are left out.
func stepsOf(s analyze.Selection) string {
	if s.Rerouted+s.Apart > 0 {
		return report.SelectionText(s)
	}
	return s.Name
}

func engine(t *trace.Trace) string { return cmp.Or(t.Engine, t.Producer.Name, "unknown engine") }
