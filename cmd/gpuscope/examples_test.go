//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gpuscope/model/checkpoint/pte/ptetest"
)

// beyondTests matches examples that need something that tests do not have: a GPU of a certain vendor, other
// files, or another program.
var beyondTests = regexp.MustCompile(`--device nvidia|tokenizer\.json|Llama-3|--chat|dot -Tsvg|--suite|executorch\.json|lab try|gpuscope (capture|replay)`)

// Runs the examples of the help on a fake device that computes nothing. Examples that open the screen run in
// plain mode.
func TestExamplesOfTheHelpRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 30 s")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	demo, err := filepath.Abs("../../model/demo/demo.gguf")
	if err != nil {
		t.Fatal(err)
	}
	dir, home := t.TempDir(), t.TempDir()
	for name, to := range map[string]string{"gpuscope": self, "model.gguf": demo, "70b.gguf": demo} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string][]byte{
		"model.pte": ptetest.Example(true).Bytes(), "program.pte": ptetest.Adder().Bytes(),
		"llama.log": []byte("Vulkan Timings:\nMUL_MAT_VEC q4_0 m=64 n=1 k=64: 2 x 2 us\n"),
		"a.npy":     floatArray(1, 2).Bytes(), "b.npy": floatArray(3, 4).Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sh := func(line string) (string, int) {
		cmd := headless(t, "fake")
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", line}
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"), pidEnv+"="+filepath.Join(dir, "pid"),
			"XDG_CACHE_HOME="+home, "XDG_CONFIG_HOME="+home)
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return string(out), exit.ExitCode()
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(out), exitDone
	}
	out, status := sh("gpuscope run -n 30 --timing dispatch --trace a.json && " +
		"gpuscope trace convert a.json run.json.gz && gpuscope trace convert a.json a.jsonl && " +
		"gpuscope trace convert a.json other.ct.json")
	if status != exitDone {
		t.Fatal(out)
	}
	for _, c := range new(program).commands() {
		for _, e := range c.Examples {
			line := e[0]
			switch {
			case beyondTests.MatchString(line), c.Name == "bench":
				continue
			case c.Screen && !strings.Contains(line, "--plain"):
				line += " --plain < /dev/null"
			}
			out, status := sh("cp a.json run.json && cp a.json before.json && cp a.json after.json && " +
				"cp a.jsonl run.jsonl.partial && " + line)
			// The device computes nothing, so its errors exceed the tolerance.
			over := c.Name == "verify" && status == exitFailed && strings.Contains(out, "tolerance")
			if status != exitDone && !over {
				t.Errorf("%s: exit %d: %.400s", line, status, out)
			}
		}
	}
}
