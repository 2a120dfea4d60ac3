package outline

import (
	"context"
	"slices"
	"sync"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/graphtree"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

// GraphTable is the graph as a tree. It has layers with their blocks and operators, the operators before and
// after the layers, and the inputs and outputs of each operator. Equal layers are one row, as in the table of
// dispatches. Grouping by "none" shows each layer separately. Grouping by "op" shows operators by kind, and
// so does grouping by "kernel", because an operator may have several kernels. A filter finds an operator if
// the same filter finds one of its dispatches in the table of dispatches.
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

// NoCost explains why a measured cost does not apply to a node. It returns "" if the cost applies, or if no
// cost was measured.
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
	if t.Sum != nil {
		t.Table.Total = t.total
	}
	if len(o.Selection.Steps) > 0 {
		t.Finder = t.finder(x, o)
	}
	return t, nil
}

// finder returns the filter of the graph: it applies the words of a filter to the table of dispatches, and
// finds the operators of the dispatches that match there.
func (t *GraphTable) finder(x *analyze.Index, o analyze.Options) *table.Finder {
	var mu sync.Mutex
	var dispatches *report.DispatchTable
	return &table.Finder{
		Other: func(ctx context.Context) (*table.Table, error) {
			mu.Lock()
			defer mu.Unlock()
			if dispatches == nil {
				d, err := report.Dispatches(ctx, x, o)
				if err != nil {
					return nil, err
				}
				dispatches = d
			}
			return dispatches.Table, nil
		},
		Find: func(other *table.Table, kept []int) []table.Finding {
			found := map[trace.OpID]bool{}
			for _, id := range other.From.(*report.DispatchTable).Operators(kept...) {
				found[id] = true
			}
			rows := make([]table.Finding, len(t.Nodes))
			for i := range t.Nodes {
				rows[i] = t.finding(&t.Nodes[i], found)
			}
			return rows
		},
	}
}

// finding returns whether a filter found a node. `found` holds the operators that the filter found. A node
// of several operators is found if all of its operators are found. A heading is never found itself: it is
// shown above the operators that are found.
func (t *GraphTable) finding(n *graphtree.GraphNode, found map[trace.OpID]bool) table.Finding {
	ran, all := false, true
	for _, unit := range n.Ops {
		for _, id := range unit {
			ran = ran || len(t.W.ByOp[id]) > 0
			all = all && found[id]
		}
	}
	switch {
	case !ran:
		return table.Unlisted
	case n.Group || !all:
		return table.Missed
	case n.Edge != "":
		return table.FoundAround
	}
	return table.Found
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
		return n.Delta.Measured && t.Baseline.Shows(&n.Delta) ||
			n.Cost != nil && report.Delta(w.BaselineCosts, n.Cost).Has
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
			Rank: 0, Text: "Δ against " + report.BaselineName(of),
			Short: "Δ " + of.Short(),
		},
			report.OtherTrace(t.Index, t.Baseline.Index))
	case w.Single:
		parts = append(parts, table.Say(6, "no Δ against %s: the noise of a single sample is unknown",
			report.BaselineName(t.Baseline.Selection)))
	}
	switch {
	case w.Total > 0:
		took := table.Millis(analyze.Whole(w.Total), true)
		alone := table.Segment{Rank: 5, Text: "isolated " + took}
		if _, one := t.Selection.One(); !one { // unlike Σgpu, which is the median of the steps' sums
			alone.Text, alone.Short = "medians of isolated times add up to "+took, alone.Text
		}
		parts = append(parts, alone)
	case w.Blocks != nil:
		parts = append(parts, report.OfBlocks)
	}
	return table.Title(parts...)
}
