package main

import (
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
)

func TestSummaryCountsLeavesAndKeepsReasons(t *testing.T) {
	t.Parallel()
	const events = `
{"Action":"start","Package":"p"}
{"Action":"attr","Package":"p","Test":"TestA/gpu","Key":"adapter","Value":"llvmpipe"}
{"Action":"pass","Package":"p","Test":"TestA/gpu"}
{"Action":"output","Package":"p","Test":"TestA/large","Output":"    a_test.go:7: large: 2 GMAC\n"}
{"Action":"skip","Package":"p","Test":"TestA/large"}
{"Action":"output","Package":"p","Test":"TestA/larger","Output":"    a_test.go:7: large: 4 GMAC\n"}
{"Action":"skip","Package":"p","Test":"TestA/larger"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: no WebGPU adapter\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:1: got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"pass","Package":"p","Test":"TestOwn/sub"}
{"Action":"output","Package":"p","Test":"TestOwn","Output":"    c_test.go:2: after its subtests\n"}
{"Action":"fail","Package":"p","Test":"TestOwn"}
{"Action":"fail","Package":"p","Elapsed":1.5}
{"Action":"build-output","ImportPath":"q [q.test]","Output":"q.go:1: undefined: x\n"}
{"Action":"fail","Package":"q","FailedBuild":"q [q.test]"}
{"Action":"output","Package":"r","Test":"TestD","Output":"panic: boom\n"}
{"Action":"fail","Package":"r","Elapsed":0.1}
no event
`
	var out strings.Builder
	sum := newSummary(&out)
	if err := sum.read(strings.NewReader(strings.TrimSpace(events))); err != nil {
		t.Fatal(err)
	}
	sum.close()
	const want = `    c_test.go:1: got 1, want 2
    c_test.go:2: after its subtests
FAIL  p 1.5s
q.go:1: undefined: x
FAIL  q 0.0s
panic: boom
FAIL  r 0.1s
no event
skip  p TestA (2): large: 2 GMAC
skip  p TestB (1): no WebGPU adapter
2 passed, 4 failed, 3 skipped
`
	lines := slices.Collect(strings.Lines(out.String()))
	if len(lines) < 2 {
		t.Fatalf("printed:\n%s", &out)
	}
	gpu := len(lines) - 2 // the line about GPU tests
	wordingtest.New(t).Text("GPU tests", strings.TrimSpace(lines[gpu]))
	if got := strings.Join(slices.Delete(lines, gpu, gpu+1), ""); got != want {
		t.Errorf("printed:\n%s\nwant this and a line about GPU tests:\n%s", &out, want)
	}
}

func TestGroupsSplitAtDoubleDash(t *testing.T) {
	t.Parallel()
	got := slices.Collect(groups([]string{"-v", "./a", "--", "-race", "./b"}))
	if len(got) != 2 || strings.Join(got[0], " ") != "-v ./a" || strings.Join(got[1], " ") != "-race ./b" {
		t.Errorf("groups: %q", got)
	}
}
