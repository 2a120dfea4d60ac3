package report_test

import (
	"strings"
	"testing"

	"gpuscope/trace/analyze"
	"gpuscope/trace/tracetest"
)

// The counts of new and removed dispatches come before an explanation of how dispatches were compared.
func TestTitleHasAllCountsWhereThereIsRoom(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(2, 2))
	other := tracetest.Llama(1, 2)
	d := dispatched(x, 1, analyze.Options{Baseline: baseOf(analyze.NewIndex(other), 0)})
	wide := len(d.Title[1].String())
	for w := 60; w <= wide; w++ {
		line := d.Title[1].Fit(w)
		counts, how := strings.Contains(line, "and 22 params, 20 new"), strings.Contains(line, "the sum of its parts")
		if how && !counts || w == wide && !how {
			t.Errorf("%d cells: counts %t, explanation %t: %s", w, counts, how, line)
		}
	}
}
