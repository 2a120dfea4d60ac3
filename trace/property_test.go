package trace_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

func TestAnyTraceReadsBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := tracetest.Random(t)
		if err := want.Check(); err != nil {
			t.Fatal(err)
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
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Fatal(d)
			}
		}
	})
}
