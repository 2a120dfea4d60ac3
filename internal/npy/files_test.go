package npy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"gpuscope/internal/npy"
)

func TestFilesAreWrittenWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	arrays := []*npy.Array{
		{Type: npy.Float32, Dims: []int{2}, Data: make([]byte, 8)},
		{Type: npy.Bool, Dims: []int{}, Data: []byte{1}},
	}
	for range 2 { // the second time, the files exist
		paths, err := npy.WriteFiles(dir, "out", arrays)
		if err != nil || len(paths) != 2 || paths[1] != filepath.Join(dir, "out1.npy") {
			t.Fatalf("%v, %v", paths, err)
		}
		for i, path := range paths {
			if got, err := npy.Read(path); err != nil || !bytes.Equal(got.Data, arrays[i].Data) {
				t.Errorf("%s: %+v, %v", path, got, err)
			}
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("%d files in the folder, want 2", len(list))
	}
	if _, err := npy.WriteFiles(filepath.Join(dir, "out0.npy"), "out", arrays); err == nil {
		t.Error("a file in place of the folder is no error")
	}
}
