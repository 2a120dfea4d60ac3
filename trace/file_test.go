//go:build unix

package trace_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// recording starts to record three steps.
func recording(t *testing.T, path string) *trace.StreamWriter {
	t.Helper()
	w, err := newStream(path, tracetest.Llama(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Cancel)
	return w
}

// opens fails the test if the file does not hold the three steps.
func opens(t *testing.T, path string) {
	t.Helper()
	if got, err := trace.ReadFile(path); err != nil || len(got.Steps) != 3 {
		t.Errorf("%s does not open with its steps: %v", path, err)
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

func TestEveryFormIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, f := range trace.Formats() {
		upper := strings.ToUpper(f.Suffix)
		for _, suffix := range []string{f.Suffix, f.Suffix + ".gz", f.Suffix + ".zst", upper} {
			path := filepath.Join(t.TempDir(), "x"+suffix)
			if err := trace.WriteFile(path, tracetest.Llama(1, 3)); err != nil {
				t.Fatal(err)
			}
			opens(t, path)
			if got, by, err := trace.FormatOf(path); err != nil || got.Name != f.Name ||
				(by != nil) != (strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".zst")) {
				t.Errorf("%s is %s, compressed %v: %v", path, got.Name, by, err)
			}
			other := filepath.Join(t.TempDir(), "without a name")
			if err := os.Rename(path, other); err != nil {
				t.Fatal(err)
			}
			if opens(t, other); !trace.IsTrace(other) {
				t.Errorf("a file in format %s is not recognized by its content", f.Name)
			}
		}
	}
}

func TestAnUnknownFormIsRefusedByName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x.txt", "x.json.zip", "x.jsn.gz", "x.csv", "-"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		_, err := trace.CreateStream(path)
		for _, err := range []error{err, trace.WriteFile(path, tracetest.Tiny())} {
			if err == nil || !strings.Contains(err.Error(), name) ||
				!strings.HasSuffix(err.Error(), "known: "+trace.FileNames()) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if left := files(t, dir); len(left) > 0 {
			t.Errorf("leftover files: %q", left)
		}
	}
}

func TestOtherFilesAreNotTakenForTraces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"model.gguf": "GGUF\x03\x00\x00\x00", "empty": "", "broken.bin": "\x1f\x8b", "list": "[{}]",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if trace.IsTrace(path) {
			t.Errorf("%s with %q is taken for a trace", name, content)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, filepath.Join(dir, "missing")} {
		if trace.IsTrace(path) { // must not wait for a writer
			t.Errorf("%s is taken for a trace", path)
		}
	}
}

// The file of a recorder that was killed can be found by its name and opened.
func TestUnfinishedRecordingHasANameAndOpens(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x.json", "x.jsonl", "x.json.gz", "x.jsonl.gz"} {
		dir := t.TempDir()
		w := recording(t, filepath.Join(dir, name))
		if w.Partial() != filepath.Join(dir, name+".partial") {
			t.Errorf("%s is recorded to %s", name, w.Partial())
		}
		if strings.HasSuffix(name, "jsonl.gz") { // flushed records are in the file
			if err := w.Write(trace.Record{Event: &trace.Event{Kind: "note"}}); err != nil {
				t.Fatal(err)
			}
		}
		if opens(t, w.Partial()); !trace.IsTrace(w.Partial()) {
			t.Errorf("%s is not recognized as a trace", w.Partial())
		}
		// A second recording does not touch the file of the first one. It can say so.
		second := recording(t, filepath.Join(dir, name))
		if w.Occupied() != "" || second.Occupied() != w.Partial() || second.Partial() != w.Partial()+"-2" {
			t.Errorf("recorded to %s and %s, occupied %q and %q", w.Partial(), second.Partial(), w.Occupied(),
				second.Occupied())
		}
		if err := second.Close(); err != nil {
			t.Fatal(err)
		}
		opens(t, filepath.Join(dir, name))
		opens(t, w.Partial())
		if got := files(t, dir); len(got) != 2 {
			t.Errorf("the folder holds %q", got)
		}
	}
}

// If the last part of a recording fails, its lines are kept and the error names the file.
func TestRecordingThatCannotBeFinishedIsKept(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x.json", "x.jsonl", "x.json.gz", "x.jsonl.gz"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		w := recording(t, path)
		if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := w.Close()
		want := " " + name + ".partial beside it"
		if err == nil || !strings.HasPrefix(err.Error(), "write trace "+path) ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		w.Cancel()
		opens(t, filepath.Join(dir, name+".partial"))
		if got := files(t, dir); len(got) != 2 {
			t.Errorf("the folder holds %q", got)
		}
	}
}

func TestTraceIsWrittenThroughALink(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		dir, links := t.TempDir(), t.TempDir()
		target, link := filepath.Join(dir, "real.json"), filepath.Join(links, "run.json")
		if there {
			if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(target, filepath.Join(dir, "between.json")); err != nil {
			t.Fatal(err)
		}
		between, err := filepath.Rel(links, filepath.Join(dir, "between.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(between, link); err != nil {
			t.Fatal(err)
		}
		w := recording(t, link)
		if w.Partial() != target+".partial" {
			t.Errorf("recorded to %s", w.Partial())
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link was replaced: %v %v", info, err)
		}
		opens(t, target)
		if info, _ := os.Stat(target); there && info.Mode().Perm() != 0o600 {
			t.Errorf("the file's mode changed to %v", info.Mode())
		}
	}
}

func TestPipeGetsLinesOrARefusalAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.CreateStream(path); !errors.Is(err, trace.ErrNoReader) {
		t.Fatalf("a pipe without a reader: %v", err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0) // never waits
	if err != nil {
		t.Fatal(err)
	}
	w := recording(t, path)
	if line, err := bufio.NewReader(reader).ReadString('\n'); err != nil ||
		!strings.HasPrefix(line, `{"schema":"`+trace.Schema+`"`) {
		t.Errorf("the first line is %.60q: %v", line, err)
	}
	// Nothing reads any more. The writer waits until its deadline.
	w.Expire(time.Now().Add(50 * time.Millisecond))
	event := trace.Record{Event: &trace.Event{Kind: "note", Text: strings.Repeat("x", 1<<16)}}
	for err = nil; err == nil; {
		err = w.Write(event)
	}
	if got := w.Close(); got == nil || strings.Contains(got.Error(), "kept") {
		t.Errorf("close: %v", got)
	}
	reader.Close()

	read, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	w = recording(t, path)
	read.Close()
	if err = w.Write(event); err == nil || errors.Is(err, syscall.EPIPE) {
		t.Fatalf("a pipe whose reader has exited: %v", err)
	}
	wordingtest.New(t).Text("reader exited", strings.ReplaceAll(err.Error(), path, "PATH"))
}

func TestFullDeviceIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	w, err := trace.CreateStream("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(tracetest.Tiny()); fmt.Sprint(err) != "write trace /dev/full: no space left on device" {
		t.Error(err)
	}
	if err := trace.WriteFile("/dev/full", tracetest.Tiny()); err == nil {
		t.Error("no error")
	}
	if err := trace.WriteFile(os.DevNull, tracetest.Tiny()); err != nil {
		t.Error(err)
	}
}

// Files under /dev may be ordinary files.
func TestFileInMemoryIsReplaced(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/dev/shm", "gpuscope")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "x.json")
	if err := os.WriteFile(path, bytes.Repeat([]byte("old"), 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := recording(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	opens(t, path)
}

// A file descriptor that was redirected to a file is written to, not replaced.
func TestDescriptorIsWrittenDirectly(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := recording(t, fmt.Sprintf("/dev/fd/%d", f.Fd()))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if got, err := trace.Read(f); err != nil || len(got.Steps) != 3 {
		t.Errorf("read back: %v", err)
	}
}
