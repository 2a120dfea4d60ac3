//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
)

// startRecording starts a run that records to a path and waits at its second command.
func startRecording(t *testing.T, play, path string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	cmd = headless(t, play, "run", "-n", "5", "--timing", "off", "--trace", path)
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil { // the first token: the run has started
		t.Fatal(err)
	}
	return cmd, stderr
}

// After SIGHUP or SIGTERM the recording is complete, as after an interrupt.
func TestSignalsFinishARecording(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		path := filepath.Join(t.TempDir(), "run.jsonl")
		cmd, stderr := startRecording(t, "hang", path)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if status := cmd.ProcessState.ExitCode(); status != exitFailed ||
			stderr.String() != "gpuscope run: stopped by signal: "+sig.String()+"\n" {
			t.Errorf("exit %d, stderr %q", status, stderr)
		}
		if got, err := trace.ReadFile(path); err != nil || len(got.Steps) != 1 {
			t.Errorf("trace: %v", err)
		}
	}
}

// If a run does not end after a signal, a second signal ends it and prints where the recording is. After a
// kill the recording is also there. An older recording is kept, and the run names its own file at the start.
func TestRecordingOfAKilledRunIsFound(t *testing.T) {
	t.Parallel()
	for _, signals := range [][]syscall.Signal{{syscall.SIGKILL}, {syscall.SIGTERM, syscall.SIGTERM}} {
		path := filepath.Join(t.TempDir(), "run.json")
		old := path + ".partial"
		if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		partial := path + ".partial-2"
		cmd, stderr := startRecording(t, "deaf", path)
		for { // a step's text is printed before the step is recorded
			if got, err := trace.ReadFile(partial); err == nil && len(got.Steps) == 1 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		for ended := false; !ended; { // signals sent at the same time may be merged
			for _, sig := range signals {
				_ = cmd.Process.Signal(sig)
			}
			select {
			case <-done:
				ended = true
			case <-time.After(20 * time.Millisecond):
			}
		}
		if n := strings.Count(stderr.String(), partial); n != len(signals) { // at the start, and at the end
			t.Errorf("stderr %q names %s %d times, want %d", stderr, partial, n, len(signals))
		}
		if kept, err := os.ReadFile(old); err != nil || string(kept) != "old" {
			t.Errorf("%s was changed to %q: %v", old, kept, err)
		}
		got, err := trace.ReadFile(partial)
		if err != nil || len(got.Steps) != 1 || !trace.IsTrace(partial) {
			t.Errorf("the recording does not open: %v", err)
		}
	}
}

// If the disk becomes full during a recording, the part that was written is kept, and the error names its
// file.
func TestFullDiskLeavesTheRecording(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "run.json")
	run := headless(t, "play", "run", "-n", "5", "--timing", "off", "--trace", path)
	// 64 KiB are enough for the head of the trace and one or two steps.
	cmd := exec.Command(shell, append([]string{"-c", `ulimit -f 64; exec "$0" "$@"`}, run.Args...)...)
	cmd.Env = run.Env
	out, err := cmd.CombinedOutput()
	if status := cmd.ProcessState.ExitCode(); status != exitFailed {
		t.Fatalf("exit %d, %v: %s", status, err, out)
	}
	facts := path + " file too large run.json.partial"
	if !wordingtest.Mentions(errors.New(string(out)), facts) {
		t.Errorf("the output does not contain %s:\n%s", facts, out)
	}
	if _, err := trace.ReadFile(path + ".partial"); err != nil {
		t.Errorf("the recording does not open: %v", err)
	}
}

// If there is no room for the head of the trace, the file is removed, because it could not be opened.
func TestDiskFullAtTheStartLeavesNoRecording(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"run.json", "run.jsonl.gz"} {
		dir := t.TempDir()
		run := headless(t, "play", "run", "-n", "5", "--timing", "off", "--trace", filepath.Join(dir, name))
		cmd := exec.Command(shell, append([]string{"-c", `ulimit -f 0; exec "$0" "$@"`}, run.Args...)...)
		cmd.Env = run.Env
		out, _ := cmd.CombinedOutput()
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 || cmd.ProcessState.ExitCode() != exitFailed ||
			!strings.HasSuffix(string(out), name+": file too large\n") {
			t.Errorf("%s: %d files are left, %v: %s", name, len(left), err, out)
		}
	}
}

// Small files that unpack to more than the available memory cause a one-line error. The test limits the
// address space to 3 GB.
func TestHostileTracesEndInOneLine(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); testing.Short() || ok &&
		slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector needs more address space than 3 GB")
	}
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for _, c := range []struct {
		name, start, again, want string
		times                    int
	}{
		{"steps.json.gz", `,"steps":[{}`, ",{}", "memory", 8 << 20},
		{"spaces.json.gz", ``, strings.Repeat(" ", 1<<10), "white space", 1 << 18},
		{"name.json.gz", `,"x":"`, strings.Repeat("x", 1<<10), "JSON", 1 << 18},
	} {
		path := filepath.Join(dir, c.name)
		writeGzip(t, path, `{"schema":"gpuscope.trace/1"`+c.start, c.again, c.times)
		run := headless(t, "play", "--plain", path)
		const limited = `ulimit -v 3000000; exec "$0" "$@"`
		cmd := exec.Command(shell, append([]string{"-c", limited}, run.Args...)...)
		cmd.Env = run.Env
		start := time.Now()
		out, _ := cmd.CombinedOutput()
		t.Logf("%s: %v", c.name, time.Since(start).Round(time.Millisecond))
		if status := cmd.ProcessState.ExitCode(); status != exitFailed ||
			strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: exit %d, %.400q, want one line with %q", c.name, status, out, c.want)
		}
	}
}

// writeGzip writes a compressed file that contains start, followed by again the given number of times.
func writeGzip(t *testing.T, path, start, again string, times int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	block := strings.Repeat(again, 1<<10)
	_, err = io.WriteString(z, start)
	for range times >> 10 {
		if err == nil {
			_, err = io.WriteString(z, block)
		}
	}
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A pipe without a reader is rejected. A reader that does not read cannot keep the run from ending.
func TestPipeDoesNotHoldARun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := headless(t, "play", "run", "--trace", path)
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitFailed ||
		!strings.Contains(string(out), "no process reads this pipe") {
		t.Errorf("exit %d: %s", cmd.ProcessState.ExitCode(), out)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd = headless(t, "play", "run", "-n", "5", "--timing", "off", "--trace", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(reader, make([]byte, 1)); err != nil { // the run writes, and soon blocks
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != exitFailed {
		t.Errorf("exit %d", status)
	}
}
