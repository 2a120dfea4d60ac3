//go:build !race

package model

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/model/demo"
)

// A file that is cut at any byte must give one clear error line, never a model.
func TestFileCutAnywhereIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cut.gguf")
	if err := os.WriteFile(path, demo.File, 0o600); err != nil {
		t.Fatal(err)
	}
	for n := (len(demo.File) - 1) / 1000 * 1000; n >= 0; n -= 1000 {
		if err := os.Truncate(path, int64(n)); err != nil {
			t.Fatal(err)
		}
		m, err := Read(Options{Path: path})
		if err == nil {
			m.Close()
			t.Fatalf("a file cut at byte %d was accepted", n)
		}
		if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "cut.gguf") {
			t.Fatalf("cut at byte %d: %q", n, err)
		}
	}
}
