package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/model/checkpoint/pte/describe"
	"gpuscope/model/checkpoint/pte/ptetest"
)

// showGraph runs gpuscope graph and returns its exit status and output.
func showGraph(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = testProgram(&out, &errs).main(t.Context(), append([]string{"graph"}, args...))
	return status, out.String(), errs.String()
}

func TestGraphShowsExecuTorchPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	program := write("one.pte", ptetest.Example(true).Bytes())
	elsewhere := t.TempDir()
	data := filepath.Join(elsewhere, "weights.ptd")
	weights := ptetest.DataFile(ptetest.Named{Key: "weight", Data: make([]byte, 128)})
	if err := os.WriteFile(data, weights, 0o600); err != nil {
		t.Fatal(err)
	}
	bundle := write("two.bpte", ptetest.Bundle(ptetest.Example(false).Bytes(), ptetest.Suite("forward")))
	gguf := write("x.gguf", []byte("GGUF"))
	broken := write("broken.pte", ptetest.Example(true).Bytes()[:100])

	status, text, stderr := showGraph(t, program)
	if status != exitDone || stderr != "" || !strings.Contains(text, "et_vk.select_as_symint.default") {
		t.Errorf("exit %d: %s%s", status, stderr, text)
	}
	status, text, _ = showGraph(t, "--format", "json", "--data", data, program, bundle)
	var all struct{ Programs []*describe.Info }
	if err := json.Unmarshal([]byte(text), &all); err != nil || status != exitDone || len(all.Programs) != 2 {
		t.Fatalf("exit %d: %d programs, %v", status, len(all.Programs), err)
	}
	for i, want := range []string{program, data} { // the program's own weights come first
		if got := all.Programs[i].Methods[0].Delegates[0].Graph.Constants[0].File; got != want {
			t.Errorf("program %d has its weights in %q, want %q", i, got, want)
		}
	}
	if status, text, _ = showGraph(t, "--format", "dot", program); status != exitDone ||
		!strings.HasPrefix(text, "digraph") {
		t.Errorf("--format dot: exit %d: %.100s", status, text)
	}
	for _, args := range [][]string{
		{program, gguf},
		{gguf, gguf},
		{"--passes", program, program},
		{"--data", data},
		{"--data", data, gguf},
	} {
		if status, text, _ = showGraph(t, args...); status != exitUsage || text != "" {
			t.Errorf("%q: exit %d", args, status)
		}
	}
	// The fixture's delegate has an operator that no kernel computes, so it cannot be planned.
	if status, text, stderr = showGraph(t, "--passes", program); status != exitFailed || text != "" ||
		strings.Count(stderr, "\n") != 1 {
		t.Errorf("--passes: exit %d: %q", status, stderr)
	}
	if status, text, stderr = showGraph(t, broken); status != exitFailed || text != "" ||
		strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, broken) {
		t.Errorf("a broken program: exit %d: %q", status, stderr)
	}
}
