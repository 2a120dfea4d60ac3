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

// What the page of the lab says to type measures a kernel.
func TestTheLabsOwnExampleMeasuresItsKernel(t *testing.T) {
	gputest.Open(t) // or the test is skipped
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
			continue // the others take minutes on a CPU
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
		t.Errorf("the page has %d lines to try", ran)
	}
}
