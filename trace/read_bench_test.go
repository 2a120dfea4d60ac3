package trace_test

import (
	"bytes"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// BenchmarkRead reads the trace of a long run: 2,000 steps of about 300 dispatches.
func BenchmarkRead(b *testing.B) {
	var file bytes.Buffer
	if err := trace.Write(&file, tracetest.Llama(15, 2000)); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := trace.Read(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}
