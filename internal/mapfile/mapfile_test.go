package mapfile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
)

func write(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	return path
}

func TestBytesAreTheFilesHoweverItIsRead(t *testing.T) {
	path := write(t, 10)
	for name, open := range map[string]func(string) (*File, error){
		"mapped": Open, "unmapped": OpenUnmapped,
		"memory": func(string) (*File, error) { return Of([]byte("0123456789")), nil },
	} {
		f, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := f.Bytes(3, 4); err != nil || string(data) != "3456" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if head, err := f.Head(99); err != nil || string(head) != "0123456789" {
			t.Errorf("%s: head %q, %v", name, head, err)
		}
		for _, at := range []int64{-1, 8, 11, 1 << 62} {
			if _, err := f.Bytes(at, 4); err == nil {
				t.Errorf("%s: 4 bytes at %d of 10", name, at)
			}
		}
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
		if _, err := f.Bytes(0, 1); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: bytes after Close: %v", name, err)
		}
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	notRegular := func(path, kind string, err error) {
		t.Helper()
		if !errors.Is(err, errNotRegular) || !strings.HasPrefix(err.Error(), path) ||
			!strings.HasSuffix(err.Error(), kind) {
			t.Errorf("a %s: %v", kind, err)
		}
	}
	if pipe := filepath.Join(t.TempDir(), "pipe"); exec.Command("mkfifo", pipe).Run() == nil {
		_, err := Open(pipe)
		notRegular(pipe, "pipe", err)
	}
	if runtime.GOOS != "windows" {
		_, err := Read("/dev/zero", 9)
		notRegular("/dev/zero", "device", err)
	}
	folder := t.TempDir()
	_, err := Open(folder)
	notRegular(folder, "folder", err)
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// The size is that of the open file, even if another file has replaced it. There is nothing to map past its
// end.
func TestFileReplacedWhileOpeningKeepsItsSize(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not replace open files")
	}
	path := write(t, 10)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for size := 0; ; size = 10 - size {
			select {
			case <-done:
				return
			default:
			}
			err := os.WriteFile(path+".new", make([]byte, size), 0o600)
			if err = errors.Join(err, os.Rename(path+".new", path)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 1000 {
		f, err := OpenUnmapped(path)
		if err != nil {
			t.Error(err)
			break
		}
		info, err := f.file.Stat()
		if err != nil || info.Size() != f.Size() {
			t.Errorf("a file of %d bytes is reported to have %d: %v", info.Size(), f.Size(), err)
		}
		f.Close()
	}
	close(done)
	<-stopped
}

func TestAFileThatIsReadWholeIsBounded(t *testing.T) {
	path := write(t, 10)
	if data, err := Read(path, 10); err != nil || string(data) != "0123456789" {
		t.Errorf("%q, %v", data, err)
	}
	_, err := Read(path, 9)
	if err == nil {
		t.Fatal("a file of 10 bytes was read, but the maximum is 9")
	}
	wordingtest.New(t).Text("too large", strings.ReplaceAll(err.Error(), path, "PATH"))
	if _, err := Read(t.TempDir(), 9); !errors.Is(err, errNotRegular) {
		t.Errorf("a folder: %v", err)
	}
}

func TestBytesBeyondTheMemoryAreAnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows no memory is requested from the system")
	}
	f, err := OpenUnmapped(write(t, 10))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.size = 1 << 60
	if _, err := f.Bytes(0, 1<<56); err == nil || !strings.Contains(err.Error(), "cannot allocate") {
		t.Errorf("%v", err) // no address space is that large
	}
}

func TestFileCutWhileOpenIsReported(t *testing.T) {
	golden := wordingtest.New(t)
	path := write(t, 10)
	f, err := OpenUnmapped(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 4); err != nil {
		t.Fatal(err)
	}
	_, err = f.Bytes(2, 6)
	golden.Error("cut", err)
}
