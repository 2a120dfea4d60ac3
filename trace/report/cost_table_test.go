package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/google/go-cmp/cmp"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/report/costtable"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

func TestCostTableIsSortedByPotentialSaving(t *testing.T) {
	tr := tracetest.Run(2, 40, 1, 1)
	parts, err := analyze.NewIndex(tr).CostParts(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	both, err := analyze.NewIndex(tr).Named(ctx, 2, "*.norm,add*")
	if err != nil {
		t.Fatal(err)
	}
	x := costedBy(tr, 2, append(parts, both)...)
	made, err := costtable.Parts(ctx, x, analyze.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := costtable.Groups(ctx, x, analyze.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, slices.Concat(printed(t, made, table.Selection{}, 110), []byte("\n"),
		printed(t, groups, table.Selection{}, 110)))
}

// Every kernel has a cost, summed over all its rows, and the slowest kernel comes first.
func TestKernelsHaveCosts(t *testing.T) {
	x := costed(t, tracetest.Run(2, 40, 1, 1), 2)
	selection, err := x.ParseSelection("decode")
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.Dispatches(ctx, x, analyze.Options{Selection: selection, Grouping: analyze.GroupKernel})
	if err != nil {
		t.Fatal(err)
	}
	slowest := 0
	for i := range d.Grouped {
		if r := &d.Grouped[i]; r.Parent < 0 {
			if r.Cost == nil {
				t.Errorf("kernel %s has no cost", r.Label)
			} else if r.Cost.NS > d.Grouped[slowest].Cost.NS {
				slowest = i
			}
		}
	}
	const want = "×15 q, k, v, o, gate, up, down, lm_head"
	if got := d.Cell(slowest, d.Column("serves")).Text; got != want {
		t.Errorf("the slowest kernel serves %q, want %q", got, want)
	}
	rows, err := d.Select(ctx, table.Selection{Sort: "cost_us", Reverse: true})
	if err != nil || rows[0] != slowest || d.Grouped[slowest].Label != "linear_q4gsw_coop4_bicol" {
		t.Errorf("%v: the first row by cost is %d, the slowest is %d, %s", err, rows[0], slowest,
			d.Grouped[slowest].Label)
	}
}

// Rows with unknown costs come last, in the order of their isolated times. The table explains its marks.
func TestCostTableExplainsItsMarks(t *testing.T) {
	tr := tracetest.Run(2, 40, 1)
	tr.Device.AdapterType = trace.AdapterCPU
	x := costed(t, tr, 1)
	s := &x.Trace.Steps[1]
	for i := range s.Costs {
		if c := &s.Costs[i]; i%3 == 0 {
			c.N, c.NS = 3, int64(i%5)*1000
		} else if i%3 == 1 {
			c.NS = 100
		}
	}
	s.Costs[0].N, s.Costs[0].NS = 30, 2*s.Whole.NS // of all layers
	made, err := costtable.Parts(ctx, x, analyze.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"18 of 26 rows have a known cost; they add up to 87 ± 2.1 µs, 38.9 % of the step",
		"= not significant",
		"? 3 of 5 rounds: error not known yet",
	}
	if d := cmp.Diff(want, made.Notes); d != "" {
		t.Error(d)
	}
	groups, err := costtable.Groups(ctx, x, analyze.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	disturbed := "? 3 of 5 rounds: error not known yet; or larger than the whole step: the run was disturbed"
	if last := groups.Notes[len(groups.Notes)-1]; last != disturbed {
		t.Errorf("groups: %q, want %q", last, disturbed)
	}
	alone := 1e18
	for row := range made.Rows {
		cell := func(column string) table.Cell { return made.Cell(row, made.Column(column)) }
		switch unknown := cell("cost_us_mark").Text == "?"; {
		case !unknown && alone < 1e18:
			t.Fatalf("row %d has a known cost but comes after an unknown one", row)
		case unknown && cell("alone_us").Number > alone:
			t.Errorf("row %d has a longer isolated time than the previous row", row)
		case unknown:
			alone = cell("alone_us").Number
		}
	}
}

// If no cost is known, the table says so once and gives the reason, without a mark in each row.
func TestCostTableWithoutKnownCosts(t *testing.T) {
	tr := tracetest.Run(2, 40, 1)
	tr.Device.AdapterType = trace.AdapterCPU
	x := costed(t, tr, 1)
	for i := range x.Trace.Steps[1].Costs {
		x.Trace.Steps[1].Costs[i].N = 3
	}
	made, err := costtable.Parts(ctx, x, analyze.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	out := string(printed(t, made, table.Selection{}, 200))
	const want = "3 of 5 rounds"
	if strings.Count(out, want) != 1 || strings.Contains(out, "?") {
		t.Errorf("want %q once and no marks:\n%s", want, out)
	}
	if cell := made.Cell(0, made.Column("cost_us_mark")); cell.Text != "?" {
		t.Errorf("machine-readable mark is %q", cell.Text)
	}
}

func TestNamesSelectRowsToSkipTogether(t *testing.T) {
	x := analyze.NewIndex(tracetest.Run(2, 40, 1))
	d := dispatched(x, 1, analyze.Options{})
	of := func(names ...string) trace.Part {
		p, err := x.Named(ctx, 1, strings.Join(names, ", "))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	row := func(key string) (ids []trace.DispatchID) {
		for _, u := range d.Grouped[d.Row(key)].Units {
			for _, i := range u {
				ids = append(ids, d.Launches[i].ID)
			}
		}
		return ids
	}
	if d := cmp.Diff(trace.Part{Name: "attn", Dispatches: row("layer0/attn")}, of("attn")); d != "" {
		t.Error(d)
	}
	if a, b := of("attn.q"), of("q", "attn.q"); !slices.Equal(a.Dispatches, b.Dispatches) ||
		len(a.Dispatches) != 2 || b.Name != "q + attn.q" {
		t.Errorf("%v and %v", a, b)
	}
	kinds := of("rms_norm")
	if n := len(kinds.Dispatches); n != 5 {
		t.Errorf("%d norms in two layers and after them, want 5", n)
	}
	if got := of("*norm*"); !slices.Equal(got.Dispatches, kinds.Dispatches) {
		t.Errorf("%v, want %v", got, kinds)
	}
	for _, wrong := range []string{"nrm", "["} {
		if _, err := x.Named(ctx, 1, "norm,"+wrong); err == nil ||
			!strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
