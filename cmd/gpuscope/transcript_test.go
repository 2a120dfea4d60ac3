package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
)

// TestTranscripts compares the command line's output with testdata/*.txt. Each transcript has a line "$
// gpuscope ARGUMENTS", the output of the command with "2> " before each line of standard error, and "exit
// STATUS".
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts:", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			played := 0
			for line := range strings.Lines(string(want)) {
				if strings.HasPrefix(line, "#") && played == 0 {
					got.WriteString(line)
				}
				if command, ok := strings.CutPrefix(line, "$ gpuscope"); ok {
					played++
					fmt.Fprintf(&got, "$ gpuscope%s%s", command, play(t, file, strings.Fields(command)))
				}
			}
			if played == 0 {
				t.Fatal("the file has no command")
			}
			if wordingtest.Updating() {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got (go test -update rewrites the file):\n%s", diff)
			}
		})
	}
}

// play runs one command on fake devices. Files named in a transcript are in testdata.
func play(t *testing.T, file string, args []string) string {
	var stdout, stderr bytes.Buffer
	p := testProgram(&stdout, &stderr)
	p.open = p.openModel
	if strings.Contains(file, "no-adapter") {
		p.driver = &fake.Driver{Err: errNoAdapterTest}
	}
	status := p.main(t.Context(), args)
	var out strings.Builder
	out.Write(stdout.Bytes())
	for line := range strings.Lines(stderr.String()) {
		out.WriteString("2> " + line)
	}
	fmt.Fprintf(&out, "exit %d\n", status)
	return out.String()
}

var errNoAdapterTest = fmt.Errorf("%w: install one", gpu.ErrNoAdapter)

// testProgram returns a program with two fake devices and no terminal.
func testProgram(stdout, stderr *bytes.Buffer) *program {
	return &program{
		Env: cli.Env{Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr},
		driver: &fake.Driver{All: []fake.Options{
			{Info: gpu.AdapterInfo{Name: "Big GPU", Vendor: "ACME", Driver: "acme 1.2", Type: gpu.Discrete}},
			{Info: gpu.AdapterInfo{Name: "softpipe", Type: gpu.CPU}, NoTimestamps: true},
		}},
	}
}
