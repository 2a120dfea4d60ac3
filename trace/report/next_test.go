package report_test

import (
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
)

// Why and the detail show where a grid changes next and where it changed last. Both come from the forecast
// only.
func TestNextGridChangeIsReported(t *testing.T) {
	tr := tracetest.Llama(1, 3)
	x := analyze.NewIndex(tr)
	split := dispatch(t, x, "layers.0.attn.sdpa.split")
	if got := report.NextChange(x, 2, split); got != "" {
		t.Errorf("without a forecast: %q", got)
	}
	still := trace.Course{Stretches: []trace.Stretch{{Kernel: "k", Workgroups: [3]trace.Rule{{1}, {1}, {1}}}}}
	grows := trace.Course{}
	for i, from := range []int{0, 40, 64} {
		grows.Stretches = append(grows.Stretches, trace.Stretch{
			From: from, Kernel: "fd_split", Workgroups: [3]trace.Rule{{int64(16 * (i + 1))}, {1}, {1}},
		})
	}
	courses := make([]int, len(tr.Graph.Dispatches))
	courses[split] = 1
	tr.Forecast = &trace.Forecast{Lines: []trace.Line{{
		Along: trace.AlongPosition, At: 1, From: 0, To: 1023, Courses: []trace.Course{still, grows},
		Dispatches: courses,
	}}}
	x = analyze.NewIndex(tr)
	if got, want := report.NextChange(x, 2, split), "at position 64: 32 → 48"; got != want {
		t.Errorf("next %q, want %q", got, want)
	}
	if got, want := report.LastChange(x, 2, split), "at position 40: 16 → 32"; got != want {
		t.Errorf("last %q, want %q", got, want)
	}
	if got, want := report.NextChange(x, 2, 0), " 1,023"; !strings.HasSuffix(got, want) {
		t.Errorf("next change of another dispatch %q, want %q", got, want)
	}
	if lines := report.WhyLines(why.Of(x, 2, split), ""); !slices.Contains(lines, "  next change: at position 64: 32 → 48") {
		t.Errorf("why does not show the next change:\n%s", strings.Join(lines, "\n"))
	}
	if lines := report.DetailLines(detail(x, 2, split, nil)); !slices.Contains(lines,
		"next   at position 64: 32 → 48") {
		t.Errorf("the detail does not show the next change:\n%s", strings.Join(lines, "\n"))
	}
}
