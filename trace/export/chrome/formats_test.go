//go:build formats

package chrome_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/export/chrome"
	"gpuscope/trace/export/exporttest"
	"gpuscope/trace/tracetest"
)

// speedscope reports slices that are neither nested nor apart, and strings where numbers should be.
func TestSpeedscopeOpensChromeJSON(t *testing.T) {
	t.Parallel()
	llama := tracetest.Llama(2, 4)
	odd := wild([2]int64{100, 50}, [2]int64{150, 50}, [2]int64{180, 50}, [2]int64{230, 0}, [2]int64{231, 1})
	var files []string
	var want []int
	for _, c := range []struct {
		tr    *trace.Trace
		drawn int
	}{
		{llama, exporttest.TotalsOf(llama).Timed},
		{odd, 4}, // the dispatch of 0 ns is a mark
	} {
		for _, format := range []trace.Export{chrome.Format, chrome.Kineto} {
			path := filepath.Join(t.TempDir(), "run"+format.Suffix)
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := format.Write(f, c.tr); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			files, want = append(files, path), append(want, c.drawn)
		}
	}
	for i, shown := range exporttest.Speedscope(t, files...) {
		n := int64(0)
		for _, p := range shown.Profiles {
			if strings.Contains(p.Name, "queue 0") {
				for _, f := range p.Frames {
					n += f.Count
				}
			}
		}
		if n != int64(want[i]) {
			t.Errorf("%s: speedscope shows %d dispatches, want %d: %+v", files[i], n, want[i], shown)
		}
	}
}
