package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
)

// A recording has the prompt as text. With --no-text, no file of any format has the prompt, the generated
// text, or token ids.
func TestTracesHaveTheTextUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	const prompt = "Xylophone quartz"
	dir := t.TempDir()
	run := func(args ...string) string {
		p, stdout, stderr := onFake(t, nil)
		if status := p.main(t.Context(), args); status != exitDone {
			t.Fatalf("%v: exit %d: %s", args, status, stderr)
		}
		return stdout.String()
	}
	full, bare := filepath.Join(dir, "full.json"), filepath.Join(dir, "bare.jsonl")
	record := []string{"run", "-p", prompt, "-n", "4", "--ignore-eos", "--profile", "off", "--trace"}
	run(append(slices.Clone(record), full)...)
	out := run(append(slices.Clone(record), bare, "--no-text")...)
	if !strings.Contains(out, "on GPU") {
		t.Errorf("the run printed %q", out)
	}
	with, err := trace.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	begins := slices.IndexFunc(with.Events, func(e trace.Event) bool { return e.Kind == "prompt" })
	if begins < 0 || !strings.Contains(with.Events[begins].Prompt, prompt) || with.NoText {
		t.Errorf("events %+v", with.Events)
	}
	without, err := trace.ReadFile(bare)
	if err != nil {
		t.Fatal(err)
	}
	if !without.NoText || len(without.Steps) != len(with.Steps) {
		t.Errorf("no_text %v, %d steps, want %d", without.NoText, len(without.Steps), len(with.Steps))
	}
	for i := range without.Steps {
		s := &without.Steps[i]
		if s.Text != "" || s.Token != nil || s.Top != nil || len(s.Tokens) != len(with.Steps[i].Tokens) ||
			slices.Max(s.Tokens) != 0 {
			t.Errorf("step %d has a text: %+v, %q", i, s.Tokens, s.Text)
		}
	}
	outDir := filepath.Join(dir, "converted")
	if err := os.Mkdir(outDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range trace.Formats() {
		run("trace", "convert", full, "--no-text", "--to", f.Name, "-o", filepath.Join(outDir, f.Name))
	}
	for _, e := range trace.Exports() {
		run("trace", "convert", full, "--no-text", "--to", e.Name, "-o", filepath.Join(outDir, e.Name))
	}
	files := 0
	err = filepath.WalkDir(outDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if files++; bytes.Contains(data, []byte("Xylophone")) {
			t.Errorf("%s has the prompt", path)
		}
		return err
	})
	if err != nil || files < len(trace.Formats())+len(trace.Exports()) {
		t.Errorf("%d files: %v", files, err)
	}
}

func TestNoTextNeedsARecording(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"run", "verify"} {
		var stdout, stderr bytes.Buffer
		status := testProgram(&stdout, &stderr).main(t.Context(), []string{command, "--no-text"})
		if status != exitUsage || !strings.Contains(stderr.String(), "--trace") {
			t.Errorf("%s: exit %d: %s", command, status, &stderr)
		}
	}
}
