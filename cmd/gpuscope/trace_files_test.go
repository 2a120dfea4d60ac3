package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

func TestTraceConvertKeepsTheTraceInEveryFormat(t *testing.T) {
	t.Parallel()
	want := tracetest.Llama(1, 3)
	from := filepath.Join(t.TempDir(), "from.json")
	if err := trace.WriteFile(from, want); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range trace.Suffixes() {
		to := filepath.Join(t.TempDir(), "to"+suffix)
		var stdout, stderr bytes.Buffer
		if status := testProgram(&stdout, &stderr).main(t.Context(),
			[]string{"trace", "convert", from, to}); status != exitDone || stdout.Len()+stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %s%s", suffix, status, &stdout, &stderr)
		}
		got, err := trace.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", suffix, d)
		}
		from = to
	}
}

func TestTraceConvertWritesEveryFormatByName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "from.json")
	if err := trace.WriteFile(from, tracetest.Llama(1, 3)); err != nil {
		t.Fatal(err)
	}
	convert := func(args ...string) int {
		var stdout, stderr bytes.Buffer
		return testProgram(&stdout, &stderr).main(t.Context(), append([]string{"trace", "convert"}, args...))
	}
	for _, f := range trace.Written() {
		to := filepath.Join(dir, f.Name+".by-name")
		for range 2 { // the second time, the file or folder is replaced
			if status := convert(from, "--to", f.Name, "-o", to); status != exitDone {
				t.Errorf("%s: exit %d", f.Name, status)
			}
		}
		if info, err := os.Stat(to); err != nil || info.IsDir() != f.Folder() {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	new := filepath.Join(dir, "new.json")
	for _, args := range [][]string{
		{from}, {from, new, "-o", new}, {from, new, "--to", "xyz"}, {from, new + ".parquet.gz"},
	} {
		if status := convert(args...); status != exitUsage {
			t.Errorf("%q: exit %d", args, status)
		}
	}
	foreign := filepath.Join(dir, "foreign.parquet")
	if err := os.CopyFS(foreign, os.DirFS(filepath.Join(dir, "parquet.by-name"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(foreign, "notes"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if status := convert(from, foreign); status != exitFailed {
		t.Errorf("a folder with a foreign file: exit %d", status)
	}
}

// The error for an unknown suffix names every known one, however long the path is.
func TestUnknownSuffixNamesEveryFormat(t *testing.T) {
	t.Parallel()
	status, _, stderr := called(t, "trace", "convert", "testdata/llama.json.gz", strings.Repeat("long/", 60)+"a.xyz")
	if status != exitUsage {
		t.Errorf("exit %d", status)
	}
	for _, f := range trace.Written() {
		if !strings.Contains(stderr, f.Suffix) {
			t.Errorf("%s is not in %q", f.Suffix, stderr)
		}
	}
}

// If a trace is given instead of a model, the error says that it is a trace, even if a part of it is missing.
func TestATraceIsNotTakenForAModel(t *testing.T) {
	t.Parallel()
	golden, said := wordingtest.New(t), map[string]string{}
	dir := t.TempDir()
	for _, suffix := range trace.Suffixes() {
		path := filepath.Join(dir, "run"+suffix)
		if err := trace.WriteFile(path, tracetest.Llama(1, 3)); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		contents := [][]byte{whole, whole[:len(whole)/2]}
		if strings.HasSuffix(suffix, ".zst") {
			contents = contents[:1] // so little of a zstd file cannot be decompressed
		}
		for _, content := range contents {
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"bench", "graph"} {
				var stdout, stderr bytes.Buffer
				status := testProgram(&stdout, &stderr).main(t.Context(), []string{command, path})
				text := strings.ReplaceAll(stderr.String(), path, "PATH")
				if said[command] == "" {
					said[command] = text
					golden.Text(command, text)
				}
				if status != exitFailed || text != said[command] {
					t.Errorf("%s %s: exit %d, %s", command, path, status, &stderr)
				}
			}
		}
	}
}

func TestTraceCheckSaysWhatACutRecordingHolds(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := trace.WriteStream(&b, tracetest.Llama(1, 3)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.jsonl.partial")
	if err := os.WriteFile(path, b.Bytes()[:b.Len()-10], 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if status := testProgram(&stdout, &stderr).main(t.Context(),
		[]string{"trace", "check", path}); status != exitDone {
		t.Fatalf("exit %d: %s", status, &stderr)
	}
	for _, want := range []string{path + ": ok, " + trace.Schema + ": 2 steps, ", "truncated stream: "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q does not contain %q", &stdout, want)
		}
	}
}

// On a terminal a table shows only the columns that fit.
func TestTraceShowFitsTheTerminal(t *testing.T) {
	t.Parallel()
	width := func(columns int) (longest int) {
		var stdout, stderr bytes.Buffer
		p := testProgram(&stdout, &stderr)
		p.Watched, p.Columns = columns > 0, columns
		if status := p.main(t.Context(), strings.Fields(
			"trace show testdata/llama.json.gz --table dispatches --steps last")); status != exitDone {
			t.Fatalf("exit %d: %s", status, &stderr)
		}
		_, head, _ := strings.Cut(stdout.String(), "\n")
		for line := range strings.Lines(head) {
			longest = max(longest, len([]rune(line)))
		}
		return longest
	}
	if narrow, all := width(80), width(0); narrow >= all {
		t.Errorf("%d columns on a terminal, %d elsewhere", narrow, all)
	}
}

// A trace without steps shows its graph, as on the screen. Tables about steps fail, and the error does not
// mention flags that were not given.
func TestTraceShowOfATraceWithoutSteps(t *testing.T) {
	t.Parallel()
	bare := tracetest.Llama(1, 3)
	bare.Steps = nil
	path := filepath.Join(t.TempDir(), "bare.json")
	if err := trace.WriteFile(path, bare); err != nil {
		t.Fatal(err)
	}
	golden := wordingtest.New(t)
	// want is expected in the output. If the command fails, it prints a one-line error.
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"--table graph", exitDone, "layer 0"},
		{"--table graph --fold op", exitDone, "linear_q4gsw"},
		{"--table memory", exitDone, "layers.0"},
		{"--table tenants", exitDone, "layers.0"},
		{"--table values", exitDone, "layers.0"},
		{"--table dispatches", exitFailed, "table dispatches "},
		{"--table resize", exitFailed, "table resize "},
		{"--table graph --steps last", exitUsage, "--steps: "},
		{"--table values --base last", exitUsage, "--base: table values "},
	} {
		var stdout, stderr bytes.Buffer
		status := testProgram(&stdout, &stderr).main(t.Context(),
			append([]string{"trace", "show", path}, strings.Fields(c.args)...))
		said := stdout.String() + stderr.String()
		if status != c.status || !strings.Contains(said, c.want) ||
			status != exitDone && (stdout.Len() > 0 || strings.Count(said, "\n") != 1) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s", c.args, status, c.status, c.want, said)
		}
		line, _, _ := strings.Cut(said, "\n")
		golden.Text(c.args, line)
	}
}

func TestTraceCheckValidatesChromeJSON(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.ct.json")
	if err := trace.WriteFile(path, tracetest.Llama(1, 3)); err != nil {
		t.Fatal(err)
	}
	check := func() (status int, lines []string) {
		var stdout, stderr bytes.Buffer
		status = testProgram(&stdout, &stderr).main(t.Context(), []string{"trace", "check", path})
		return status, strings.Split(strings.TrimSpace(stdout.String()), "\n")
	}
	if status, lines := check(); status != exitDone || len(lines) != 1 {
		t.Errorf("exit %d, %q", status, lines)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(`"tid":7,"ts"`), []byte(`"tid":"x","ts"`), 2)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	// The arrow to the first dispatch ends outside of any slice too.
	if status, lines := check(); status != exitFailed || len(lines) != 3 {
		t.Errorf("exit %d, %q", status, lines)
	}
	// A file with the suffix of Chrome JSON but without its events.
	if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, lines := check(); status != exitFailed || !strings.Contains(strings.Join(lines, ""), "traceEvents") {
		t.Errorf("exit %d, %q", status, lines)
	}
}
