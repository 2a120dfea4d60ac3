package kernels

import (
	"context"
	"fmt"
	"strconv"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func init() {
	report.Register(report.Table{
		Name: "candidates", Takes: report.WholeRun,
		Doc: "highest logits of each step, if they were recorded, and the chosen token",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return candidates(ctx, x, o.Selection)
		},
	})
}

// candidate is one candidate token of a step.
type candidate struct {
	*trace.Candidate
	step *trace.Step
	rank int // starts at 1
}

// candidates returns the table of candidate tokens of the selected steps. A selection without steps means
// all steps.
func candidates(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*table.Table, error) {
	steps := selection.Steps
	if steps == nil {
		steps = make([]int, len(x.Trace.Steps))
		for i := range steps {
			steps[i] = i
		}
	}
	var rows []candidate
	for n, i := range steps {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s := &x.Trace.Steps[i]
		for k := range s.Top {
			rows = append(rows, candidate{&s.Top[k], s, k + 1})
		}
	}
	of := table.ColumnsOf(rows)
	t := table.New("candidates", []table.Column{
		of.Int(80, "step", "step", "step", "index of the step",
			func(c *candidate) int64 { return int64(c.step.Index) }),
		of.Int(80, "position", "pos", "position", "first position of the step",
			func(c *candidate) int64 { return int64(c.step.Position) }),
		of.Int(80, "rank", "rank", "place", "rank among the logits of the step, highest first",
			func(c *candidate) int64 { return int64(c.rank) }),
		of.Int(80, "id", "id", "id", "id of the token", func(c *candidate) int64 { return int64(c.ID) }),
		of.Text(80, "text", "text", "text of the token, in quotation marks",
			func(c *candidate) string { return strconv.Quote(c.Text) }),
		of.Cell(80, table.Exact, "logit", "logit", "logit", "logit from the model, before any sampling",
			func(c *candidate) table.Cell { return table.Number(c.Logit, 3) }),
		of.Cell(80, table.Exact, "p", "%", "%", "probability among all tokens, at temperature 1",
			func(c *candidate) table.Cell {
				if c.P == 0 {
					return table.Cell{}
				}
				return table.Number(100*c.P, 2)
			}),
		of.Words(80, "came", "", "✓ marks the token that was chosen",
			func(c *candidate) table.Cell {
				if c.step.Token != nil && *c.step.Token == c.ID {
					return table.Text("✓")
				}
				return table.Cell{}
			}),
	}, table.Flat(len(rows), func(row int) string {
		return fmt.Sprintf("s%d c%d", rows[row].step.Index, rows[row].rank)
	}))
	t.Notes = report.DroppedNotes(x)
	switch {
	case len(rows) > 0:
	case x.Trace.Graph.OnlyToken():
		t.Notes = append(t.Notes, "no logits: the program computes only the next token")
	default:
		t.Notes = append(t.Notes, "no logits were recorded: record them with gpuscope run --top-logits K")
	}
	return t, nil
}
