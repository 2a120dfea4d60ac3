package slopes

import (
	"context"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/table"
)

// The times of rows at the last position are compared with those of a baseline: some steps of the run, one
// step, or another run. If the clock moved, they are not compared.
func TestCurvesAreComparedWithABase(t *testing.T) {
	tr := decoded(100, "dispatch")
	x := analyze.NewIndex(tr)
	slower := decoded(100, "dispatch")
	for i := range slower.Steps {
		ns, _ := slower.Steps[i].GPU.BusyNS.NS()
		slower.Steps[i].GPU.BusyNS = trace.Measured(ns + 50_000)
	}
	other := analyze.NewIndex(slower)
	for _, c := range []struct {
		name     string
		baseline analyze.Baseline
		lo, hi   float64 // µs, for the whole step
		equal    bool
		said     string
	}{
		{"its first steps", analyze.Baseline{Index: x, Selection: x.Range(1, 20)}, 0.6, 1, false, "Δlast against s1–s20 at"},
		{"one step", analyze.Baseline{Index: x, Selection: x.Step(10)}, 0.7, 1.1, false, "Δlast against s10 at"},
		{
			"all of it",
			analyze.Baseline{Index: x, Selection: x.Phase(trace.Decode)},
			0, 0, true,
			"Δlast against decode at",
		},
		{"another run", analyze.Baseline{Index: other, Selection: other.Phase(trace.Decode)}, -50.1, -49.9, false, "Δlast against decode at"},
	} {
		got, err := curves.Of(context.Background(), x, trace.AlongPosition, &c.baseline)
		if err != nil {
			t.Fatal(err)
		}
		made := Table(got)
		cell := made.Cell(0, made.Column("delta_us"))
		if !cell.Has || cell.Number < c.lo-0.01 || cell.Number > c.hi+0.01 || (cell.Text == "=") != c.equal {
			t.Errorf("%s: Δ %+v, want %v to %v", c.name, cell, c.lo, c.hi)
		}
		if said := table.Title(baseParts(got)...).String(); !strings.HasPrefix(said, c.said) {
			t.Errorf("%s: %q, want %q", c.name, said, c.said)
		}
	}
	for i := range tr.Steps {
		tr.Steps[i].Canary, slower.Steps[i].Canary = 1, 0.9
	}
	got, err := curves.Of(context.Background(), x, trace.AlongPosition, &analyze.Baseline{
		Index:     other,
		Selection: other.Phase(trace.Decode),
	})
	if err != nil {
		t.Fatal(err)
	}
	made := Table(got)
	if made.Cell(0, made.Column("delta_us")).Has || !strings.Contains(made.Title[0].String(), "clock moved") {
		t.Errorf("the clock moved: %q", made.Title[0])
	}
}
