package outline

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/graphtree"
	"gpuscope/trace/analyze/memory"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

// Weighed returns the table with a column of bars and percentages that show the weight w of each row. It adds
// no column if all weights are 0. It adds none for the GPU time either, because the column "share" already
// has bars for it.
func (t *GraphTable) Weighed(w graphtree.GraphWeight) *table.Table {
	most := 0.0
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Edge == "" {
			most = max(most, w.Of(n))
		}
	}
	if most == 0 || w.Column == "sum_us" {
		return t.Table
	}
	bar := table.ColumnsOf(t.Nodes).Cell(80, table.Exact, "weight", w.Doc, "%",
		"the row's "+w.Doc+", relative to the largest in the table",
		func(n *graphtree.GraphNode) table.Cell {
			if n.Edge != "" || w.Of(n) == 0 {
				return table.Cell{}
			}
			return table.Number(100*w.Of(n)/most, 0)
		}).WithBars()
	return t.WithColumns(slices.Insert(slices.Clone(t.Columns), 2, bar))
}

func baselineCell(n *graphtree.GraphNode, decimals int) table.Cell {
	if !n.Delta.HasBaseline {
		return table.Cell{}
	}
	return table.Microseconds(n.Delta.BaselineNS/1e3, decimals)
}

// total returns the cell of a column in the line with the sums of all operators.
func (t *GraphTable) total(column string) table.Cell {
	decimals := table.DecimalsOfUS(t.Index.Trace.Clock.QuantumNS)
	switch n := t.Sum; {
	case column == "op":
		return table.Cell{Text: n.Label, Short: "total"}
	case column == "dispatches":
		return table.Count(len(n.Dispatches))
	case column == "sum_us" && n.Measured:
		return table.Microseconds(n.NS/1e3, decimals)
	case column == "base_us":
		return baselineCell(n, decimals)
	case column == "delta_us":
		return report.DeltaCell(t.Baseline, n.Delta, decimals)
	}
	return table.Cell{}
}

func (t *GraphTable) columns(w *graphtree.Weights) []table.Column {
	x := t.Index
	g := &x.Trace.Graph
	mem := memory.Of(x, t.Step())
	decimals := table.DecimalsOfUS(x.Trace.Clock.QuantumNS)
	of := table.ColumnsOf(t.Nodes)
	// weighed builds columns whose cells are empty in rows of values and in rows without dispatches.
	weighed := of.Where(func(n *graphtree.GraphNode) bool { return n.Edge == "" && len(n.Dispatches) > 0 })
	// single returns a function that computes cells. A cell holds the text that f returns for the operator of
	// the row. In a row of several equal operators, the cell is empty unless f returns the same text for all
	// of them.
	single := func(f func(*trace.Op) string) func(*graphtree.GraphNode) table.Cell {
		return func(n *graphtree.GraphNode) table.Cell {
			if n.Group || n.Edge != "" || len(n.Ops) == 0 {
				return table.Cell{}
			}
			s := f(&g.Ops[n.Ops[0][0]])
			for _, unit := range n.Ops[1:] {
				if f(&g.Ops[unit[0]]) != s {
					return table.Cell{}
				}
			}
			return table.Text(s)
		}
	}
	beside := table.Unseen
	if t.Baseline.Chosen() {
		beside = table.Kept
	}
	// Rows without dispatches can have a time at the baseline.
	operators := of.Where(func(n *graphtree.GraphNode) bool { return n.Edge == "" })
	baseline := operators.Cell(beside, table.Measured, "base_us", "baseline", "us",
		"GPU time of the same dispatches in a step of the baseline",
		func(n *graphtree.GraphNode) table.Cell { return baselineCell(n, decimals) })
	delta := operators.Cell(80, table.Measured, "delta_us", "Δµs", "us",
		"isolated time minus the baseline's isolated time; = means a difference within the noise, ? means that there are "+
			"too few times to know",
		func(n *graphtree.GraphNode) table.Cell { return report.DeltaCell(t.Baseline, n.Delta, decimals) })
	cost := weighed.Cell(80, table.Measured, "cost_us", "cost", "us",
		"time that the untimed step saves when this row is skipped, if measured; = means that the cost is smaller "+
			"than its error, ? means that the error is not known",
		func(n *graphtree.GraphNode) table.Cell {
			if n.Cost == nil {
				return table.Cell{}
			}
			return report.CostCell(x, n.Cost)
		})
	cost = of.WithHeat(cost, func(n *graphtree.GraphNode) float64 { return report.CostPart(n.Cost) })
	wasted := func(n *graphtree.GraphNode) float64 { return float64(n.Waste) / float64(max(1, n.Groups)) }
	// ran returns a function that computes cells. A cell lists one word for each dispatch of the row's
	// operator, such as its kernel, without duplicates. The function `word` returns this word. If a row has
	// several operators and their lists differ, the cell is empty.
	ran := func(word func(*analyze.Launch) string) func(*graphtree.GraphNode) table.Cell {
		return single(func(o *trace.Op) string {
			var words []string
			for _, l := range w.ByOp[o.ID] {
				if s := word(l); s != "" && !slices.Contains(words, s) {
					words = append(words, s)
				}
			}
			return strings.Join(words, ", ")
		})
	}
	deltaCost := report.DeltaCostColumn(of, 80, w.BaselineCosts,
		func(n *graphtree.GraphNode) *analyze.RowCost { return n.Cost })
	return []table.Column{
		of.Words(80, "op", "operator",
			"operators by layer and block; under each operator, the values that it reads and writes",
			func(n *graphtree.GraphNode) table.Cell {
				cell := report.RowName(n.Label)
				if n.Edge == "" && !n.Group && len(n.Ops) > 1 {
					cell.Name = strings.TrimSuffix(n.Label, fmt.Sprintf(" ×%d", len(n.Ops)))
				}
				return cell
			}).AsTree(),
		of.Words(80, "kind", "kind", "kind of an operator; for a value, its role (in, state or out) and type",
			func(n *graphtree.GraphNode) table.Cell {
				if n.Edge != "" {
					return table.Text(n.Edge + " " + analyze.TypeOf(&g.Values[n.Value]))
				}
				return single(func(o *trace.Op) string { return o.Kind })(n)
			}),
		of.Cell(140, table.Exact, "node", "node", "id", "id of the operator or value",
			func(n *graphtree.GraphNode) table.Cell {
				switch {
				case n.Edge != "":
					return table.Count(int(n.Value))
				case n.Group:
					return table.Cell{}
				}
				return table.Count(int(n.Ops[0][0]))
			}),
		of.Words(80, "live", "live",
			"shape of the value or of the operator's outputs in this step, or \"fused away\" if no kernel writes the value",
			func(n *graphtree.GraphNode) table.Cell {
				if n.Edge != "" {
					return report.Shapes(report.LiveText(mem, n.Value))
				}
				cell := single(func(o *trace.Op) string {
					var words []string
					for _, v := range o.Outputs {
						if text := report.LiveText(mem, v); text != memory.FusedAway {
							words = append(words, text)
						}
					}
					if len(words) == 0 && len(o.Outputs) > 0 {
						return memory.FusedAway
					}
					return strings.Join(words, ", ")
				})(n)
				return report.Shapes(cell.Text)
			}),
		weighed.Int(80, "dispatches", "disp", "dispatches", "number of dispatches that run",
			func(n *graphtree.GraphNode) int64 { return int64(len(n.Dispatches)) }),
		weighed.Cell(110, table.Measured, "us", "µs", "us",
			"GPU time of one dispatch, timed in isolation: median over the steps or over equal layers; empty for an "+
				"operator with several dispatches",
			func(n *graphtree.GraphNode) table.Cell {
				if !n.Each.Measured() {
					return table.Cell{}
				}
				return report.MicrosCell(x, n.Each)
			}),
		weighed.Cell(80, table.Measured, "sum_us", "total", "us",
			"GPU time in a step, in µs: sum of the row's dispatches timed in isolation, or of its blocks at timing "+
				"level block; for several steps, the sum of medians",
			func(n *graphtree.GraphNode) table.Cell {
				if !n.Measured {
					return table.Missing()
				}
				return table.Microseconds(n.NS/1e3, decimals)
			}),
		report.ShareColumn(weighed, t.ByCost, func(n *graphtree.GraphNode) (*analyze.RowCost, float64) {
			return n.Cost, n.Share
		}),
		cost, table.Marks(cost),
		of.WithHeat(weighed.Cell(80, table.Exact, "waste", "waste %", "%",
			"share of the launched workgroups that have no work",
			func(n *graphtree.GraphNode) table.Cell {
				if n.Waste == 0 || n.Groups == 0 {
					return table.Cell{}
				}
				return table.Number(100*wasted(n), 1)
			}), wasted),
		weighed.Cell(80, table.Measured, "gap_db", "SNR dB", "dB",
			"signal-to-noise ratio against the float64 reference; the lowest of the row's dispatches",
			func(n *graphtree.GraphNode) table.Cell {
				if !n.HasError {
					return table.Cell{}
				}
				return table.Cell{Text: report.Decibels(n.ErrorDB), Number: n.ErrorDB, Has: true}
			}),
		of.Words(140, "parts", "made of", "operators that were fused into this operator",
			single(func(o *trace.Op) string {
				names := make([]string, len(o.Parts))
				for i, part := range o.Parts {
					names[i] = analyze.Within(part, o)
				}
				return strings.Join(names, " + ")
			})),
		of.Words(140, "role", "role", "role of the value, and the memory that it uses",
			func(n *graphtree.GraphNode) table.Cell {
				if n.Edge == "" {
					return table.Cell{}
				}
				v := &g.Values[n.Value]
				return table.Text(strings.TrimSpace(string(v.Role) + " " + graphtree.MemoryOf(v)))
			}),
		of.Cell(140, table.Exact, "source", "source", "id", "id of the operator or value in the model file",
			func(n *graphtree.GraphNode) table.Cell {
				id := (*int)(nil)
				switch {
				case n.Edge != "":
					id = g.Values[n.Value].SourceID
				case !n.Group && len(n.Ops) == 1:
					id = g.Ops[n.Ops[0][0]].SourceID
				}
				if id == nil {
					return table.Cell{}
				}
				return table.Count(*id)
			}),
		// Columns of the comparison are at the right end, so that the others keep their places.
		baseline, delta, table.Marks(delta), deltaCost, table.Marks(deltaCost),
		of.Words(table.Unseen, "kernel", "kernel", "kernels of the row's dispatches",
			ran(func(l *analyze.Launch) string { return l.Plan.Kernel })),
		of.Words(table.Unseen, "reason", "route",
			"routes of the row's dispatches and why they were chosen",
			ran(func(l *analyze.Launch) string { return report.RouteText(l.Plan) })),
		of.Words(table.Unseen, "name", "name", "full names of the row's dispatches",
			ran((*analyze.Launch).Name)),
	}
}
