package classes_test

import (
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	_ "gpuscope/trace/report/classes" // registers the table
	"gpuscope/trace/table"
)

// ran returns a run of one decode step, whose operators of attention take the given times in µs. A negative
// time was not measured.
func ran(t *testing.T, engine string, joined trace.Joined, times map[string]int64) *analyze.Index {
	t.Helper()
	layer := 0
	tr := &trace.Trace{Schema: trace.Schema, Engine: engine}
	s := trace.Step{Phase: trace.Decode, Timing: trace.TimingDispatch}
	for _, name := range []string{"q", "k", "sdpa"} {
		us, ok := times[name]
		if !ok {
			continue
		}
		kind, id := "linear_f16", len(tr.Plans)
		if name == "sdpa" {
			kind = "sdpa_with_kv_cache"
		}
		tr.Graph.Ops = append(tr.Graph.Ops, trace.Op{
			ID: trace.OpID(id), Name: "layers.0.attn." + name, Kind: kind, Layer: &layer, Block: "attn",
		})
		tr.Graph.Dispatches = append(tr.Graph.Dispatches, trace.Dispatch{
			ID: trace.DispatchID(id), Op: trace.OpID(id), Kernels: []string{"k"}, Joined: joined,
		})
		plan := trace.Plan{ID: trace.PlanID(id), Dispatch: trace.DispatchID(id), Kernel: "k"}
		tr.Plans = append(tr.Plans, plan)
		d := trace.StepDispatch{Plan: plan.ID}
		if us >= 0 {
			d.GPUNS = trace.Measured(us * 1000)
		}
		s.Dispatches = append(s.Dispatches, d)
	}
	tr.Steps = []trace.Step{s}
	return analyze.NewIndex(tr)
}

func made(t *testing.T, x *analyze.Index, o analyze.Options) *table.Table {
	t.Helper()
	kind, err := report.TableNamed("classes")
	if err != nil {
		t.Fatal(err)
	}
	o.Selection = x.Phase(trace.Decode)
	tab, err := kind.Of(t.Context(), x, o)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// cell returns the cell of a column in the row of a class.
func cell(t *testing.T, tab *table.Table, class, column string) table.Cell {
	t.Helper()
	at := tab.Column(column)
	for row := range tab.Rows {
		if at >= 0 && tab.Cell(row, 0).Text == class {
			return tab.Cell(row, at)
		}
	}
	t.Fatalf("no column %s, or no class %s", column, class)
	return table.Cell{}
}

func TestAClassIsBesideThatOfTheOtherEngine(t *testing.T) {
	t.Parallel()
	x := ran(t, "", "", map[string]int64{"q": 30, "k": -1})
	theirs := ran(t, "llama.cpp", trace.JoinedByShape, map[string]int64{"q": 12, "k": 4, "sdpa": 7})
	tab := made(t, x, analyze.Options{
		Baseline: &analyze.Baseline{Index: theirs, Selection: theirs.Phase(trace.Decode)},
	})
	const none, unmeasured = -1, -2
	for class, want := range map[string]map[string]float64{
		"q and o": {"us": 30, "base_us": 12, "difference_us": 18, "ratio": 2.5, "rows": 1, "base_rows": 1},
		"k and v": {
			"us": unmeasured, "base_us": 4, "difference_us": unmeasured, "ratio": none, "rows": 1,
			"base_rows": 1,
		},
		"attention": {
			"us": none, "base_us": 7, "difference_us": -7, "ratio": none, "rows": 0, "base_rows": 1,
		},
		"all": {
			"us": unmeasured, "base_us": 23, "difference_us": unmeasured, "ratio": none, "rows": 2,
			"base_rows": 3,
		},
	} {
		for column, number := range want {
			switch got := cell(t, tab, class, column); {
			case number == none && (got.Has || got.Text != ""),
				number == unmeasured && (got.Has || got.Text != table.Unmeasured),
				number != none && number != unmeasured && (!got.Has || got.Number != number):
				t.Errorf("%s, %s: %+v, want %g", class, column, got, number)
			}
		}
		if got := cell(t, tab, class, "joined").Text; got != string(trace.JoinedByShape) {
			t.Errorf("%s is joined by %q", class, got)
		}
	}
	if len(tab.Rows) != 4 || tab.Cell(3, 0).Text != "all" {
		t.Errorf("%d rows, and the last is %q", len(tab.Rows), tab.Cell(len(tab.Rows)-1, 0).Text)
	}
}

func TestColumnsOfTheBaselineNeedABaseline(t *testing.T) {
	t.Parallel()
	tab := made(t, ran(t, "", "", map[string]int64{"q": 30}), analyze.Options{})
	shown := map[string]bool{}
	for _, c := range tab.Shown(0) {
		shown[tab.Columns[c].Name] = true
	}
	for name, want := range map[string]bool{
		"class": true, "us": true, "rows": true, "base_us": false, "difference_us": false, "ratio": false,
		"base_rows": false, "joined": false,
	} {
		if shown[name] != want {
			t.Errorf("column %s is shown: %v", name, shown[name])
		}
	}
}
