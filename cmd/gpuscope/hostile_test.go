package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
)

// hostileGGUF writes the demo model with a name that contains a line break and a sequence that writes the
// clipboard.
func hostileGGUF(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../model/demo/demo.gguf")
	if err != nil {
		t.Fatal(err)
	}
	const name, hostile = "gpuscope demo", "\x1b]52;c;aA==\x07\n"
	if len(name) != len(hostile) || !bytes.Contains(b, []byte(name)) {
		t.Fatalf("the demo model is no longer named %q", name)
	}
	path := filepath.Join(t.TempDir(), "x\x1b[2J.gguf")
	if err := os.WriteFile(path, bytes.Replace(b, []byte(name), []byte(hostile), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// clean fails the test if output contains control characters that a terminal would execute.
func clean(t *testing.T, what, output string) {
	t.Helper()
	for line := range strings.SplitSeq(output, "\n") {
		if printable.Clean(line) != line || !utf8.ValidString(line) {
			t.Errorf("%s contains the line %q", what, line)
		}
	}
}

func TestCommandsPrintSanitizedModelNames(t *testing.T) {
	t.Parallel()
	path := hostileGGUF(t)
	for _, args := range [][]string{
		{"graph", "--device", "none", path},
		{"graph", "--device", "none", "--format", "dot", path},
		{"graph", "--device", "none", "--format", "json", path},
		{"graph", "--context", "3000000000", path},
		{"graph", "no" + tracetest.HostileText},
		{"run", "--no" + tracetest.HostileText},
	} {
		var stdout, stderr bytes.Buffer
		p := testProgram(&stdout, &stderr)
		p.main(t.Context(), args)
		clean(t, strings.Join(args[:len(args)-1], " ")+": stdout", stdout.String())
		clean(t, strings.Join(args[:len(args)-1], " ")+": stderr", stderr.String())
	}
}

func TestNamesOfDevicesAreCleaned(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"devices", "devices --device 0", "devices --device zork", "graph", "run"} {
		var stdout, stderr bytes.Buffer
		p := testProgram(&stdout, &stderr)
		p.open = p.openModel
		p.driver = &fake.Driver{All: []fake.Options{{Info: gpu.AdapterInfo{
			Name: "GPU" + tracetest.HostileText, Vendor: tracetest.HostileText, Driver: tracetest.HostileText,
		}}}}
		p.main(t.Context(), strings.Fields(args))
		clean(t, args+": stdout", stdout.String())
		clean(t, args+": stderr", stderr.String())
	}
}

// Generated text is sanitized on a terminal. A program that reads it gets the unchanged text.
func TestRunTextIsSanitizedForPeopleOnly(t *testing.T) {
	t.Parallel()
	for _, watched := range []bool{true, false} {
		p, stdout, stderr := playBack(t, tuitest.Script{})
		p.Watched = watched
		p.open = func(context.Context, *modelOptions, func(session.Event)) (session.Session, error) {
			return tuitest.Play(tracetest.Hostile(tracetest.Llama(2, 3)), tuitest.Script{}), nil
		}
		if status := p.main(t.Context(), []string{"run", "-n", "2", "--timing", "off"}); status != exitDone {
			t.Fatalf("exit %d: %s", status, stderr)
		}
		if watched {
			clean(t, "stdout", strings.ReplaceAll(stdout.String(), "\t", ""))
			continue
		}
		text := tracetest.HostileText
		if !strings.Contains(stdout.String(), text) {
			t.Errorf("the text %q is not in the output %q", text, stdout)
		}
		_, profile, _ := strings.Cut(stdout.String(), "\n\n")
		clean(t, "the profile", profile)
	}
}

// On a terminal no table has control characters, in any format. A pipe gets the exact names as CSV.
func TestTablesAreSanitizedForPeopleOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hostile.json")
	if err := trace.WriteFile(path, tracetest.Hostile(tracetest.Llama(2, 3))); err != nil {
		t.Fatal(err)
	}
	printed := func(watched bool, name, format string) string {
		var stdout, stderr bytes.Buffer
		p := testProgram(&stdout, &stderr)
		p.Watched = watched
		args := []string{"trace", "show", path, "--table", name, "--format", format}
		if status := p.main(t.Context(), args); status != exitDone {
			t.Fatalf("%s: exit %d: %s", name, status, &stderr)
		}
		return stdout.String()
	}
	exact := 0
	for _, kind := range report.Tables() {
		for _, format := range table.Formats {
			clean(t, kind.Name+" as "+format, strings.ReplaceAll(printed(true, kind.Name, format), "\t", ""))
		}
		if strings.Contains(printed(false, kind.Name, "csv"), tracetest.HostileText[:20]) {
			exact++
		}
	}
	if exact < 5 {
		t.Errorf("only %d tables in CSV have the exact names", exact)
	}
}

func TestErrorLinesHaveAnEnd(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\x1b[31m", 20<<10)
	for _, args := range [][]string{
		{long},
		{"run", "--format", long},
		{"run", "-n", long},
		{"--" + long},
		{"run", "--route", long},
		{"graph", "--device", long},
		{"devices", "--device", long},
		{"run", "--trace", "/" + long + "/x.json"},
		{"help", long},
		{"run", "a", long},
		{"run", "--ids", long},
		{"/" + long + ".gguf"},
	} {
		var stdout, stderr bytes.Buffer
		p := testProgram(&stdout, &stderr)
		p.open = p.openModel
		if status := p.main(t.Context(), args); status == exitDone {
			t.Errorf("%.30q is accepted", args)
		}
		line := strings.TrimSuffix(stderr.String(), "\n")
		clean(t, "stderr", line)
		if n := utf8.RuneCountInString(line); n > 400 || n == 0 || strings.Contains(line, "\n") {
			t.Errorf("%.30q: %d characters of error: %.400q", args, n, line)
		}
	}
}

// A damaged language model runs, or one line says why it does not. The device computes nothing.
func TestDamagedLanguageModelsRunOrAreRefused(t *testing.T) {
	t.Parallel()
	times := 60
	if testing.Short() {
		times = 8
	}
	ran := 0
	for _, name := range []string{"qwen3-tiny-4w.pte", "llama-demo-8da4w.pte"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "pte", name))
		if err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skipf("the test programs are missing: %v", err)
		}
		f, err := pte.Parse(data, name)
		if err != nil {
			t.Fatal(err)
		}
		_, at := f.Methods[0].Delegates[0].Data.Place()
		graph := data[at:][:f.Methods[0].Delegates[0].Data.Size()]
		random := rand.New(rand.NewPCG(1, uint64(len(data))))
		path := filepath.Join(t.TempDir(), name)
		for range times {
			i := random.IntN(len(graph))
			old := graph[i]
			values := []byte{0, 1, 0x7f, 0xff, byte(random.Uint32()), old ^ 1<<random.IntN(8)}
			graph[i] = values[random.IntN(len(values))]
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			p := testProgram(&stdout, &stderr)
			p.open = p.openModel
			status := p.main(t.Context(), []string{
				"run", "--ids", "1,2,3,4,5,6,7", "-n", "3", "--profile", "off", path,
			})
			what := fmt.Sprintf("%s with byte %d = %d", name, at+int64(i), graph[i])
			clean(t, what, stderr.String())
			switch {
			case status == exitDone:
				ran++
			case strings.Count(stderr.String(), "\n") != 1:
				t.Errorf("%s: exit %d: %s", what, status, &stderr)
			}
			graph[i] = old
		}
	}
	if ran == 0 {
		t.Error("no damaged model ran")
	}
	t.Logf("%d ran", ran)
}
