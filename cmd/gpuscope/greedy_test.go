package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/model/program/programtest"
)

// A program that computes only the next token runs, but has no candidates.
func TestProgramsWithoutLogitsHaveNoCandidates(t *testing.T) {
	t.Parallel()
	source := filepath.Join("..", "..", "..", "shared", "pte", "qwen3-tiny-4w.pte")
	if _, err := os.Stat(source); err != nil && os.Getenv("CI") != "true" {
		t.Skip("the test programs are missing: ", err)
	}
	data, err := programtest.Greedy(source, "text_decoder")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path, recorded := filepath.Join(dir, "greedy.pte"), filepath.Join(dir, "run.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		p := testProgram(&out, &errs)
		p.open = p.openModel
		status := p.main(t.Context(), args)
		return status, out.String(), errs.String()
	}
	start := []string{"run", path, "--ids", "5,9,3", "-n", "2"}
	for _, flags := range [][]string{{"--top-logits", "3"}, {"--temp", "1"}, {"--repeat-penalty", "2"}} {
		status, stdout, stderr := run(append(start, flags...)...)
		if status != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d: %s%s", flags, status, stdout, stderr)
		}
	}
	if status, _, stderr := run(append(start, "--trace", recorded)...); status != exitDone {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	status, stdout, _ := run("trace", "show", recorded, "--table", "candidates")
	if status != exitDone || strings.Contains(stdout, "--top-logits") {
		t.Errorf("exit %d, and the table advises --top-logits: %s", status, stdout)
	}
}
