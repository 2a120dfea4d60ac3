package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

func TestCheckOutputAcceptsWhatIsNoInput(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"model", "tables"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.json", "b.json", "model/config.json"} {
		if err := os.WriteFile(name, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := trace.WriteFile("model/run.json", tracetest.Tiny()); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{
		"", "b.json", "new.json", "none/new.json", "tables", os.DevNull, "model/new.json", "model/run.json",
	} {
		if err := CheckOutput(out, "a.json", "model", os.DevNull, "missing", ""); err != nil {
			t.Errorf("%q: %v", out, err)
		}
	}
	for _, out := range []string{"./a.json", "model", "model/config.json", "."} {
		var usage UsageError
		if err := CheckOutput(out, "a.json", "model"); !errors.As(err, &usage) {
			t.Errorf("%q: %v, want a UsageError", out, err)
		}
	}
}

func TestWriteFileReplacesOnlyWhenComplete(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "page.html"), filepath.Join(dir, "link.html")
	for _, text := range []string{"old", "new"} {
		if err := WriteFile(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, []byte("linked")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if got, _ := os.ReadFile(file); string(got) != "linked" || err != nil || info.Mode() != 0o600 {
		t.Errorf("the file has %q and the mode %v: %v", got, info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("%d files, want 2", len(entries))
	}
	missing := filepath.Join(dir, "none", "page.html")
	var at *fs.PathError
	if err := WriteFile(missing, nil); !errors.As(err, &at) || at.Path != missing {
		t.Errorf("a missing folder: %v", err)
	}
	if err := WriteFile(dir, nil); err == nil {
		t.Error("a folder was replaced")
	}
	if err := WriteFile(os.DevNull, []byte("x")); err != nil {
		t.Errorf("a device: %v", err)
	}
}

// Only a terminal gets colors, and only if the user wants them. Escape sequences in the line itself are
// removed.
func TestStyledLineIsColoredOnTerminalsOnly(t *testing.T) {
	for _, c := range []struct {
		terminal      bool
		noColor, term string
		want          string
	}{
		{true, "", "xterm", "\x1b[1;32mfaster ·[31mx\x1b[0m\n"},
		{true, "1", "xterm", "faster ·[31mx\n"},
		{true, "", "dumb", "faster ·[31mx\n"},
		{false, "", "xterm", "faster ·[31mx\n"},
	} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.term)
		var got bytes.Buffer
		e := Env{Stdout: &got}
		if c.terminal {
			e.Stdout = printable.NewWriter(&got)
		}
		if err := e.PrintStyled("faster \x1b[31mx", "1;32"); err != nil || got.String() != c.want {
			t.Errorf("%+v: %q, %v", c, got.String(), err)
		}
	}
}
