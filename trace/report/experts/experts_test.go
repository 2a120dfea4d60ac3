package experts_test

import (
	"context"
	"slices"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/report/expertload"
	"gpuscope/trace/report/experts"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// made returns the table of experts of all steps, and a function that returns the cell of a row.
func made(t *testing.T, tr *trace.Trace) (*table.Table, func(row int, column string) table.Cell) {
	t.Helper()
	x := analyze.NewIndex(tr)
	kind, err := report.TableNamed("experts")
	if err != nil {
		t.Fatal(err)
	}
	of, err := kind.Of(context.Background(), x, analyze.Options{Selection: x.All()})
	if err != nil {
		t.Fatal(err)
	}
	return of, func(row int, column string) table.Cell { return of.Columns[of.Column(column)].Of(row) }
}

func TestEachRouterHasARowForEachExpert(t *testing.T) {
	tab, cell := made(t, tracetest.Mixture(5, [][2]int{{0, 3}, {2, 5}, {3, 2}}))
	if len(tab.Rows) != 5 || tab.Rows[3].Parent != 0 {
		t.Fatalf("rows %+v", tab.Rows)
	}
	for column, want := range map[string]float64{
		"tokens": 10, "active": 3, "imbalance": 2, "padding": 6, "idle_wg": 15, "us": 1, "padding_us": 0.375,
	} {
		if got := cell(0, column); !got.Has || got.Number != want {
			t.Errorf("%s of the router: %+v, want %v", column, got, want)
		}
	}
	if got := cell(3, "tokens"); got.Number != 5 {
		t.Errorf("tokens of expert 2: %+v", got)
	}
	lines := tab.From.(*experts.Routers).Lines(analyze.NewIndex(tracetest.Mixture(5)), 0)
	if len(lines) < 4 {
		t.Errorf("details %q", lines)
	}
}

// A trace of steps that were only planned has one row for each router, marked as modelled.
func TestUnrecordedChoicesAreMarkedAsModelled(t *testing.T) {
	tab, cell := made(t, tracetest.Mixture(5, nil))
	tokens, busiest := cell(0, "tokens").Text, cell(0, "busiest").Text
	if len(tab.Rows) != 1 || tokens != "~10" || busiest != "" {
		t.Errorf("%d rows, tokens %q, busiest %q", len(tab.Rows), tokens, busiest)
	}
}

func TestStripShowsTheBusiestOfEachGroup(t *testing.T) {
	if got := expertload.Strip([]float64{0, 8, 1, 0}, 4); got != "·█▂·" {
		t.Errorf("got %q", got)
	}
	many := make([]float64, 128)
	many[127] = 3
	got := []rune(expertload.Strip(many, 32))
	if len(got) != 32 || got[31] != '█' || slices.Contains(got[:31], '█') {
		t.Errorf("got %q", string(got))
	}
	if got := expertload.Strip(nil, 4); got != "" {
		t.Errorf("got %q", got)
	}
}
