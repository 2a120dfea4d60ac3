package diff_test

import (
	"math"
	"path/filepath"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/tracetest"
)

// result is what a diff says about a row or a group.
type result struct {
	base, now   int // number of dispatches
	significant bool
	noise       float64 // in ns, rounded
	otherWork   bool
}

// results returns the results of all rows and groups by name. With `swap`, they are those of the other
// direction. Rows of a graph with repeated names have the number of their appearance in the name.
func results(d *diff.Diff, swap bool) map[string]result {
	list := map[string]result{}
	add := func(name string, base, now int, t *diff.Times) {
		if swap {
			base, now = now, base
		}
		for list[name] != (result{}) {
			name += "'"
		}
		list[name] = result{base, now, t.Significant, math.Round(t.NoiseNS), t.OtherWork}
	}
	// If dispatches were joined in order, rows and their groups have the names of the second side, and no
	// result.
	ordered := d.Joined == join.ByOrder
	for i := range d.Rows {
		if r := &d.Rows[i]; !ordered || r.Times.Significant {
			add("row "+r.Name, len(r.Base), len(r.Now), &r.Times)
		}
	}
	for i := range d.Groups {
		g := &d.Groups[i]
		if !ordered || g.By == diff.ByKernel || g.By == diff.ByClass || g.Times.Significant {
			add(string(g.By)+" "+g.Name, g.Base, g.Now, &g.Times)
		}
	}
	return list
}

// Both directions compare the same pieces of work, with the same results.
func TestBothDirectionsCompareTheSame(t *testing.T) {
	t.Parallel()
	runs := map[string]*trace.Trace{
		"llama 1": tracetest.Llama(1, 3), "llama 2": tracetest.Llama(2, 3), "tiny": tracetest.Tiny(),
	}
	for _, path := range []string{
		"report/testdata/demo-1.0.json.gz", "../cmd/gpuscope/testdata/llama.json.gz",
		"../tui/testdata/llama-1b-h100.json.gz",
	} {
		r, err := trace.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		runs[path] = r
	}
	for a, base := range runs {
		for b, now := range runs {
			there, err := diff.Of(ctx, side(base), side(now))
			if err != nil {
				t.Fatal(err)
			}
			back, err := diff.Of(ctx, side(now), side(base))
			if err != nil {
				t.Fatal(err)
			}
			if there.Joined != back.Joined {
				t.Errorf("%s and %s: joined %v there and %v back", a, b, there.Joined, back.Joined)
			}
			x, y := results(there, false), results(back, true)
			for name, r := range x {
				if r != y[name] || len(x) != len(y) {
					t.Errorf("%s and %s: %s is %+v there and %+v back", a, b, name, r, y[name])
				}
			}
		}
	}
}
