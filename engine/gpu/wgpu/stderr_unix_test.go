//go:build unix

package wgpu

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCaptureStderr(t *testing.T) {
	var before, after unix.Stat_t
	if err := unix.Fstat(2, &before); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var got bytes.Buffer
		restore, err := CaptureStderr(&got)
		if err != nil {
			t.Fatal(err)
		}
		// As native code does it, and as a child process does.
		if _, err := unix.Write(2, []byte("native\n")); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Dup(2) // os.Stderr is standard output under go test -json
		if err != nil {
			t.Fatal(err)
		}
		stderr := os.NewFile(uintptr(fd), "stderr")
		cmd := exec.Command("sh", "-c", "echo child >&2")
		cmd.Stderr = stderr
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		stderr.Close()
		restore()
		if got.String() != "native\nchild\n" {
			t.Errorf("captured %q", got.String())
		}
	}
	if err := unix.Fstat(2, &after); err != nil {
		t.Fatal(err)
	}
	if before.Dev != after.Dev || before.Ino != after.Ino {
		t.Error("descriptor 2 is not what it was")
	}
}

func TestCaptureStderrGoesOnWhenTheWriterFails(t *testing.T) {
	restore, err := CaptureStderr(failing{})
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Repeat([]byte("x"), 4096)
	for range 64 { // more than a pipe holds
		if _, err := unix.Write(2, line); err != nil {
			t.Fatal(err)
		}
	}
	restore()
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no") }
