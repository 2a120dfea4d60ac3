package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// Layers that resized in the same way share one row, which shows the change of the grid and contains each
// layer.
func TestResizeFoldsEqualLayers(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(16, 3))
	tab := resized(x, 1)
	var said []string
	children := map[string]int{}
	for i, r := range tab.Rows {
		if r.Depth == 1 {
			said = append(said, strings.TrimSpace(tab.Cell(i, 0).Text+" | "+tab.Cell(i, 2).Text))
		}
		if r.Depth == 2 {
			children[tab.Cell(r.Parent, 0).Text]++
		}
	}
	for _, want := range []string{
		"attn.norm ×16 | 42→1 · 1×42×2048 → 1×1×2048",
		"mlp.down ×16 | 32→1024 r steel→bicol · 1×42×2048 → 1×1×2048",
		"attn.sdpa ×16 | qk - · softmax - · av - · split + · reduce + · 1×42×2048 → 1×1×2048",
	} {
		if got := strings.Join(said, "\n"); !strings.Contains(got, want) {
			t.Errorf("no row %q in\n%s", want, got)
		}
	}
	if n := children["mlp.down ×16"]; n != 16 {
		t.Errorf("mlp.down ×16 holds %d layers", n)
	}
	rows, err := tab.Select(t.Context(), table.Selection{})
	if err != nil || len(rows) > 30 {
		t.Errorf("%d rows are shown for a change from prefill to decode, error %v", len(rows), err)
	}
	keys := map[string]bool{}
	for _, r := range tab.Rows {
		if keys[r.Key] {
			t.Errorf("two rows have the key %s", r.Key)
		}
		keys[r.Key] = true
	}
}

// At every width the title names the fixpoint order, because it explains why a hook ran more than once.
func TestTheOrderOfPassesIsNotLost(t *testing.T) {
	for order, want := range map[string]string{
		"fixpoint": "fixpoint: ", "topological": "",
	} {
		tr := tracetest.Llama(2, 3)
		for i := range tr.Steps {
			tr.Steps[i].Resize.Order = order
		}
		title := resized(analyze.NewIndex(tr), 2).Title[0].Fit(40)
		if !strings.Contains(title, want) || strings.Contains(title, "topological") {
			t.Errorf("%s: %q", order, title)
		}
	}
}

// Changes of routes and of dispatches are kept in the title as long as changes of grids. How the resize ran
// is cut first.
func TestTheTitleOfAResizeKeepsWhatChanged(t *testing.T) {
	title := resized(analyze.NewIndex(tracetest.Llama(16, 3)), 1).Title[0]
	for _, w := range []int{60, 78, 120} {
		said := title.Fit(w)
		for _, want := range []string{" re-planned, ", " grids", " routes, ", " new, ", " removed"} {
			if !strings.Contains(said, want) && !strings.Contains(said, strings.Replace(want, " ", " dispatches ", 1)) {
				t.Errorf("at width %d: %q does not contain%s", w, said, want)
			}
		}
	}
}

// A pass that changes a grid is expanded, even if the same pass of the previous step changed one too. A pass
// without changes is collapsed, even if it ran other hooks.
func TestAPassThatChangesAGridIsOpen(t *testing.T) {
	tr := fixpointed(1)
	tr.Steps[0].Resize = tr.Steps[1].Resize
	tr.Steps[1].Resize.Passes = append(slices.Clone(tr.Steps[1].Resize.Passes),
		trace.Pass{Index: 2, Hooks: []trace.Hook{{Op: 0, Deferred: true}}})
	var open []bool
	for _, r := range report.ResizeRows(ctx, analyze.NewIndex(tr), 1) {
		if r.Hook == nil {
			open = append(open, r.Open)
		}
	}
	if want := []bool{true, true, false}; !slices.Equal(open, want) {
		t.Errorf("passes are expanded: %v, want %v", open, want)
	}
}

// The time of a grouped row is the sum of its layers.
func TestGroupedHookHasTheTimeOfItsLayers(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(4, 3))
	tab := resized(x, 1)
	us := tab.Column("us")
	sums := map[int]float64{}
	for i, r := range tab.Rows {
		if r.Depth == 2 && strings.HasPrefix(tab.Cell(i, 0).Text, "L") {
			sums[r.Parent] += tab.Cell(i, us).Number
		}
	}
	if len(sums) == 0 {
		t.Fatal("no rows are grouped")
	}
	for row, want := range sums {
		if got := tab.Cell(row, us).Number; fmt.Sprintf("%.3f", got) != fmt.Sprintf("%.3f", want) {
			t.Errorf("%s: %v µs, its layers add up to %v", tab.Cell(row, 0).Text, got, want)
		}
	}
}
