package report_test

import (
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/tracetest"
)

// The canary runs after only a few steps. Other steps show its last known value and the step that it is from.
func TestStepsShowTheLastKnownClockSpeed(t *testing.T) {
	tr := tracetest.Run(1, 40, 1, 1, 1, 1, 1)
	for i := range tr.Steps {
		tr.Steps[i].Canary = 0
	}
	tr.Steps[1].Canary, tr.Steps[3].Canary = 0.99, 0.5
	tr.Steps[4].Whole = &trace.Whole{NS: 1, Q1NS: 1, Q3NS: 1, N: 1, Canary: 1.2, CanaryQ1: 1.2, CanaryQ3: 1.2}
	x := analyze.NewIndex(tr)
	for step, want := range []string{
		"", "clk 0.99 ok", "clk 0.99 ok (s1)", "clk 0.50 slow", "clk 1.20 fast", "clk 1.20 fast (s4)",
	} {
		if got := x.ClockAt(step); got != want {
			t.Errorf("step %d: %q, want %q", step, got, want)
		}
	}
	tr.Device.AdapterType = trace.AdapterCPU
	if got := analyze.NewIndex(tr).ClockAt(3); got != "" {
		t.Errorf("a software device: %q", got)
	}
}
