package diff_test

import (
	"path/filepath"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/tracetest"
)

// Two runs are joined in the same way in both directions.
func TestJoinedIsTheSameInBothDirections(t *testing.T) {
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
		}
	}
}
