package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
)

// Each step shows the difference of its wall time to the baseline, if both were timed at the same level and
// the clock did not change.
func TestStepsAreComparedWithABase(t *testing.T) {
	tr := tracetest.Run(1, 40, 1, 1, 1, 1, 1)
	for i, ms := range []int64{30, 8, 9, 10, 12, 9} {
		tr.Steps[i].CPU.TotalNS, tr.Steps[i].Canary = trace.Measured(ms*1e6), 1
	}
	tr.Steps[3].Canary, tr.Steps[4].Timing = 0.9, "off"
	x := analyze.NewIndex(tr)
	of := func(baseline analyze.Selection) (cells []string) {
		made := report.Steps(x, analyze.Selection{}, &analyze.Baseline{Index: x, Selection: baseline})
		for row := range made.Rows {
			cells = append(cells, made.Cell(row, made.Column("delta_ms")).Text)
		}
		return cells
	}
	if d := cmp.Diff([]string{"+21.00", "-1.00", "+0.00", "clk", "", "+0.00"}, of(x.Step(2))); d != "" {
		t.Error(d)
	}
	two := analyze.Selection{Name: "two", Steps: []int{1, 2}} // 8 and 9: a difference of one is within noise
	if d := cmp.Diff([]string{"+21.50", "=", "=", "clk", "", "="}, of(two)); d != "" {
		t.Error(d)
	}
	if report.Steps(x, analyze.Selection{}, nil).Column("delta_ms") >= 0 {
		t.Error("a difference column without a baseline")
	}
}
