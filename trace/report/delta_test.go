package report_test

import (
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
)

// A model that one of the traces does not name is neither the same nor another one.
func TestOtherTraceKnowsWhatIsUnnamed(t *testing.T) {
	named, renamed := trace.Model{Name: "small", Quantization: "Q4_0"}, trace.Model{Name: "large"}
	for _, c := range []struct {
		is, was trace.Model
		engine  string // of the baseline
		want    string
	}{
		{named, named, "", ""},
		{trace.Model{}, trace.Model{}, "", "a possibly different model: neither trace names it"},
		{named, renamed, "", "another model: large"},
		{named, renamed, "PyTorch", "another model and engine: large on PyTorch"},
		{named, trace.Model{}, "PyTorch", "another engine: PyTorch, and an unnamed model"},
		{named, trace.Model{}, "", "an unnamed model"},
		{trace.Model{}, named, "PyTorch", "another engine: PyTorch, and a possibly different model: small Q4_0"},
		{trace.Model{}, named, "", "a possibly different model: small Q4_0"},
	} {
		now, base := tracetest.Tiny(), tracetest.Tiny()
		now.Model, base.Model, base.Engine = c.is, c.was, c.engine
		got := report.OtherTrace(analyze.NewIndex(now), analyze.NewIndex(base))
		if got.Text != c.want {
			t.Errorf("%q against %q on %q: %q, want %q", c.is.Name, c.was.Name, c.engine, got.Text, c.want)
		}
	}
}
