package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/report/outline"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// A filter finds the same operators in Graph and in Dispatches, whatever it compares: names, layers, kernels,
// ids, times, grids.
func TestGraphFilterFindsWhatDispatchesFilterFinds(t *testing.T) {
	x := analyze.NewIndex(tracetest.Run(3, 40, 1, 1))
	for _, selection := range []analyze.Selection{x.Step(0), x.Step(2), x.Range(1, 2)} {
		for _, fold := range []analyze.Grouping{
			analyze.GroupLayer, analyze.GroupOp, analyze.GroupKernel, analyze.GroupNone,
		} {
			o := analyze.Options{Selection: selection, Grouping: fold}
			d, err := report.Dispatches(ctx, x, o)
			if err != nil {
				t.Fatal(err)
			}
			g, err := outline.Graph(ctx, x, o)
			if err != nil {
				t.Fatal(err)
			}
			words := []string{
				"norm", "!norm", "layers.1", "attn", "!attn", "re:^fd_", "re:^q$", "split", "S=1", "q", "!q", "L0", "L2", "!L1",
				"op:=q", "op:q", "kernel:mul", "!kernel:mul", "route:bicol", "name:rope_q", "prologue", "weight", "#4", "!#4",
				"us:>10", "us:<10", "us:>0.01ms", "sum_us:>30", "grid:>90", "wg:=64", "wg:64", "over_wg:>0", "n:1",
				"share:>2", "mlp us:>10", "live:2048", "level:<3", "nothing-has-this",
			}
			for i := range d.Launches {
				l := &d.Launches[i]
				words = append(words, l.Plan.Kernel, strings.ReplaceAll(l.Dispatch.Named(l.Op.Name), " ", ""),
					fmt.Sprintf("#%d", l.ID))
				if l.Plan.Route != "" {
					words = append(words, l.Plan.Route)
				}
			}
			slices.Sort(words)
			found := 0
			for _, word := range slices.Compact(words) {
				want := d.Operators(filtered(t, d.Table, word)...)
				var got []trace.OpID
				for _, row := range filtered(t, g.Table, word) {
					got = append(got, slices.Concat(g.Nodes[row].Ops...)...)
				}
				slices.Sort(want)
				slices.Sort(got)
				if want = slices.Compact(want); len(want) > 0 {
					found++
				}
				if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
					t.Errorf("grouped by %s, %s, %q: Dispatches finds -, Graph finds +: %s",
						fold, selection.Name, word, diff)
				}
			}
			if found < 20 {
				t.Errorf("grouped by %s, %s: only %d words find something", fold, selection.Name, found)
			}
		}
	}
}

func TestGraphFilterOfItsOwnColumnsFindsValues(t *testing.T) {
	x := analyze.NewIndex(tracetest.Run(3, 40, 1, 1))
	g, err := outline.Graph(ctx, x, analyze.Options{Selection: x.Step(2)})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"op:=q role:constant", "role:constant"} {
		rows := filtered(t, g.Table, word)
		for _, row := range rows {
			n := &g.Nodes[row]
			if n.Edge == "" || x.Trace.Graph.Values[n.Value].Role != trace.RoleConstant ||
				strings.HasPrefix(word, "op") && g.Op(row).ShortName() != "q" {
				t.Errorf("%q finds %s", word, n.Label)
			}
		}
		if len(rows) == 0 {
			t.Errorf("%q finds nothing", word)
		}
	}
	if rows := filtered(t, g.Table, "kind:rms_norm !mlp"); len(rows) != 2 {
		t.Errorf("found %d rows, want the norm of the attention and the last norm", len(rows))
	}
	if _, err := g.ParseFilter(ctx, "speed:1"); err == nil || !strings.Contains(err.Error(), "role") ||
		!strings.Contains(err.Error(), "grid") {
		t.Errorf("the error does not list the columns: %v", err)
	}
}

// filtered returns the rows that a filter shows without rows inside them.
func filtered(t *testing.T, made *table.Table, word string) []int {
	t.Helper()
	f, err := made.ParseFilter(ctx, word)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := made.Select(ctx, table.Selection{Filter: f})
	if err != nil {
		t.Fatal(err)
	}
	shown := slices.Clone(rows)
	return slices.DeleteFunc(rows, func(r int) bool {
		return slices.ContainsFunc(shown, func(i int) bool { return made.Rows[i].Parent == r })
	})
}
