package report_test

import (
	"bytes"
	"context"
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

// No line of any table is wider than requested: titles, headings, rows and notes, in short and long runs,
// with long names and with names in wide characters.
func TestNoTableIsWiderThanItsScreen(t *testing.T) {
	long := tracetest.Run(2, append([]int{40, 7}, slices.Repeat([]int{1}, 1998)...)...)
	wide := costed(t, tracetest.Run(2, 40, 7, 1, 1, 1), 3).Trace
	wide.Model.Name = strings.Repeat("模型", 60)
	wide.Graph.Ops = slices.Clone(wide.Graph.Ops)
	for i := range wide.Graph.Ops {
		wide.Graph.Ops[i].Name += ".很长的名字👍🏿" + strings.Repeat("x", 90)
	}
	wide.Events = append(wide.Events, trace.Event{Step: 1, Kind: "note", Text: strings.Repeat("語", 400)})
	for name, x := range map[string]*analyze.Index{
		"2,000 steps": costed(t, long, 1999), "wide names": analyze.NewIndex(wide),
		"software": costed(t, software(tracetest.Run(3, 40, 1, 1)), 2),
	} {
		for _, word := range []string{"", "all", "decode", "prefill", "1"} {
			everyLineFits(t, name, x, word)
		}
	}
}

func software(t *trace.Trace) *trace.Trace {
	t.Device.AdapterType, t.Device.Ceilings = "cpu", nil
	return t
}

// everyLineFits checks every table of a selection at several widths.
func everyLineFits(t *testing.T, name string, x *analyze.Index, word string) {
	t.Helper()
	for _, kind := range append(report.Tables(), report.List) {
		selection, err := kind.Selection(x, word)
		if err != nil {
			continue // the table does not accept this selection
		}
		baseline := &analyze.Baseline{Index: x, Selection: x.Step(0)}
		made, err := kind.Of(ctx, x, analyze.Options{Selection: selection, Baseline: baseline})
		if err != nil {
			t.Errorf("%s: %s of %q: %v", name, kind.Name, word, err)
			continue
		}
		rows, err := made.Select(ctx, table.Selection{All: len(x.Trace.Steps) < 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []int{40, 80, 100, 160} {
			var out bytes.Buffer
			if err := made.Print(context.Background(), &out, "text", rows, w); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimSuffix(line, "\n"); table.Width(line) > w {
					t.Errorf("%s: table %s of %q at width %d has a line of %d: %s", name, kind.Name, word, w,
						table.Width(line), fmt.Sprintf("%.60q", line))
					break
				}
			}
		}
	}
}
