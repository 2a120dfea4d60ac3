package trace_test

import (
	"bytes"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// printed is a table as text, with the rows that are open at first.
func printed(t *testing.T, table *trace.Table, s trace.Selection, width int) []byte {
	t.Helper()
	rows, err := table.Select(s)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := table.Print(&b, "text", rows, width); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decode is the index of a decode step with repeats, and that of the step before.
func decode(t *testing.T) (x *trace.Index, step int, base *trace.Base) {
	t.Helper()
	x = trace.NewIndex(tracetest.Llama(16, 18))
	return x, 17, &trace.Base{Index: x, Step: 16}
}

func TestDispatchesOfADecodeStepFoldedByLayer(t *testing.T) {
	x, step, base := decode(t)
	golden.RequireEqual(t, printed(t, x.Dispatches(step, trace.DispatchOptions{Base: base}).Table(), trace.Selection{}, 140))
}

func TestProfileOfARun(t *testing.T) {
	golden.RequireEqual(t, printed(t, tracetest.Run(16, 40, 1, 1, 1, 7, 1).Profile().Table(), trace.Selection{}, 80))
}

func TestStepsTable(t *testing.T) {
	golden.RequireEqual(t, printed(t, trace.NewIndex(tracetest.Run(16, 40, 1, 1, 7, 1)).Steps(), trace.Selection{}, 200))
}
