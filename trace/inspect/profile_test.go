package inspect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/trace/inspect"
	"gpuscope/trace/tracetest"
)

// Steps that were sent before those before them were read are a rate of their own, and lines say which.
func TestRatesSayTheMode(t *testing.T) {
	tr := tracetest.Llama(2, 9)
	for i := range tr.Steps {
		s := &tr.Steps[i]
		s.Timing, s.Cold, s.Pipelined = "step", false, i > 3
	}
	var y inspect.Tally
	for i := range tr.Steps {
		y.Add(tr, &tr.Steps[i])
	}
	var modes []string
	for _, r := range y.Profile(tr).Rates {
		modes = append(modes, fmt.Sprintf("%s %s %d", r.Phase, r.Mode, r.Steps))
	}
	if lines := y.Profile(tr).Lines(); !strings.Contains(lines[1], "tokens/s, stepped") ||
		!strings.Contains(lines[2], "tokens/s, pipelined") {
		t.Errorf("%q", lines)
	}
	want := []string{
		"prefill stepped 1", "decode stepped 3", fmt.Sprintf("decode pipelined %d", len(tr.Steps)-4),
	}
	if d := cmp.Diff(want, modes); d != "" {
		t.Error(d)
	}
	if pace := inspect.NewIndex(tr).Pace(5).String(); !strings.Contains(pace, "tok/s pipelined") {
		t.Error(pace)
	}
	tr.Steps[8].Pipelined, tr.Steps[7].Pipelined, tr.Steps[6].Pipelined = false, false, false
	if pace := inspect.NewIndex(tr).Pace(5).String(); !strings.Contains(pace, "tok/s stepped") {
		t.Error(pace)
	}
}
