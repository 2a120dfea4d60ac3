package report_test

import (
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/graphtree"
	"gpuscope/trace/report/outline"
	"gpuscope/trace/tracetest"
)

// The graph's tree shows times and costs against a baseline. Each Δ is the difference of two figures, and is
// empty if one of them is unknown.
func TestTheGraphIsComparedWithABase(t *testing.T) {
	tr := tracetest.Run(2, 40, 1, 1, 1)
	for _, step := range []int{2, 3} {
		for i := range tr.Steps[step].Dispatches {
			d := &tr.Steps[step].Dispatches[i]
			ns, _ := d.GPUNS.NS()
			d.Samples = []int64{ns, ns + 500*int64(step-2)*int64(i%2), ns + 32}
		}
	}
	x := costed(t, tr, 2)
	x = costed(t, x.Trace, 3)
	for i := range x.Trace.Steps[3].Costs {
		c := &x.Trace.Steps[3].Costs[i]
		c.NS, c.Q1NS, c.Q3NS = c.NS+2000, c.Q1NS+2000, c.Q3NS+2000
	}
	tree := func(selection, baseline analyze.Selection) *outline.GraphTable {
		g, err := outline.Graph(ctx, x, analyze.Options{Selection: selection, Baseline: &analyze.Baseline{
			Index:     x,
			Selection: baseline,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	now, then := tree(x.Step(3), x.Step(2)), tree(x.Step(2), x.Step(3))
	timed, cost := 0, 0
	for row := range now.Nodes {
		n, m := &now.Nodes[row], &then.Nodes[row]
		if n.Edge != "" {
			continue
		}
		if d := n.Delta; d.Timed {
			timed++
			if d.BaselineNS != m.NS || d.TimeNS != n.NS-m.NS {
				t.Errorf("%s: %v - %v is shown as %v", n.Key, n.NS, d.BaselineNS, d.TimeNS)
			}
		}
		if n.Cost == nil {
			continue
		}
		cost++
		by := float64(n.Cost.NS-m.Cost.NS) / 1e3
		cell := now.Cell(row, now.Column("delta_cost_us"))
		if cell.Number != by || by > 2 && cell.Text == "=" {
			t.Errorf("%s costs %d, baseline %d: %+v", n.Key, n.Cost.NS, m.Cost.NS, cell)
		}
	}
	if timed < 20 || cost < 20 {
		t.Errorf("%d rows compare times, %d compare costs", timed, cost)
	}
	if title := now.Title[0].Fit(200); !strings.Contains(title, "Δ against s2") {
		t.Errorf("title %q", title)
	}
	x.Trace.Steps[2].Whole.Canary, x.Trace.Steps[3].Whole.Canary = 1, 0.8
	x.Trace.Steps[2].Canary, x.Trace.Steps[3].Canary = 1, 0.8
	moved := tree(x.Step(3), x.Step(2))
	for row := range moved.Nodes {
		if moved.Nodes[row].Delta.Timed || moved.Cell(row, moved.Column("delta_cost_us")).Has {
			t.Fatalf("the clock moved, but %s has a difference", moved.Nodes[row].Key)
		}
	}
	if title := moved.Title[0].Fit(200); !strings.Contains(title, "clock moved") {
		t.Errorf("title %q", title)
	}
}

// Costs that are not significant give no operator of the tree a bar, and their differences are marked.
func TestCostsThatAreNoFiguresColourNothing(t *testing.T) {
	tr := tracetest.Run(2, 40, 1, 1, 1)
	tr.Device.AdapterType = trace.AdapterCPU
	x := costed(t, costed(t, tr, 2).Trace, 3)
	at := slices.IndexFunc(graphtree.GraphWeights, func(w graphtree.GraphWeight) bool { return w.Column == "cost_us" })
	bars := func() (weighed, differ int, marks string) {
		baseline := &analyze.Baseline{Index: x, Selection: x.Step(2)}
		g, err := outline.Graph(ctx, x, analyze.Options{Selection: x.Step(3), Baseline: baseline})
		if err != nil {
			t.Fatal(err)
		}
		made := g.Weighed(graphtree.GraphWeights[at])
		weight := made.Column("weight") // -1 if no row has a bar
		for row := range g.Nodes {
			if weight >= 0 && made.Cell(row, weight).Text != "" {
				weighed++
			}
			if g.Nodes[row].Cost != nil && made.Cell(row, made.Column("delta_cost_us")).Text != "" {
				marks += made.Cell(row, made.Column("delta_cost_us_mark")).Text
				differ++
			}
		}
		return weighed, differ, marks
	}
	costs := x.Trace.Steps[3].Costs
	for i := range costs {
		costs[i].NS += 2000
	}
	if weighed, differ, marks := bars(); weighed < 10 || differ < 20 || strings.Contains(marks, "?") {
		t.Errorf("30 rounds: %d rows have bars, %d differences, marked %q", weighed, differ, marks)
	}
	for i := range costs {
		costs[i].N = 3
	}
	if weighed, differ, marks := bars(); weighed > 0 || marks != strings.Repeat("?", differ) {
		t.Errorf("3 rounds: %d rows have bars; differences are marked %q", weighed, marks)
	}
}
