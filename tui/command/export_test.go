package command

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	_ "gpuscope/trace/export" // registers the formats that can only be written
	"gpuscope/trace/tracetest"
)

func TestALargeExportStatesItsSize(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "a.json", "a.otlp.json"} {
		small, large := ExportTo(path, LargeExport-1), ExportTo(path, LargeExport)
		if small != ExportTo(path, 0) || small == large {
			t.Errorf("%q: the question is %q, and %q for a large file", path, small, large)
		}
	}
}

// The key tab goes through all formats, and then starts again.
func TestNextFormatGoesThroughAllFormats(t *testing.T) {
	t.Parallel()
	var seen []string
	for path := NextFormat("run"); !slices.Contains(seen, path); path = NextFormat(path) {
		seen = append(seen, path)
	}
	want := trace.Suffixes()
	for _, e := range trace.Exports() {
		want = append(want, e.Suffix)
	}
	for i := range want {
		want[i] = "run" + want[i]
	}
	if !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	if got := NextFormat("a/b.csv"); got != "a/b.dot" {
		t.Errorf("after a/b.csv: %q", got)
	}
}

// The size that is shown before an export is that of the chosen format.
func TestExportSizeIsNearTheWrittenSize(t *testing.T) {
	t.Parallel()
	suffixes := trace.Suffixes()
	for _, e := range trace.Exports() {
		suffixes = append(suffixes, e.Suffix)
		if e.Write != nil && !strings.HasSuffix(e.Suffix, ".gz") {
			suffixes = append(suffixes, e.Suffix+".gz")
		}
	}
	turns := slices.Repeat([]int{40, 1, 1, 1, 1, 7}, 40)
	for name, run := range map[string]*trace.Trace{
		"decode": tracetest.Llama(2, 200), "prefill and decode": tracetest.Run(1, turns...),
	} {
		for _, suffix := range suffixes {
			path := filepath.Join(t.TempDir(), "x"+suffix)
			want, got := writtenSize(path, run), ExportSize(path, run)
			if want == 0 || got*3 < want*2 || got*2 > want*3 {
				t.Errorf("%s as %s: about %d bytes, written %d", name, suffix, got, want)
			}
		}
	}
	for _, path := range []string{"x.unknown", "x.parquet.gz"} {
		if got := ExportSize(path, tracetest.Tiny()); got != 0 {
			t.Errorf("%s, which cannot be written: about %d bytes", path, got)
		}
	}
}
