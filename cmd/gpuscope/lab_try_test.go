//go:build unix && !race

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/session"
)

// lab try answers in one JSON object: whether a source is right, wrong or does not compile.
func TestLabTryJudgesSources(t *testing.T) {
	_, source, _ := verified(t, "graph --kernel sdpa_decode", "", "")
	if !strings.Contains(source, "exp(score0 - largest)") {
		t.Fatalf("the kernel is not the one that this test changes:\n%s", source)
	}
	for _, c := range []struct {
		name, from, to string
		verdict        session.Verdict
		status         int
	}{
		{"same", "", "", session.VerdictEqual, exitDone}, // one round tells no difference
		{"wrong", "exp(score0 - largest)", "(1.0 + exp(score0 - largest))", session.VerdictWrong, exitFailed},
		{"broken", "let shrink =", "lett shrink =", labRefused, exitFailed},
		{"foreign", "HeadQuads 16", "HeadQuads 17", labRefused, exitFailed},
	} {
		file := filepath.Join(t.TempDir(), "sdpa_decode.wgsl")
		text := source
		if c.from != "" {
			text = strings.ReplaceAll(source, c.from, c.to)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, stdout, stderr := verified(t, "lab try "+file+" --pp 5 -r 1 --format json", "", "")
		var got labResult
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%s: %v: %s%s", c.name, err, stdout, stderr)
		}
		if status != c.status || got.Verdict != c.verdict || got.Schema != labSchema ||
			got.Kernel != "sdpa_decode" || stderr != "" {
			t.Errorf("%s: exit %d, verdict %q (%s), stderr %q", c.name, status, got.Verdict, got.Reason,
				stderr)
		}
		if c.verdict == session.VerdictEqual && got.Reason == "" {
			t.Errorf("%s: no reason why one round gives the verdict equal", c.name)
		}
		if c.name == "broken" != (got.Line > 0 && got.Column > 0) {
			t.Errorf("%s: the error is at %d:%d", c.name, got.Line, got.Column)
		}
		if measured := got.Verdict != labRefused; measured != (got.Error != nil) ||
			measured && (got.Dispatches != 6 || got.Tokens != 1 || got.Position != 5) {
			t.Errorf("%s: error %v, %d dispatches, %d tokens at %d", c.name, got.Error, got.Dispatches,
				got.Tokens, got.Position)
		}
	}
}

func TestLabTryRefusesWrongUse(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{
		"lab try": exitUsage, "lab try absent.wgsl": exitFailed, "lab try x.wgsl --step later": exitUsage,
		"lab try x.wgsl --format xml": exitUsage, "lab try x.wgsl -r 0": exitUsage,
	} {
		if status, _, stderr := called(t, strings.Fields(args)...); status != want || stderr == "" {
			t.Errorf("%s: exit %d, %q; want exit %d", args, status, stderr, want)
		}
	}
}
