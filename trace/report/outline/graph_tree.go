package outline

import (
	"context"
	"slices"

	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/graphtree"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

// GraphTable is the graph as a tree. It has layers with their blocks and operators, the operators before
// and after the layers, and the inputs and outputs of each operator. Equal layers are one row, as in the
// table of dispatches. Grouping by "none" shows each layer separately. Grouping by "op" shows operators by
// kind, and so does grouping by "kernel", because an operator may have several kernels.
type GraphTable struct {
	*table.Table
	*graphtree.GraphTree
}

func init() {
	report.Register(report.Table{
		Name: "graph", Takes: report.AnySteps, Folds: true, Compares: true, OfGraph: true,
		Doc: "the graph as a tree of layers, blocks, operators and values, with each operator's time",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			t, err := Graph(ctx, x, o)
			if err != nil {
				return nil, err
			}
			return t.Table, nil
		},
	})
}

// NoCost explains why a measured cost does not apply to a node. It returns "" if the cost applies or if
// there is none.
func NoCost(n *graphtree.GraphNode) string {
	if n.Other == nil {
		return ""
	}
	return report.OtherWork(n.Costs, n.Other)
}

// Graph returns the table of the graph with the numbers of a selection and the comparison with a baseline.
func Graph(ctx context.Context, x *analyze.Index, o analyze.Options) (*GraphTable, error) {
	g, err := graphtree.Of(ctx, x, o)
	if err != nil {
		return nil, err
	}
	t := &GraphTable{GraphTree: g}
	t.Table = table.New("graph", t.columns(g.W), g.Tree)
	t.Title, t.From = []table.Line{t.title(g.Grouping, g.W)}, t
	return t, nil
}

func (t *GraphTable) title(fold analyze.Grouping, w *graphtree.Weights) table.Line {
	g := &t.Index.Trace.Graph
	parts := []table.Segment{
		table.Say(2, "grouped by %s", fold),
		table.Say(4, "%s", table.Plural(len(g.Ops), "operator")),
		table.Say(6, "%s", table.Plural(len(g.Values), "value")),
	}
	if t.Selection.Chosen() {
		parts = append(parts, report.SelectionPart(t.Selection))
	}
	compared := func(n graphtree.GraphNode) bool {
		return n.Delta.Timed || n.Cost != nil && report.Delta(w.BaselineCosts, n.Cost).Has
	}
	switch {
	case w.ClockMoved:
		parts = append(parts, table.Segment{
			Rank: 0, Text: "GPU clock moved: times not compared",
			Short: "clock moved",
		})
	case slices.ContainsFunc(t.Nodes, compared):
		of := t.Baseline.Selection
		parts = append(parts, table.Segment{
			Rank: 0, Text: "Δ against " + of.Called(),
			Short: "Δ " + of.Short(),
		},
			report.OtherTrace(t.Index, t.Baseline.Index))
	case w.Single:
		parts = append(parts, table.Say(6, "no Δ against %s: only 1 sample", t.Baseline.Selection.Called()))
	}
	switch {
	case w.Total > 0:
		took := table.Millis(analyze.Whole(w.Total), true)
		alone := table.Segment{Rank: 5, Text: "isolated " + took}
		if _, one := t.Selection.One(); !one { // not Σgpu, the median of the steps' sums
			alone.Text, alone.Short = "medians of isolated times add up to "+took, alone.Text
		}
		parts = append(parts, alone)
	case w.Blocks != nil:
		parts = append(parts, report.OfBlocks)
	}
	return table.Title(parts...)
}
