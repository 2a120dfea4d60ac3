package gguf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
)

// writeParts writes the parts of a split model and returns their paths.
func writeParts(t *testing.T, parts []*gguftest.Builder) []string {
	t.Helper()
	dir := t.TempDir()
	paths := make([]string, len(parts))
	for i, p := range parts {
		paths[i] = filepath.Join(dir, gguftest.SplitName("model", i, len(parts)))
		if err := os.WriteFile(paths[i], p.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// Open accepts the path of any part and opens the whole model.
func TestAnyPartOpensASplitModel(t *testing.T) {
	t.Parallel()
	want := mustParse(t, small().Bytes())
	paths := writeParts(t, small().Split(0, 3, 1))
	for _, path := range paths {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name() != paths[0] || !f.Has("general.architecture") {
			t.Errorf("%s opens as %s, or its metadata is missing", path, f.Name())
		}
		for i, tensor := range f.Tensors() {
			a, err1 := tensor.Bytes()
			b, err2 := want.Tensors()[i].Bytes()
			same := tensor.String() == want.Tensors()[i].String() && cmp.Equal(a, b)
			if err1 != nil || err2 != nil || !same {
				t.Errorf("%s: %v differs, %v %v", path, tensor, err1, err2)
			}
		}
		last := f.Tensors()[3]
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := last.Bytes(); err == nil {
			t.Error("a tensor of a part can still be read after Close")
		}
	}
}

// within returns the message of an error about files in a temporary folder, without the path of the folder.
func within(t *testing.T, dir string, err error) string {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	return strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
}

func TestIncompleteSplitModelIsRefused(t *testing.T) {
	t.Parallel()
	messages := wordingtest.New(t)
	for name, c := range map[string]struct {
		change func(parts []*gguftest.Builder)
		files  func(t *testing.T, paths []string) // changes the files after they are written
	}{
		"missing": {
			files: func(t *testing.T, paths []string) { mustDo(t, os.Remove(paths[1])) },
		},
		"another name": {
			files: func(t *testing.T, paths []string) { mustDo(t, os.Rename(paths[0], paths[0]+".gguf")) },
		},
		"number out of range": {
			change: func(parts []*gguftest.Builder) { parts[0].Set("split.no", uint16(3)) },
		},
		"number of another part": {
			change: func(parts []*gguftest.Builder) { parts[2].Set("split.no", uint16(1)) },
		},
		"of another model": {
			change: func(parts []*gguftest.Builder) { parts[1].Set("split.tensors.count", int32(9)) },
		},
		"too few tensors": {
			change: func(parts []*gguftest.Builder) {
				for _, p := range parts {
					p.Set("split.tensors.count", int32(9))
				}
			},
		},
		"a tensor twice": {
			change: func(parts []*gguftest.Builder) { parts[2].F32("norm", []int{1}, []float32{1}) },
		},
		"no number": {
			change: func(parts []*gguftest.Builder) { parts[0].Remove("split.no") },
		},
		"a part that is damaged": {
			files: func(t *testing.T, paths []string) { mustDo(t, os.Truncate(paths[2], 60)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := small().Split(1, 2, 1)
			if c.change != nil {
				c.change(parts)
			}
			paths := writeParts(t, parts)
			if c.files != nil {
				c.files(t, paths)
			}
			if name == "another name" {
				_, err := gguf.Open(paths[0] + ".gguf")
				messages.Text("renamed", within(t, filepath.Dir(paths[0]), err))
				paths = paths[1:]
			}
			_, err := gguf.Open(paths[0])
			messages.Text(name, within(t, filepath.Dir(paths[0]), err))
		})
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
