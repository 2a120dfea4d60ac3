package arch

import (
	"testing"

	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
)

// In a stack of NVFP4 matrices, each matrix has a factor of its own.
func TestStackedMatricesKeepTheirFactors(t *testing.T) {
	const n, rows, cols = 3, 8, 64
	b := gguftest.New()
	b.Set("general.architecture", "llama")
	blocks := n * rows * cols / gguf.NVFP4.BlockLen()
	b.Tensor("e.weight", gguf.NVFP4, []int{n, rows, cols}, make([]byte, blocks*gguf.NVFP4.BlockBytes()))
	b.F32("e.scale", []int{n}, []float32{2, 3, 5})
	f, err := ParseGGUF(b.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	build := &graph.Builder{}
	m := NewWeights(build, f, &Llama.Gguf, nil).stack("e.weight", n, rows, cols)
	if build.Err() != nil || m.Factor == nil {
		t.Fatalf("the stack has no factors: %v", build.Err())
	}
	up := m.Alternate(rows/2, 1) // the second half of each matrix
	for e, want := range []float32{2, 3, 5} {
		for row := range rows {
			if got, err := m.Factor(e*rows + row); err != nil || got != want {
				t.Errorf("row %d of matrix %d has factor %v (%v), want %v", row, e, got, err, want)
			}
		}
		for row := range rows / 2 {
			if got, err := up.Factor(e*rows/2 + row); err != nil || got != want {
				t.Errorf("row %d of half %d has factor %v (%v), want %v", row, e, got, err, want)
			}
		}
	}
}
