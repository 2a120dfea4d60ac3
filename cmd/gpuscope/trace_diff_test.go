package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// twoRuns writes two traces. In the second, each dispatch takes twice as long.
func twoRuns(t *testing.T) (a, b string) {
	t.Helper()
	dir := t.TempDir()
	a, b = filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	for _, path := range []string{a, b} {
		tr := tracetest.Llama(1, 12)
		for i := range tr.Steps {
			for k := range tr.Steps[i].Dispatches {
				d := &tr.Steps[i].Dispatches[k]
				if ns, _ := d.GPUNS.NS(); path == b {
					d.GPUNS = trace.Measured(2 * ns)
				}
			}
		}
		if err := trace.WriteFile(path, tr); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func TestTraceDiffFailsOnConditions(t *testing.T) {
	t.Parallel()
	a, b := twoRuns(t)
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{a, b}, exitDone},
		{[]string{a, b, "--fail-if", "rows.added>0"}, exitDone},
		{[]string{a, b, "--fail-if", "rows.added>0", "--fail-if", "isolated>+50%"}, exitFailed},
		{[]string{b, a, "--fail-if", "isolated>+50%"}, exitDone},
		{[]string{a, a, "--fail-if", "isolated>+0%"}, exitDone},
		{[]string{a, a, "--base-steps", "2-5", "--steps", "6-9"}, exitDone},
		{[]string{a, b, "--steps", "prefill"}, exitDone},
		{[]string{a, b, "--fail-if", "kernel:none>+5%"}, exitFailed},
		{[]string{a, b, "--fail-if", "speed>+5%"}, exitUsage},
		{[]string{a, b, "--steps", "99"}, exitUsage},
		{[]string{a, b, "--format", "xml"}, exitUsage},
		{[]string{a}, exitUsage},
		{[]string{a, a + ".none"}, exitFailed},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"trace", "diff"}, c.args...)
		status := testProgram(&stdout, &stderr).main(t.Context(), args)
		if status != c.status {
			t.Errorf("%q: exit %d, want %d: %s", c.args[1:], status, c.status, &stderr)
		}
		if (status == exitDone) != (stderr.Len() == 0) {
			t.Errorf("%q: exit %d, but the error is %q", c.args[1:], status, &stderr)
		}
	}
}

func TestTraceDiffWritesEveryFormat(t *testing.T) {
	t.Parallel()
	a, b := twoRuns(t)
	for format, begins := range map[string]string{
		"text": "A: ", "markdown": "**", "json": "{", "csv": "key,",
	} {
		out := filepath.Join(t.TempDir(), "out")
		var direct, stdout, stderr bytes.Buffer
		args := []string{"trace", "diff", a, b, "--format", format}
		if status := testProgram(&direct, &stderr).main(t.Context(), args); status != exitDone {
			t.Errorf("%s: exit %d: %s", format, status, &stderr)
		}
		// The result is written also if a condition fails.
		args = append(args, "-o", out, "--fail-if", "isolated>+50%")
		if status := testProgram(&stdout, &stderr).main(t.Context(), args); status != exitFailed ||
			stdout.Len() > 0 {
			t.Errorf("%s: exit %d, %q on standard output", format, status, &stdout)
		}
		file, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(direct.String(), begins) || !strings.HasPrefix(string(file), begins) {
			t.Errorf("%s begins with %.20q, in the file with %.20q", format, &direct, file)
		}
		if format == "json" {
			var got struct {
				Conditions []struct {
					Condition string
					Failed    bool
				}
			}
			if err := json.Unmarshal(file, &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Conditions) != 1 || !got.Conditions[0].Failed {
				t.Errorf("conditions in the JSON: %+v", got.Conditions)
			}
		}
	}
}
