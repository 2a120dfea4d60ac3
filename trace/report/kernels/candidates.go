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
		Doc: "the highest logits of each step, where they were asked for, and which of them came out",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return candidates(ctx, x, o.Scope)
		},
	})
}

// candidate is one of the tokens that a step told of.
type candidate struct {
	*trace.Candidate
	step *trace.Step
	rank int // from 1
}

// candidates are those of the steps of a scope, without one of all steps.
func candidates(ctx context.Context, x *analyze.Index, scope analyze.Scope) (*table.Table, error) {
	steps := scope.Steps
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
	at := table.By(rows)
	t := table.New("candidates", []table.Column{
		{
			Name: "step", Title: "step", Unit: "step", Is: table.Exact, Right: true, Width: 80,
			Doc: "index of the step",
			Of:  at(func(c *candidate) table.Cell { return table.Count(c.step.Index) }),
		},
		{
			Name: "position", Title: "pos", Unit: "position", Is: table.Exact, Right: true, Width: 80,
			Doc: "first position of the step",
			Of:  at(func(c *candidate) table.Cell { return table.Count(c.step.Position) }),
		},
		{
			Name: "rank", Title: "rank", Unit: "place", Is: table.Exact, Right: true, Width: 80,
			Doc: "place among the logits of the step, the highest first",
			Of:  at(func(c *candidate) table.Cell { return table.Count(c.rank) }),
		},
		{
			Name: "id", Title: "id", Unit: "id", Is: table.Exact, Right: true, Width: 80,
			Doc: "of the token",
			Of:  at(func(c *candidate) table.Cell { return table.Count(c.ID) }),
		},
		{
			Name: "text", Title: "text", Width: 80,
			Doc: "what the token stands for, in quotation marks",
			Of:  at(func(c *candidate) table.Cell { return table.Text(strconv.Quote(c.Text)) }),
		},
		{
			Name: "logit", Title: "logit", Unit: "logit", Is: table.Exact, Right: true, Width: 80,
			Doc: "as the model gave it, before any sampling",
			Of:  at(func(c *candidate) table.Cell { return table.Number(c.Logit, 3) }),
		},
		{
			Name: "p", Title: "%", Unit: "%", Is: table.Exact, Right: true, Width: 80,
			Doc: "probability among all tokens, at temperature 1",
			Of: at(func(c *candidate) table.Cell {
				if c.P == 0 {
					return table.Cell{}
				}
				return table.Number(100*c.P, 2)
			}),
		},
		{
			Name: "came", Title: "", Width: 80, Doc: "whether it is the token that came out",
			Of: at(func(c *candidate) table.Cell {
				if c.step.Token != nil && *c.step.Token == c.ID {
					return table.Text("✓")
				}
				return table.Cell{}
			}),
		},
	}, table.Flat(len(rows), func(row int) string {
		return fmt.Sprintf("s%d c%d", rows[row].step.Index, rows[row].rank)
	}))
	t.Notes = report.DroppedNotes(x)
	if len(rows) == 0 {
		t.Notes = append(t.Notes, "no step told of any: gpuscope run --top-logits K asks for them")
	}
	return t, nil
}
