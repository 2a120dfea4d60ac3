package trace_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gpuscope/internal/folder"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

func init() {
	trace.RegisterExport(trace.Export{
		Name: "zipped", Doc: "nothing, gzipped", Suffix: ".zipped.gz",
		Write: func(w io.Writer, _ *trace.Trace) error {
			_, err := io.WriteString(w, "plain")
			return err
		},
	})
	trace.RegisterExport(trace.Export{
		Name: "names", Doc: "the name of each operator", Suffix: ".names",
		Write: func(w io.Writer, t *trace.Trace) error {
			for i := range t.Graph.Ops {
				if _, err := fmt.Fprintln(w, t.Graph.Ops[i].Name); err != nil {
					return err
				}
			}
			return nil
		},
	})
	trace.RegisterExport(trace.Export{
		Name: "names-json", Doc: "the kinds of operators", Suffix: ".names.json",
		Write: func(w io.Writer, _ *trace.Trace) error {
			_, err := io.WriteString(w, "\n[]")
			return err
		},
	})
	trace.RegisterExport(trace.Export{
		Name: "name-files", Doc: "a file for each operator", Suffix: ".namefiles",
		WriteFolder: func(dir string, t *trace.Trace) error {
			for i := range t.Graph.Ops {
				in := filepath.Join(dir, t.Graph.Ops[i].Kind)
				if err := os.MkdirAll(in, 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(in, fmt.Sprint(i)), nil, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func TestAnExportIsWrittenAndNotOpened(t *testing.T) {
	t.Parallel()
	for suffix, name := range map[string]string{
		".names": "names", ".names.gz": "names", ".names.json": "names-json", ".names.json.zst": "names-json",
	} {
		path := filepath.Join(t.TempDir(), "x"+suffix)
		if err := trace.WriteFile(path, tracetest.Llama(1, 3)); err != nil {
			t.Fatal(err)
		}
		f, by, err := trace.FormatOf(path)
		packed := strings.HasSuffix(suffix, ".gz") || strings.HasSuffix(suffix, ".zst")
		if err != nil || f.Name != name || f.Opens() || (by != nil) != packed {
			t.Errorf("%s is of the format %q, opens %t, compressed %v: %v", path, f.Name, f.Opens(), by, err)
		}
		if trace.IsTrace(path) {
			t.Errorf("%s is taken for a trace", path)
		}
		if _, err := trace.ReadFile(path); !errors.Is(err, trace.ErrWriteOnly) {
			t.Errorf("reading %s: %v, want ErrWriteOnly", path, err)
		}
	}
}

// A file that cannot be the export that its name promises is described by its content.
func TestAnotherFileWithTheNameOfAnExport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		name, content string
		want          error
	}{
		{"x.names.json", "\x01\x02garbage", trace.ErrNotTrace},
		{"x.names.json.gz", "\x01\x02garbage", trace.ErrNotTrace},
		{"x.names.json.zst", "garbage", trace.ErrNotTrace},
		{"x.names", "", trace.ErrNotTrace},
		{"y.names.json.zst", "\x28\xb5\x2f\xfd", trace.ErrTruncated},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := trace.ReadFile(path); !errors.Is(err, c.want) || errors.Is(err, trace.ErrWriteOnly) {
			t.Errorf("%s with %q: %v, want %v", c.name, c.content, err, c.want)
		}
	}
}

func TestARecordingEndsAsAnExport(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.names")
	w, err := trace.CreateStream(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(tracetest.Llama(1, 3)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.ReadFile(path); !errors.Is(err, trace.ErrWriteOnly) {
		t.Errorf("reading it: %v, want ErrWriteOnly", err)
	}
}

// record records a run to a path.
func record(path string) error {
	w, err := trace.CreateStream(path)
	if err != nil {
		return err
	}
	if err := w.Begin(tracetest.Llama(1, 3)); err != nil {
		return err
	}
	return w.Close()
}

func TestAFolderIsWrittenAndReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "x.namefiles")
	link := filepath.Join(dir, "link.namefiles")
	if err := os.Symlink("x.namefiles", link); err != nil {
		t.Fatal(err)
	}
	write := func(path string) error { return trace.WriteFile(path, tracetest.Llama(1, 3)) }
	for _, write := range []func() error{
		func() error { return write(path) },
		func() error { return write(path + "/") },
		func() error { return record(path) },
		func() error { return record(link) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if got, err := filepath.Glob(filepath.Join(path, "sdpa*", "*")); err != nil || len(got) == 0 {
			t.Errorf("no file of an operator: %v", err)
		}
		if left := files(t, dir); !slices.Equal(left, []string{"link.namefiles", "x.namefiles"}) {
			t.Errorf("files: %q", left)
		}
	}
	if trace.IsTrace(path) {
		t.Error("the folder is taken for a trace")
	}
	if _, err := trace.ReadFile(path); !errors.Is(err, trace.ErrWriteOnly) {
		t.Errorf("reading it: %v, want ErrWriteOnly", err)
	}
	if err := os.WriteFile(filepath.Join(path, "foreign"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{write(path), record(link)} {
		if !errors.Is(err, folder.ErrForeign) {
			t.Errorf("with a foreign file in it: %v, want folder.ErrForeign", err)
		}
	}
}

func TestAFolderIsRefusedWhereAFileIsMeant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file.namefiles"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("pipe.namefiles"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("folder.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"file.namefiles": trace.ErrNotFolder, "pipe.namefiles": trace.ErrNotFolder,
		"new.namefiles.gz": trace.ErrPackedFolder, "folder.json": trace.ErrFolder, "": trace.ErrFolder,
	} {
		for _, err := range []error{record(at(name)), trace.WriteFile(at(name), tracetest.Tiny())} {
			if !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", name, err, want)
			}
		}
	}
	if left := files(t, dir); len(left) != 3 {
		t.Errorf("files: %q", left)
	}
}

func TestAFormatGivenByNameNeedsNoSuffix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range trace.Written() {
		named, err := trace.FormatNamed(f.Name)
		if err != nil || named.Suffix != f.Suffix {
			t.Fatalf("%s: %v", f.Name, err)
		}
		path := filepath.Join(dir, f.Name+".other")
		if err := trace.WriteFileAs(path, named, tracetest.Llama(1, 3)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() != f.Folder() {
			t.Errorf("%s is a folder: %t, %v", f.Name, !f.Folder(), err)
		}
		if f.Opens() {
			opens(t, path)
		}
	}
	if _, err := trace.FormatNamed("xyz"); !errors.Is(err, trace.ErrForm) {
		t.Errorf("an unknown name: %v, want ErrForm", err)
	}
}

func TestAnExportMayAlwaysBeGzipped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	suffixed, named := filepath.Join(dir, "x.Zipped.gz"), filepath.Join(dir, "x")
	form, err := trace.FormatNamed("zipped")
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.WriteFile(suffixed, tracetest.Tiny()); err != nil {
		t.Fatal(err)
	}
	if err := trace.WriteFileAs(named, form, tracetest.Tiny()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{suffixed, named} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); string(text) != "plain" || err != nil {
			t.Errorf("%s holds %q, %v", path, text, err)
		}
	}
	for _, name := range []string{"x.zipped", "x.zipped.gz.gz"} {
		if _, _, err := trace.FormatOf(name); !errors.Is(err, trace.ErrForm) {
			t.Errorf("%s: %v, want ErrForm", name, err)
		}
	}
}
