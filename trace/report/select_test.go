package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// shown lists the labels of the rows that match a filter, indented by their depth.
func shown(t *testing.T, tab *table.Table, filter string, s table.Selection) (list []string) {
	t.Helper()
	var err error
	if s.Filter, err = tab.ParseFilter(ctx, filter); err != nil {
		t.Fatal(err)
	}
	rows, err := tab.Select(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		list = append(list, strings.Repeat(" ", tab.Rows[r].Depth)+tab.Cell(r, tab.Column("op")).Text)
	}
	return list
}

func TestFilterKeepsMatchesAndTheirParents(t *testing.T) {
	x, step, _ := decode(t)
	tab := dispatched(x, step, analyze.Options{}).Table
	for _, c := range []struct {
		filter string
		want   []string
	}{
		{"norm", []string{"layers 0–15", " attn", "  norm", " mlp", "  norm", "epilogue", " norm"}},
		{"FD_", []string{"layers 0–15", " attn", "  sdpa.split", "  sdpa.reduce"}},
		{"re:^(q|k)$", []string{"layers 0–15", " attn", "  q", "  k"}},
		{"kernel:mul", []string{"layers 0–15", " mlp", "  mul_silu", "  mul_gate"}},
		{"op:=k", []string{"layers 0–15", " attn", "  k"}},
		{"op:=K kernel:linear", []string{"layers 0–15", " attn", "  k"}},
		{"op:=attn.k", nil},
		{"us:>13.6", []string{
			"prologue", " embed", "layers 0–15", " attn", "  sdpa.split", "   L9", "   L11",
			" mlp", "  gate", "  up", "  down",
		}},
		{"us:>0.0136ms mlp", []string{"layers 0–15", " mlp", "  gate", "  up", "  down"}},
		{"us:<5.05 cache", []string{"layers 0–15", " attn", "  cache_k", "  cache_v"}},
		{"grid:=4096 !up", []string{"layers 0–15", " mlp", "  gate"}},
		{
			"!linear !floor !norm",
			[]string{"prologue", " embed", "layers 0–15", " attn", "  sdpa.split", " mlp", "  add"},
		},
		{
			"mlp",
			[]string{
				"layers 0–15", " mlp", "  norm", "  gate", "  sigmoid", "  mul_silu", "  up",
				"  mul_gate", "  down", "  add",
			},
		},
		{"mlp us:>13.5", []string{"layers 0–15", " mlp", "  gate", "  up", "  down"}},
		{"linear !mlp", []string{"layers 0–15", " attn", "  q", "  k", "  v", "  o", "epilogue", " lm_head"}},
		{"nothing-has-this", nil},
	} {
		t.Run(c.filter, func(t *testing.T) {
			if d := cmp.Diff(c.want, shown(t, tab, c.filter, table.Selection{})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestFilterUnfoldsTheWayToWhatItFinds(t *testing.T) {
	x, step, _ := decode(t)
	tab := dispatched(x, step, analyze.Options{}).Table
	want := []string{"layers 0–15", " attn", "  q", "   L3"}
	if d := cmp.Diff(want, shown(t, tab, "layers.3.attn.q", table.Selection{})); d != "" {
		t.Error(d)
	}
}

func TestNumberSignFindsARow(t *testing.T) {
	tab := dispatched(analyze.NewIndex(tracetest.Llama(1, 2)), 1, analyze.Options{}).Table
	for filter, equal := range map[string]bool{"#3": true, "id:=3": true, "!#3": false, "3": false} {
		f, err := tab.ParseFilter(ctx, filter)
		if n, got := f.Equal(tab.Column("#")); err != nil || got != equal || got && n != 3 {
			t.Errorf("%s: %v, %v, %v", filter, n, got, err)
		}
	}
}

func TestFilterThatMeansNothingIsRefused(t *testing.T) {
	tab := dispatched(analyze.NewIndex(tracetest.Llama(1, 2)), 1, analyze.Options{}).Table
	for _, c := range []struct{ filter, want string }{
		{"speed:>1", `no column "speed"; its columns are ` + tab.Columns[0].Name},
		{"us:>fast", `"fast" is not a number`},
		{"grid:>3ms", `the unit of the column is "workgroups", not "ms"`},
		{"re:(", "missing closing )"},
	} {
		if _, err := tab.ParseFilter(ctx, c.filter); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.filter, err, c.want)
		}
	}
	if _, err := tab.Select(ctx, table.Selection{Sort: "speed"}); err == nil {
		t.Error("accepted an unknown sort column")
	}
}

func TestSortOrdersRowsWithinTheirHeading(t *testing.T) {
	x, step, _ := decode(t)
	tab := dispatched(x, step, analyze.Options{}).Table
	got := shown(t, tab, "",
		table.Selection{
			Sort: "total", Reverse: true,
			Open: map[string]bool{"layer0/attn": false, "epilogue": false, "prologue": false},
		})
	want := []string{
		"layers 0–15", " attn", " mlp", "  down", "  up", "  gate", "  norm", "  mul_silu",
		"  add", "  mul_gate", "  sigmoid", "epilogue", "prologue",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Without headings all rows have one order: the second row is the second of all rows, not the first of the
// second block.
func TestRowsApartStandInOneOrder(t *testing.T) {
	x, step, _ := decode(t)
	tab := dispatched(x, step, analyze.Options{}).Table
	apart := tab.Apart()
	got := shown(t, apart, "", table.Selection{Sort: "total", Reverse: true})
	want := []string{
		"mlp.down", "mlp.up", "mlp.gate", "attn.sdpa.split", "attn.norm", "mlp.norm",
	}
	if d := cmp.Diff(want, got[:min(len(got), len(want))]); d != "" {
		t.Error(d)
	}
	for _, name := range got {
		if slices.Contains([]string{"layers 0–15", "attn", "mlp", "prologue", "epilogue"}, name) {
			t.Errorf("the heading %s is shown", name)
		}
	}
	down := slices.IndexFunc(apart.Rows, func(r table.Row) bool { return r.Apart == "mlp.down" })
	open := shown(t, apart, "", table.Selection{
		Sort: "total", Reverse: true, Open: map[string]bool{apart.Rows[down].Key: true},
	})
	if len(open) != len(got)+16 || !strings.HasPrefix(open[1], " L") {
		t.Errorf("expanded, it shows %q", open[:3])
	}
	if flat := apart.Apart(); flat != apart {
		t.Error("a table without headings is flattened again")
	}
}

func TestRowsWithoutANumberComeLastHoweverSorted(t *testing.T) {
	x, step, _ := decode(t)
	tab := dispatched(x, step, analyze.Options{Grouping: analyze.GroupNone}).Table
	col := tab.Column("lost_us")
	for _, reverse := range []bool{false, true} {
		rows, err := tab.Select(ctx, table.Selection{Sort: "lost_us", Reverse: reverse})
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(rows); i++ {
			a, b := tab.Cell(rows[i-1], col), tab.Cell(rows[i], col)
			if !a.Has && b.Has || a.Has && b.Has && (a.Number > b.Number) != reverse && a.Number != b.Number {
				t.Fatalf("reverse %v: %q before %q", reverse, a.Text, b.Text)
			}
		}
	}
}

func TestColumnWithEqualCellsIsUniform(t *testing.T) {
	x, step, _ := decode(t)
	tab := dispatched(x, step, analyze.Options{}).Table
	filter, err := tab.ParseFilter(ctx, "kernel:linear")
	if err != nil {
		t.Fatal(err)
	}
	var rows []int
	selected, err := tab.Select(ctx, table.Selection{Filter: filter})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range selected {
		if !tab.Rows[r].Group {
			rows = append(rows, r)
		}
	}
	var names []string
	uniform, err := tab.Uniform(ctx, rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range uniform {
		names = append(names, tab.Columns[c].Name)
	}
	for column, equal := range map[string]bool{
		"kernel": true, "wg": true, "reason": true, "op": false, "id": false,
	} {
		if slices.Contains(names, column) != equal {
			t.Errorf("columns %v have equal cells; %s: want %v", names, column, equal)
		}
	}
}
