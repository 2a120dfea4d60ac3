//go:build unix && !race

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gpuscope/engine/gpu/gputest"
)

// The commands on the lab's documentation page measure a kernel.
func TestTheLabsOwnExampleMeasuresItsKernel(t *testing.T) {
	gputest.Open(t) // skips the test if there is no GPU
	page, err := os.ReadFile("../../docs/guide/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "gpuscope")); err != nil {
		t.Fatal(err)
	}
	said, ran := regexp.MustCompile(`^(mkdir |gpuscope graph --kernel |printf )`), 0
	for line := range strings.Lines(string(page)) {
		if !said.MatchString(line) {
			continue // the other commands take minutes on a CPU
		}
		cmd := headless(t, "real")
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", line}
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		measured := strings.Contains(string(out), " elements") && strings.Contains(string(out), "error ")
		if ran++; err != nil || strings.HasPrefix(line, "printf ") && !measured {
			t.Fatalf("%s%v: %s", line, err, out)
		}
	}
	if ran != 3 {
		t.Errorf("%d commands of the page ran, want 3", ran)
	}
}

// The script on the page that tries values of a constant stops where it cannot measure them.
func TestTuningScriptStopsAtErrors(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guide/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	script := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(page)
	if script == nil {
		t.Fatal("the page has no script")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("tune.sh", string(script[1]))
	write("base.wgsl", "// of a kernel\nconst Unroll = 4u;\n")
	// A stand-in for gpuscope: 8 is faster, 16 is wrong, and a model that does not exist is an error.
	write("gpuscope", `#!/bin/sh
echo "$4" >> calls
if [ "$4" = absent.gguf ]; then echo "absent.gguf: no such file" >&2; exit 2; fi
if grep -q "= 16u;" "$3"; then echo '{"verdict":"wrong","reason":"too large"}'; exit 1; fi
if grep -q "= 8u;" "$3"; then echo '{"verdict":"faster","in_step":{"gain":{"ns":700}}}'; exit; fi
echo '{"verdict":"equal"}'
`)
	_, err = exec.LookPath("jq")
	hasJQ := err == nil
	for _, c := range []struct {
		args   string
		status int
		calls  int
		want   string // in the output
	}{
		{"base.wgsl model.gguf Waste 1 2", 1, 0, "no constant Waste"},
		{"base.wgsl absent.gguf Unroll 1 2", 2, 1, "absent.gguf: no such file"},
		{"absent.wgsl model.gguf Unroll 1", 1, 0, "absent.wgsl"},
		{"base.wgsl model.gguf Unroll 4 16 8 2", 0, 4, "Unroll = 8 saves 700 ns per step"},
	} {
		if c.status == 0 && !hasJQ {
			continue
		}
		write("calls", "")
		cmd := exec.Command("sh", append([]string{"tune.sh"}, strings.Fields(c.args)...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, _ := cmd.CombinedOutput()
		calls, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		status, n := cmd.ProcessState.ExitCode(), strings.Count(string(calls), "\n")
		if status != c.status || n != c.calls || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: exit %d, calls %q: %s", c.args, status, calls, out)
		}
	}
}
