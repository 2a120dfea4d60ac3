package report_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report"
	_ "gpuscope/trace/report/all" // registers the tables
)

// TestTraceOfVersion1StillOpens checks a trace recorded before version 1.1. It shows every table of each
// step, and converts the trace to each storage format and back.
func TestTraceOfVersion1StillOpens(t *testing.T) {
	t.Parallel()
	golden, err := trace.ReadFile(filepath.Join("testdata", "demo-1.0.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if golden.Schema != "gpuscope.trace/1" || golden.TellsAbsent() || len(golden.Steps) != 5 {
		t.Fatalf("%s with %d steps", golden.Schema, len(golden.Steps))
	}
	x := analyze.NewIndex(golden)
	for step := range golden.Steps {
		for _, of := range report.Tables() {
			tab, err := of.Of(ctx, x, analyze.Options{Selection: x.Step(step)})
			if err != nil {
				t.Errorf("step %d: table %s: %v", step, of.Name, err)
				continue
			}
			for row := range tab.Rows {
				for column := range tab.Columns {
					tab.Cell(row, column)
				}
			}
		}
		for i := range golden.Graph.Values {
			report.ValueLines(x, step, trace.ValueID(i))
		}
		for i := range golden.Graph.Dispatches {
			why.Of(x, step, trace.DispatchID(i))
		}
	}
	for _, suffix := range trace.Suffixes() {
		path := filepath.Join(t.TempDir(), "again"+suffix)
		if err := trace.WriteFile(path, golden); err != nil {
			t.Fatal(err)
		}
		again, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(golden, again); d != "" {
			t.Errorf("%s (-golden +read again):\n%s", suffix, d)
		}
	}
}
