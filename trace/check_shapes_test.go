package trace_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

func TestCheckFollowsTheLiveShapes(t *testing.T) {
	t.Parallel()
	at := func(step int, field string) string {
		return fmt.Sprintf("steps[%d].resize.passes[0].hooks[0].changed[0].%s", step, field)
	}
	changed := func(tr *trace.Trace, step int) *trace.Change {
		return &tr.Steps[step].Resize.Passes[0].Hooks[0].Changed[0]
	}
	for _, c := range []struct {
		name, field string
		break_      func(tr *trace.Trace)
	}{
		{"sound", "", func(*trace.Trace) {}},
		{"from another shape", at(1, "from"), func(tr *trace.Trace) {
			changed(tr, 1).From = []int{8, 4}
		}},
		{"first step not from the largest", at(0, "from"), func(tr *trace.Trace) {
			changed(tr, 0).From = []int{0, 0}
		}},
		{"from nothing to a live value", at(1, "from"), func(tr *trace.Trace) {
			changed(tr, 1).From = nil
		}},
		{"to the same shape", at(1, "to"), func(tr *trace.Trace) {
			changed(tr, 1).To = []int{3, 4}
		}},
		{"a dim below 0", at(1, "to"), func(tr *trace.Trace) {
			changed(tr, 1).To = []int{-1, 4}
		}},
		{"dims where no change ends", "steps[1].dims", func(tr *trace.Trace) {
			tr.Steps[1].Dims[1].Dims = []int{2, 4}
		}},
		{"an absent value is written", "steps[1].dispatches[0]", func(tr *trace.Trace) {
			changed(tr, 1).To, tr.Steps[1].Dims[1].Dims = nil, nil
		}},
		{"an absent value is read", "steps[1].dispatches[0]", func(tr *trace.Trace) {
			tr.Steps[1].Dims[0].Dims = nil
		}},
		{"an absent value is not touched", "", func(tr *trace.Trace) {
			changed(tr, 1).To, tr.Steps[1].Dims[1].Dims = nil, nil
			tr.Graph.Dispatches[0].Bound = [][]trace.ValueID{{0, 1}}
		}},
		{"steps were dropped", "", func(tr *trace.Trace) {
			changed(tr, 0).From, tr.DroppedSteps = []int{5, 4}, 1
		}},
	} {
		tr := tracetest.Tiny()
		tr.Graph.Dispatches[0].Bound = [][]trace.ValueID{{0, 1, 2}}
		c.break_(tr)
		switch err := tr.Check(); {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" && (err == nil || !strings.HasPrefix(err.Error(), c.field+": ")):
			t.Errorf("%s: %v, want an error about %s", c.name, err, c.field)
		}
		tr.Schema = "gpuscope.trace/1"
		if err := tr.Check(); err != nil && !strings.Contains(c.name, "below 0") {
			t.Errorf("%s, before version 1.1: %v", c.name, err)
		}
	}
}

// A scalar has an empty list of dims. A value that is not computed has nil.
func TestShapesReadBackWithTheirTypes(t *testing.T) {
	t.Parallel()
	want := tracetest.Tiny()
	want.Schema = "gpuscope.trace/1" // its shapes are not checked
	s := &want.Steps[1]
	s.Dims = []trace.LiveDims{{Value: 0, Dims: []int{}}, {Value: 1}, {Value: 2, Dims: []int{0, 3}}}
	s.Resize.Passes[0].Hooks[0].Changed = []trace.Change{
		{From: []int{}}, {To: []int{}}, {From: []int{1}, To: []int{2, 3}},
	}
	for _, write := range []func(io.Writer, *trace.Trace) error{trace.Write, trace.WriteStream} {
		var b bytes.Buffer
		if err := write(&b, want); err != nil {
			t.Fatal(err)
		}
		got, err := trace.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want.Steps[1].Dims, got.Steps[1].Dims); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(want.Steps[1].Resize, got.Steps[1].Resize); d != "" {
			t.Error(d)
		}
	}
}
