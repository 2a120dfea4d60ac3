package sources

import (
	"os"
	"path/filepath"
	"testing"

	"gpuscope/session"
)

func TestWriteCreatesAMissingFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		path, err := Write(filepath.Join(dir, "shaders"), "add", "text")
		if text, _ := os.ReadFile(path); err != nil || string(text) != "text" {
			t.Fatalf("%s has %q: %v", path, text, err)
		}
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnlyUneditedSourcesAreRemoved(t *testing.T) {
	t.Parallel()
	dir, err := NewFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for _, kernel := range []string{"add", "mul"} {
		path, err := Write(dir, kernel, "original")
		if err != nil {
			t.Fatal(err)
		}
		made[path] = "original"
	}
	edited := filepath.Join(dir, "mul.wgsl")
	if err := os.WriteFile(edited, []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	RemoveUnchanged(dir, made)
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 || list[0].Name() != "mul.wgsl" {
		t.Errorf("the folder has %v, want mul.wgsl: %v", list, err)
	}
	if err := os.Remove(edited); err != nil {
		t.Fatal(err)
	}
	RemoveUnchanged(dir, made)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the empty folder was not removed: %v", err)
	}
}

// Replace overwrites a known source only.
func TestReplaceKeepsUnknownSources(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "add"+session.KernelSuffix)
	for _, c := range []struct{ before, want string }{
		{"", "new"}, {"known", "new"}, {"unknown", "unknown"},
	} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if c.before != "" {
			if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Replace(dir, "add", "new", []string{"other", "known"})
		now, _ := os.ReadFile(path)
		if got != path || (err == nil) != (c.want == "new") || string(now) != c.want {
			t.Errorf("%q: %s has %q: %v", c.before, got, now, err)
		}
	}
}
