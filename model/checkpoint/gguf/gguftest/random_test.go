package gguftest

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gpuscope/model/checkpoint/gguf"
)

// The same seed gives the same file, whose rows differ and whose numbers are finite and small.
func TestRandomModelsAreReproducible(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gguf")
	b := New()
	b.Hollow("m.weight", gguf.Q4_0, []int{64, 256})
	b.Hollow("e.weight", gguf.MXFP4, []int{3, 64, 96})
	b.Hollow("a_norm.weight", gguf.F32, []int{77})
	var files [][]byte
	for _, seed := range []uint64{1, 1, 2} {
		if err := b.WriteRandom(path, seed); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	if !slices.Equal(files[0], files[1]) || slices.Equal(files[0], files[2]) {
		t.Error("the seed does not determine the file")
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, m := range f.Tensors() {
		data, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(data) / m.Dims[0]; m.Type != gguf.F32 && slices.Equal(data[:n], data[n:2*n]) {
			t.Errorf("%s: the first two rows are equal", m.Name)
		}
		for i := 0; m.Type == gguf.Q4_0 && i < len(data); i += m.Type.BlockBytes() {
			x := gguf.Float16(uint16(data[i]) | uint16(data[i+1])<<8)
			if !(x > 0 && x < 0.1) {
				t.Fatalf("%s: a scale is %v", m.Name, x)
			}
		}
	}
}

// The header of each shape states as many parameters as its name says.
func TestPublishedShapesHaveTheirSizes(t *testing.T) {
	billions := map[string]float64{
		"llama-3.1-8b": 8.03, "qwen3-30b-a3b": 30.5, "gpt-oss-20b": 20.9, "qwen3.5-9b": 8.95,
		"gemma4-12b": 11.9, "qwen3-a3b-dense": 3.34,
	}
	for _, p := range PublishedShapes {
		n := 0
		for _, m := range p.Hollow(gguf.Q4_0, 0).tensors {
			all := 1
			for _, d := range m.dims {
				all *= d
			}
			n += all
		}
		if want := billions[p.Name]; math.Abs(float64(n)/1e9-want) > 0.01*want {
			t.Errorf("%s has %.2f billion parameters, want %.2f", p.Name, float64(n)/1e9, want)
		}
	}
}
