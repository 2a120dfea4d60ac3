package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/model/session"
	"gpuscope/trace"
	"gpuscope/tui"
)

// What is planned without a device is shown and exported as what ran, and opens again.
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
	if err == nil || !strings.Contains(err.Error(), "2 commands failed, the first: the context is full") {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{
		"step 0: prefill at position 0, 64 tokens. planned without a device: not measured",
		"error: the context is full", "step 1: prefill at position 20, 5 tokens",
		"rows ← tokens 1×64 → 1×5", "error: repeat: there is no device",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
	got, err := trace.ReadFile(file)
	if err != nil || len(got.Steps) != 2 || !got.Device.None() {
		t.Errorf("exported: %v", err)
	}
}
