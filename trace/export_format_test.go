package trace_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

func init() {
	trace.RegisterExport(trace.Export{
		Name: "names", Doc: "the name of each operator", Suffix: ".names",
		Write: func(w io.Writer, t *trace.Trace) error {
			for i := range t.Graph.Ops {
				if _, err := fmt.Fprintln(w, t.Graph.Ops[i].Name); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func TestAnExportIsWrittenAndNotOpened(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".names", ".names.gz"} {
		path := filepath.Join(t.TempDir(), "x"+suffix)
		if err := trace.WriteFile(path, tracetest.Llama(1, 3)); err != nil {
			t.Fatal(err)
		}
		f, zipped, err := trace.FormatOf(path)
		if err != nil || f.Name != "names" || f.Opens() || zipped != strings.HasSuffix(suffix, ".gz") {
			t.Errorf("%s is of the format %q, opens %t, gzipped %t: %v", path, f.Name, f.Opens(), zipped, err)
		}
		if trace.IsTrace(path) {
			t.Errorf("%s is taken for a trace", path)
		}
		if _, err := trace.ReadFile(path); !errors.Is(err, trace.ErrWriteOnly) {
			t.Errorf("reading %s: %v, want ErrWriteOnly", path, err)
		}
	}
}

func TestARecordingEndsAsAnExport(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.names")
	w, err := trace.CreateStream(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(tracetest.Llama(1, 3)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.ReadFile(path); !errors.Is(err, trace.ErrWriteOnly) {
		t.Errorf("reading it: %v, want ErrWriteOnly", err)
	}
}
