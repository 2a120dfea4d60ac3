package ops

import (
	"math"
	"sync"
	"testing"

	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/weight"
)

// noiseMatrix returns a matrix of random bits in a format. Its floats are scaled so that products are of
// order 1. The data is generated at the first read.
func noiseMatrix(name string, rows, cols int, f weight.Format) weight.Matrix {
	m := weight.Matrix{Name: name, Rows: rows, Cols: cols, Format: f}
	m.Data = sync.OnceValues(func() ([][]byte, error) {
		var pieces [][]byte
		random := noiseOf(name)
		for _, p := range f.Pieces {
			data := make([]byte, rows*p.RowBytes(cols))
			for i := range data {
				data[i] = byte((random(i) + 2) * 64)
			}
			pieces = append(pieces, data)
		}
		// Decode some rows with floats of order 1. The size of the weights gives the factor by which the
		// floats must be smaller.
		putNoise(name, f, pieces, 1)
		n := min(rows, 4)
		first := m
		first.Data = func() ([][]byte, error) { return pieces, nil }
		var arrays [][]byte
		for k := range f.Arrays(n, cols) {
			array, err := first.PackArray(k, 0, n)
			if err != nil {
				return nil, err
			}
			arrays = append(arrays, array)
		}
		var squares float64
		row := make([]float64, cols)
		for i := range n {
			f.ReadRow(arrays, i, row)
			for _, w := range row {
				squares += w * w
			}
		}
		putNoise(name, f, pieces, 1/math.Sqrt(squares/float64(n)))
		return pieces, nil
	})
	return m
}

// putNoise sets the floats in a format's blocks to random values of either sign, multiplied by a factor.
func putNoise(name string, f weight.Format, pieces [][]byte, factor float64) {
	random := noiseOf(name + ".float")
	for i, p := range f.Pieces {
		for block := 0; block < len(pieces[i]); block += p.Bytes {
			for k, at := range p.Floats {
				at.Put(pieces[i][block+at.At:], float32(random(block+k)*factor))
			}
		}
	}
}

// q4Noise returns a matrix of random 4-bit weights.
func q4Noise(name string, rows, cols, group int) weight.Matrix {
	return noiseMatrix(name, rows, cols, weight.Q4GSW(group, weight.Q4Options{}))
}

// partBytes returns the binding limit with which a matrix is split into parts of the fewest rows.
func partBytes(f weight.Format, cols int) uint64 {
	var most int64
	for _, a := range f.Arrays(weight.PartRows, cols) {
		most = max(most, a.DType.Bytes(shape.Product(a.Dims)))
	}
	return uint64(most)
}

// A trace names the matrix of each constant with weights. It names none for scales and similar constants.
func TestConstantsOfWeightsSayWhichMatrixTheyAre(t *testing.T) {
	for _, f := range weight.Formats {
		const n = 300
		w := noiseMatrix("w", n, 256, f)
		if w.CheckSize() != nil { // a row must be one group
			w = noiseMatrix("w", n, f.Group, f)
		}
		g := finish(t, &trial{maxBinding: partBytes(f, w.Cols), build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, w.Cols}, []int{1, w.Cols})
			b.Output(Linear(b, "y", x, w, graph.None))
		}})
		rows, parts := 0, 0
		for _, v := range g.Describe().Values {
			if m := v.Matrix; m != nil {
				rows, parts = rows+m.Rows, parts+1
				if m.Format != f.Name || m.Cols != w.Cols {
					t.Errorf("%s: %s has %+v, want %d columns", f.Name, v.Name, *m, w.Cols)
				}
			}
		}
		if want := min(len(f.Name), 1) * n; rows != want || parts == 1 {
			t.Errorf("%s: %d parts have %d rows, want several with %d", f.Name, parts, rows, want)
		}
	}
}
