//go:build unix && !race

package main

import (
	"os"
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
