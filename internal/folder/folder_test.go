package folder_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gpuscope/internal/folder"
)

// put writes files, given as name and content, below a folder.
func put(dir string, files ...string) error {
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// write writes a folder with the given files.
func write(target string, files ...string) error {
	return folder.Write(target, "test", func(dir string) error { return put(dir, files...) })
}

// below returns all files and empty folders below a folder, except lists.
func below(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if in, _ := filepath.Rel(dir, path); !d.IsDir() && d.Name() != folder.List {
			names = append(names, filepath.ToSlash(in))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAFolderReplacesTheFormerOneCompletely(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "x")
	for _, files := range [][]string{
		{"a/run=1/part", "one", "b", ""}, {"a/run=2/part", "two", "c/d/e", "three"}, {"b", "x"},
	} {
		if err := folder.Check(target); err != nil {
			t.Error(err)
		}
		if err := write(target, files...); err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := 0; i < len(files); i += 2 {
			want = append(want, "x/"+files[i])
		}
		if got := below(t, dir); !slices.Equal(got, want) {
			t.Errorf("files %q, want %q", got, want)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := write(filepath.Join(dir, "empty"), "a", "b"); err != nil {
		t.Errorf("an empty folder is not replaced: %v", err)
	}
}

func TestForeignContentsAreNeverReplaced(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(dir string) error{
		"a new file":     func(dir string) error { return put(dir, "a/new", "x") },
		"a changed file": func(dir string) error { return put(dir, "a/old", "longer") },
		"a new folder":   func(dir string) error { return os.Mkdir(filepath.Join(dir, "a", "empty"), 0o755) },
		"a file as folder": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "a", "old")), put(dir, "a/old/x", ""))
		},
		"a link":       func(dir string) error { return os.Symlink("old", filepath.Join(dir, "a", "link")) },
		"no list":      func(dir string) error { return os.Remove(filepath.Join(dir, folder.List)) },
		"another list": func(dir string) error { return put(dir, folder.List, "3 a/old\n") },
		"a list with no sizes": func(dir string) error {
			return put(dir, folder.List, "gpuscope export: test\na/old\n-1 a\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			target := filepath.Join(dir, "x")
			if err := write(target, "a/old", "old"); err != nil {
				t.Fatal(err)
			}
			if err := change(target); err != nil {
				t.Fatal(err)
			}
			before := below(t, dir)
			if err := folder.Check(target); !errors.Is(err, folder.ErrForeign) {
				t.Errorf("checked: %v, want ErrForeign", err)
			}
			if err := write(target, "b", "new"); !errors.Is(err, folder.ErrForeign) {
				t.Errorf("written: %v, want ErrForeign", err)
			}
			if after := below(t, dir); !slices.Equal(before, after) {
				t.Errorf("%q became %q", before, after)
			}
		})
	}
}

// A file that appears while the new folder is written is kept too.
func TestFilesThatAppearDuringTheWriteAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "x")
	if err := write(target, "a", "old"); err != nil {
		t.Fatal(err)
	}
	err := folder.Write(target, "test", func(partial string) error {
		return errors.Join(put(partial, "a", "new"), put(target, "foreign", "x"))
	})
	if !errors.Is(err, folder.ErrForeign) {
		t.Errorf("error %v, want ErrForeign", err)
	}
	if got := below(t, dir); !slices.Equal(got, []string{"x/a", "x/foreign"}) {
		t.Errorf("files %q", got)
	}
}

func TestAFailedWriteLeavesTheFormerFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "x")
	if err := write(target, "a", "old"); err != nil {
		t.Fatal(err)
	}
	fails := errors.New("disk full")
	err := folder.Write(target, "test", func(partial string) error {
		return errors.Join(put(partial, "b", "new"), fails)
	})
	if !errors.Is(err, fails) {
		t.Errorf("error %v", err)
	}
	if got := below(t, dir); !slices.Equal(got, []string{"x/a"}) {
		t.Errorf("files %q", got)
	}
	if err := write(filepath.Join(dir, "no", "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no parent: %v", err)
	}
}

// A folder with the name of the partial one belongs to somebody else.
func TestNamesInUseAreNotTouched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "x")
	if err := put(dir, "x.partial/a", "1", "x.old/b", "2", "x.old-2", "3"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := write(target, "c", "4"); err != nil {
			t.Fatal(err)
		}
	}
	if got := below(t, dir); !slices.Equal(got, []string{"x/c", "x.old/b", "x.old-2", "x.partial/a"}) {
		t.Errorf("files %q", got)
	}
}
