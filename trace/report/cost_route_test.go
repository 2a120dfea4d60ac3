package report_test

import (
	"slices"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/report"
	"gpuscope/trace/report/costtable"
	"gpuscope/trace/report/outline"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// rerouted returns a trace in which the dispatches of a kernel take another route from a step on.
func rerouted(t *trace.Trace, kernel string, from int) *trace.Trace {
	other := map[trace.PlanID]trace.PlanID{}
	for i := from; i < len(t.Steps); i++ {
		list := slices.Clone(t.Steps[i].Dispatches)
		t.Steps[i].Dispatches = list
		for k := range list {
			p := t.Plans[list[k].Plan]
			if p.Kernel != kernel {
				continue
			}
			if _, there := other[p.ID]; !there {
				other[p.ID] = trace.PlanID(len(t.Plans))
				p.ID, p.Route, p.Kernel = trace.PlanID(len(t.Plans)), "other", kernel+"_other"
				t.Plans = append(t.Plans, p)
			}
			list[k].Plan = other[list[k].Plan]
		}
	}
	return t
}

// Attention takes another route at later positions. So its cost at an early position is not shown there, and
// neither is the cost of a row that contains it. Rows on the same routes keep their cost.
func TestACostIsShownOnlyBesideItsRoute(t *testing.T) {
	tr := rerouted(tracetest.Run(2, 40, 1, 1, 1, 1), "fd_split", 3)
	x := costed(t, tr, 2)
	before, after := x.Range(1, 2), x.Phase(trace.Decode)
	with, without := 0, 0
	folds := []analyze.Grouping{analyze.GroupLayer, analyze.GroupKernel, analyze.GroupOp, analyze.GroupNone}
	for _, fold := range folds {
		o := analyze.Options{Selection: before, Grouping: fold}
		was, err := report.Dispatches(ctx, x, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Selection = after
		d, err := report.Dispatches(ctx, x, o)
		if err != nil {
			t.Fatal(err)
		}
		if last := d.Selection.Steps; !slices.Equal(last, []int{3, 4}) {
			t.Fatalf("steps on the routes of the last step: %v", last)
		}
		for i := range d.Grouped {
			r, other := &d.Grouped[i], false
			for _, u := range r.Units {
				for _, l := range u {
					other = other || d.Launches[l].Plan.Route == "other"
				}
			}
			k := was.Row(r.Key)
			switch {
			case k < 0 || was.Grouped[k].Cost == nil:
			case other && (r.Cost != nil || r.Other == nil || d.CostLine(r) == ""):
				t.Errorf("grouped by %s: %s on another route has the cost %v", fold, d.Called(i), r.Cost)
			case !other && (r.Cost == nil || r.Other != nil):
				t.Errorf("grouped by %s: %s runs the same route and has no cost", fold, d.Called(i))
			case other:
				without++
			default:
				with++
			}
		}
		if n := len(d.Notes); fold == analyze.GroupLayer && n == len(was.Notes) {
			t.Error("no note says why rows have no cost")
		}
	}
	if with == 0 || without == 0 {
		t.Errorf("%d rows with a cost and %d without, want some of both", with, without)
	}
	g, err := outline.Graph(ctx, x, analyze.Options{Selection: after})
	if err != nil {
		t.Fatal(err)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Edge == "" && n.Label == "attn" && (n.Cost != nil || outline.NoCost(n) == "") {
			t.Errorf("attention has the cost %v in the graph", n.Cost)
		}
	}
}

// A profile of selected steps has only the costs of these steps.
func TestAProfileHasTheCostsOfItsSteps(t *testing.T) {
	x := costed(t, tracetest.Run(2, 40, 1, 1, 1), 3)
	for step, want := range map[int]bool{1: false, 3: true} {
		p, err := rates.Of(ctx, x, x.Step(step))
		if err != nil {
			t.Fatal(err)
		}
		has := slices.ContainsFunc(p.Kernels, func(k rates.KernelProfile) bool { return k.Cost != nil })
		if has != want {
			t.Errorf("s%d: costs %v, want %v", step, has, want)
		}
	}
}

// Rows sort by significance, whatever column of costs and whatever numbers: first costs above their error,
// then those within it, then those below 0, then unknown ones.
func TestCostsWithinNoiseRankBelowSignificantOnes(t *testing.T) {
	for _, kind := range []trace.AdapterType{trace.AdapterDiscrete, trace.AdapterCPU} {
		tr := tracetest.Run(2, 40, 1, 1)
		tr.Device.AdapterType = kind
		parts, err := analyze.NewIndex(tr).CostParts(ctx, 2)
		if err != nil {
			t.Fatal(err)
		}
		x := costedBy(tr, 2, parts[:len(parts)-4]...)
		costs := x.Trace.Steps[2].Costs
		for i, c := range []struct{ ns, off int64 }{{9_000_000, 9_900_000}, {-2000, 100}, {80_000, 80_000}} {
			costs[i].NS, costs[i].OffNS = c.ns, trace.Measured(c.off)
		}
		costs[3].N = 1 // its error is unknown
		x.Trace.Steps[2].Whole.NS = 1e9
		class := func(c *analyze.RowCost) int {
			switch {
			case c == nil || !c.ErrorKnown:
				return 3
			case float64(c.NS) > c.ErrorNS:
				return 0
			case float64(c.NS) >= -c.ErrorNS:
				return 1
			}
			return 2
		}
		d := dispatched(x, 2, analyze.Options{Grouping: analyze.GroupLayer})
		for _, column := range []string{"cost_us", "save_us"} {
			rows, err := d.Table.Apart().Select(ctx, table.Selection{Sort: column, Reverse: true})
			if err != nil {
				t.Fatal(err)
			}
			last := 0
			for _, row := range rows {
				if is := class(d.Grouped[row].Cost); d.Sortable(column) && (last > 0) && is == 0 {
					t.Errorf("%s by %s: %s is above the noise but comes late", kind, column, d.Called(row))
				} else {
					last = max(last, is)
				}
			}
		}
		made, err := costtable.Parts(ctx, x, analyze.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		marks, last := made.Column("cost_us_mark"), ""
		for row := range made.Rows {
			mark := made.Cell(row, marks).Text
			if mark == "" && last != "" && made.Cell(row, made.Column("cost_us")).Number > 0 {
				t.Errorf("%s: row %d is above the noise but comes after one marked %q", kind, row, last)
			}
			last = mark
		}
	}
}
