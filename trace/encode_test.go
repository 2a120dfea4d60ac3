package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// Steps are written by code of our own, which must write what encoding/json writes.
func TestStepsAreWrittenAsJSONEncodesThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := tracetest.Random(t)
		for i := range want.Steps {
			want.Steps[i].Text += ` "dispatches":[{"plan":-1}] <&>`
		}
		var file bytes.Buffer
		if err := trace.Write(&file, want); err != nil {
			t.Fatal(err)
		}
		_, steps, _ := bytes.Cut(file.Bytes(), []byte("\n\"steps\":["))
		lines := bytes.Split(bytes.TrimSuffix(steps, []byte("]}\n")), []byte("\n"))[1:]
		for i := range want.Steps {
			var line bytes.Buffer
			e := json.NewEncoder(&line)
			e.SetEscapeHTML(false)
			if err := e.Encode(&want.Steps[i]); err != nil {
				t.Fatal(err)
			}
			got := bytes.TrimSuffix(lines[i], []byte(","))
			if want.Steps[i].Unknown == nil && !bytes.Equal(got, bytes.TrimSpace(line.Bytes())) {
				t.Fatalf("step %d is written as\n%s\nwant\n%s", i, got, line.Bytes())
			}
		}
	})
}

func TestACutZstdStreamKeepsItsCompleteSteps(t *testing.T) {
	t.Parallel()
	var lines, file bytes.Buffer
	if err := trace.WriteStream(&lines, tracetest.Llama(2, 6)); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(lines.String()) {
		if _, err := io.WriteString(z, line); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := trace.Read(bytes.NewReader(file.Bytes()[:file.Len()*9/10]))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Steps); n < 3 || n > 6 || got.Events[len(got.Events)-1].Kind != trace.EventCut {
		t.Errorf("%d steps and the events %v, want most of 6 steps and an event of kind cut", n, got.Events)
	}
	if _, err := trace.Read(bytes.NewReader(file.Bytes()[:10])); !errors.Is(err, trace.ErrTruncated) {
		t.Errorf("10 bytes of a file: %v, want ErrTruncated", err)
	}
}

// BenchmarkWrite writes the trace of a long run: 2,000 steps of about 300 dispatches.
func BenchmarkWrite(b *testing.B) {
	long := tracetest.Llama(15, 2000)
	for _, c := range []struct {
		name  string
		write func(io.Writer, *trace.Trace) error
	}{{"json", trace.Write}, {"jsonl", trace.WriteStream}} {
		b.Run(c.name, func(b *testing.B) {
			var n counter
			if err := c.write(&n, long); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.write(io.Discard, long); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// counter counts the bytes that are written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
