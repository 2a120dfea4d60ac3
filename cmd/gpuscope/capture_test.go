//go:build unix && !race

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// replayed is the part of the JSON of gpuscope replay that tests read.
type replayed struct {
	Schema, Verdict, Dispatch, Kernel string
	Line, Column, Runs                int
	Outputs                           []struct{ Elements, Differ, Exceed int }
	Time                              *struct{ NS int64 }
}

func replay(t *testing.T, line string) (status int, r replayed) {
	t.Helper()
	status, stdout, stderr := verified(t, "replay "+line+" --format json -r 2", "", "")
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Schema != "gpuscope.replay/1" {
		t.Fatalf("%s: %v: %s%s", line, err, stdout, stderr)
	}
	return status, r
}

// capture and replay find out whether a source computes what the captured kernel computed.
func TestReplayFindsWrongKernels(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "capture")
	status, _, stderr := verified(t, "capture --pp 5 --at sdpa_decode -o "+dir, "", "")
	if status != exitDone {
		t.Fatal(stderr)
	}
	source, err := os.ReadFile(filepath.Join(dir, "kernel.wgsl"))
	if err != nil {
		t.Fatal(err)
	}
	if status, got := replay(t, dir); status != exitDone || got.Verdict != "equal" ||
		got.Dispatch != "layers.0.attn.rope+sdpa.decode" || got.Kernel != "sdpa_decode" {
		t.Errorf("exit %d, %+v", status, got)
	}
	for _, c := range []struct {
		from, to, verdict string
		status            int
	}{
		{"let shrink =", "let  shrink =", "equal", exitDone},
		{"exp(score0 - largest)", "(1.0 + exp(score0 - largest))", "wrong", exitFailed},
		{"let shrink =", "lett shrink =", "refused", exitFailed},
	} {
		if !strings.Contains(string(source), c.from) {
			t.Fatalf("the kernel is not the one that this test changes:\n%s", source)
		}
		file := filepath.Join(t.TempDir(), "edited.wgsl")
		text := strings.ReplaceAll(string(source), c.from, c.to)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, got := replay(t, dir+" --kernel "+file)
		if status != c.status || got.Verdict != c.verdict || (got.Line > 0) != (c.verdict == "refused") {
			t.Errorf("%s: exit %d, %+v", c.to, status, got)
		}
		exceed := 0
		for _, o := range got.Outputs {
			exceed += o.Exceed
		}
		if (exceed > 0) != (c.verdict == "wrong") {
			t.Errorf("%s: %+v", c.to, got.Outputs)
		}
	}
}

// A dispatch that runs only in the other step is named with the flag that selects this step.
func TestCaptureNamesTheStepOfADispatch(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--at sdpa_streaming":                    "--step prefill",
		"--at layers.0.attn.rope+sdpa.streaming": "--step prefill",
		"--at sdpa_decode --step prefill":        "--step decode",
		"--at sdpa_decode_split":                 "--pp and --depth", // needs many positions
		"--at nothing":                           "gpuscope graph",
	} {
		dir := filepath.Join(t.TempDir(), "none")
		status, _, stderr := called(t, strings.Fields("capture --pp 5 --ignore-eos -o "+dir+" "+args)...)
		if _, err := os.Stat(dir); status != exitUsage || !strings.Contains(stderr, want) || err == nil {
			t.Errorf("%s: exit %d, %q, %v; want %q", args, status, stderr, err, want)
		}
	}
}

func TestCaptureAndReplayRefuseWrongUse(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{
		"capture": exitUsage, "capture --at nothing": exitUsage, "capture --at 1 --step later": exitUsage,
		"capture --at 1 --max-bytes 0": exitUsage, "capture --at 1 --device none": exitUsage,
		"capture --at attn.q --max-bytes 9": exitUsage, "capture --at 1 -o testdata": exitUsage,
		"replay": exitUsage, "replay absent": exitFailed, "replay testdata": exitFailed,
		"replay testdata -r 0": exitUsage, "replay testdata --tolerance -1": exitUsage,
		"replay testdata --tolerance NaN": exitUsage, "replay testdata --format xml": exitUsage,
		"replay testdata --tolerance Inf": exitUsage,
	} {
		if status, _, stderr := called(t, strings.Fields(args)...); status != want || stderr == "" {
			t.Errorf("%s: exit %d, %q; want exit %d", args, status, stderr, want)
		}
	}
}
