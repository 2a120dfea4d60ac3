package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui"
)

// Steps that were planned without a device are shown and exported like steps that ran, and the export opens
// again.
func TestAModelIsSteppedThroughWithoutADevice(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plan.json.gz")
	var stdout, stderr bytes.Buffer
	p := testProgram(&stdout, &stderr)
	p.driver = nil
	open := func(ctx context.Context) (session.Session, error) {
		return p.openModel(ctx, &modelOptions{device: trace.NoDevice, context: 64}, nil)
	}
	typed := "s\nr 5,20\nd resize\nd\nw layers.0.attn.q\nR\nx " + file + "\n"
	err := tui.Run(t.Context(), open,
		tui.Options{Plain: true, Input: strings.NewReader(typed), Output: &stdout})
	var failed *tui.Failure
	if !errors.As(err, &failed) || failed.Commands != 1 {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{
		"step 0: prefill at position 0, 32 tokens. ",
		"step 1: decode at position 32, 1 token", "step 2: prefill at position 20, 5 tokens",
		"rows ← tokens 1×1 → 1×5", "error: repeat: ",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
	got, err := trace.ReadFile(file)
	if err != nil || len(got.Steps) != 3 || !got.Device.None() {
		t.Errorf("exported: %v", err)
	}
}

func TestLimitsToPlanForAreChosen(t *testing.T) {
	t.Parallel()
	plan := func(limits string) (int, string) {
		var stdout, stderr bytes.Buffer
		args := "graph --device none --context 1024 --max-chunk 1024 --fuse off --limits " + limits
		status := testProgram(&stdout, &stderr).main(t.Context(), strings.Fields(args))
		return status, stdout.String() + stderr.String()
	}
	for _, set := range gpu.LimitSets {
		if status, out := plan(set.Name); status != exitDone || !strings.Contains(out, set.Doc) {
			t.Errorf("--limits %s: exit %d: %.300s", set.Name, status, out)
		}
	}
}

// BenchmarkGraph70B measures how long it takes to print the graph of a 70B model from the header of its file.
func BenchmarkGraph70B(b *testing.B) {
	path := filepath.Join(b.TempDir(), "70b.gguf")
	if err := gguftest.HollowLlama(gguftest.Llama70B).WriteSparse(path); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var stdout, stderr bytes.Buffer
		args := []string{"graph", "--device", "none", path}
		if status := testProgram(&stdout, &stderr).main(b.Context(), args); status != exitDone {
			b.Fatalf("exit %d: %s", status, stderr.String())
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/graph")
}
