package gguf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
)

// writeParts writes the parts of a split model and gives their paths.
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

// Whichever part is given, the model is the one that was cut.
func TestASplitModelIsOpenedByAnyOfItsParts(t *testing.T) {
	t.Parallel()
	want := mustParse(t, small().Bytes())
	paths := writeParts(t, small().Split(0, 3, 1))
	for _, path := range paths {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name() != paths[0] || !f.Has("general.architecture") {
			t.Errorf("%s opens as %s, without its metadata", path, f.Name())
		}
		for i, tensor := range f.Tensors() {
			a, err1 := tensor.Bytes()
			b, err2 := want.Tensors()[i].Bytes()
			same := tensor.String() == want.Tensors()[i].String() && cmp.Equal(a, b)
			if err1 != nil || err2 != nil || !same {
				t.Errorf("%s: %v is another tensor, %v %v", path, tensor, err1, err2)
			}
		}
		last := f.Tensors()[3]
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := last.Bytes(); err == nil {
			t.Error("a part is open after Close")
		}
	}
}

func TestASplitModelThatIsNotWholeIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(parts []*gguftest.Builder)
		files  func(t *testing.T, paths []string) // after they were written
		want   string
	}{
		"missing": {
			files: func(t *testing.T, paths []string) { mustDo(t, os.Remove(paths[1])) },
			want:  "model-00002-of-00003.gguf is missing: the model is split into 3 files",
		},
		"another name": {
			files: func(t *testing.T, paths []string) { mustDo(t, os.Rename(paths[0], paths[0]+".gguf")) },
			want:  "is missing",
		},
		"number out of range": {
			change: func(parts []*gguftest.Builder) { parts[0].Set("split.no", uint16(3)) },
			want:   "split.count is 3 and split.no is 3; the maximum is 99999 parts, numbered from 0",
		},
		"number of another part": {
			change: func(parts []*gguftest.Builder) { parts[2].Set("split.no", uint16(1)) },
			want:   "00003-of-00003.gguf: part 2 of 3 of a model with 4 tensors; expected part 3 of 3 of a model with 4 tensors",
		},
		"of another model": {
			change: func(parts []*gguftest.Builder) { parts[1].Set("split.tensors.count", int32(9)) },
			want:   "of a model with 9 tensors",
		},
		"too few tensors": {
			change: func(parts []*gguftest.Builder) {
				for _, p := range parts {
					p.Set("split.tensors.count", int32(9))
				}
			},
			want: "the 3 parts have 4 tensors, but split.tensors.count is 9",
		},
		"a tensor twice": {
			change: func(parts []*gguftest.Builder) { parts[2].F32("norm", []int{1}, []float32{1}) },
			want:   `00003-of-00003.gguf: tensor "norm" is also in `,
		},
		"no number": {
			change: func(parts []*gguftest.Builder) { parts[0].Remove("split.no") },
			want:   `metadata "split.no" is missing`,
		},
		"a part that is damaged": {
			files: func(t *testing.T, paths []string) { mustDo(t, os.Truncate(paths[2], 60)) },
			want:  "00003-of-00003.gguf: ",
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
				if _, err := gguf.Open(paths[0] + ".gguf"); err == nil ||
					!strings.Contains(err.Error(), "Rename the file to NAME-00001-of-00003.gguf") {
					t.Errorf("renamed: %v", err)
				}
				paths = paths[1:]
			}
			if _, err := gguf.Open(paths[0]); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
