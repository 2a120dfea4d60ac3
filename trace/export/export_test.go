package export_test

import (
	"os"
	"strings"
	"testing"

	"gpuscope/trace"
	_ "gpuscope/trace/export"
	"gpuscope/trace/tracetest"
)

func TestEveryFormatIsInTheDocs(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/reference/exports.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range trace.Exports() {
		if !strings.Contains(string(doc), "\n| `"+e.Suffix+"` |") {
			t.Errorf("the table of docs/reference/exports.md has no row for %s, %s", e.Suffix, e.Name)
		}
	}
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// BenchmarkWrite writes a run of 500 steps in each format that is one file. It reports the size of the file,
// not compressed, for each dispatch.
func BenchmarkWrite(b *testing.B) {
	t := tracetest.Llama(16, 500)
	dispatches := 0
	for i := range t.Steps {
		dispatches += len(t.Steps[i].Dispatches)
	}
	for _, e := range trace.Exports() {
		if e.Write == nil {
			continue
		}
		b.Run(e.Name, func(b *testing.B) {
			b.ReportAllocs()
			var size counter
			for b.Loop() {
				size = 0
				if err := e.Write(&size, t); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size)/float64(dispatches), "bytes/dispatch")
		})
	}
}
