package report_test

import (
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report/outline"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// A filter finds the same operators in Graph and in Dispatches: by name, kernel kind, slot, route, reason and
// layer.
func TestGraphFilterFindsWhatDispatchesFilterFinds(t *testing.T) {
	x := analyze.NewIndex(tracetest.Run(3, 40, 1, 1))
	for _, step := range []int{0, 2} {
		for _, fold := range []analyze.Grouping{analyze.GroupLayer, analyze.GroupNone} {
			d := dispatched(x, step, analyze.Options{Grouping: fold})
			g, err := outline.Graph(ctx, x, analyze.Options{Selection: x.Step(step), Grouping: fold})
			if err != nil {
				t.Fatal(err)
			}
			words := []string{
				"norm", "layers.1", "attn", "re:^fd_", "split", "S=1", "q", "kernel:mul", "route:bicol", "name:rope_q",
			}
			for i := range d.Launches {
				l := &d.Launches[i]
				words = append(words, l.Plan.Kernel, strings.ReplaceAll(l.Dispatch.Named(l.Op.Name), " ", ""))
				if l.Plan.Route != "" {
					words = append(words, l.Plan.Route)
				}
			}
			slices.Sort(words)
			for _, word := range slices.Compact(words) {
				var want, got []trace.OpID
				for _, row := range filtered(t, d.Table, word) {
					if r := &d.Grouped[row]; !r.Group {
						for _, u := range r.Units {
							for _, l := range u {
								want = append(want, d.Launches[l].Op.ID)
							}
						}
					}
				}
				for _, row := range filtered(t, g.Table, word) {
					if n := &g.Nodes[row]; !n.Group && n.Edge == "" {
						got = append(got, slices.Concat(n.Ops...)...)
					}
				}
				for _, op := range want {
					if !slices.Contains(got, op) {
						t.Errorf("grouped by %s, s%d: %q finds %s in Dispatches but not in Graph",
							fold, step, word,
							x.Trace.Graph.Ops[op].Name)
						break
					}
				}
			}
		}
	}
}

func filtered(t *testing.T, made *table.Table, word string) []int {
	t.Helper()
	f, err := made.ParseFilter(word)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := made.Select(ctx, table.Selection{Filter: f})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
