package ops

import (
	"slices"
	"testing"

	"gpuscope/engine/graph"
	"gpuscope/ops/weight"
)

// Some rows of a matrix read the same as those rows of the whole matrix on the device, in every format.
func TestStoredRowsAreThoseOfTheDevice(t *testing.T) {
	const rows = 300
	for _, f := range weight.Formats {
		cols := 512
		if f.Name == weight.QCS4W(64, weight.Q4Options{}).Name { // has one scale per row
			cols = 64
		}
		b := tinyBuilder()
		x := b.Input("x", graph.F32, []int{1, cols}, []int{4, cols})
		b.Output(Linear(b, "y", x, noiseMatrix("w", rows, cols, f), graph.None))
		g, err := b.Finish()
		if err != nil {
			t.Fatal(f.Name, err)
		}
		n := 0
		for m := range StoredMatrices(g) {
			n++
			var arrays [][]byte
			for _, v := range m.Arrays {
				data, err := g.Value(v).Load()
				if err != nil {
					t.Fatal(err)
				}
				arrays = append(arrays, data)
			}
			want := make([]float64, cols)
			for _, at := range [][2]int{{0, 1}, {17, 5}, {m.Rows - 3, 3}, {m.Rows, 0}} {
				got, err := m.Read(at[0], at[1])
				if err != nil {
					t.Fatal(f.Name, err)
				}
				for i := range at[1] {
					f.ReadRow(arrays, at[0]+i, want)
					if !slices.Equal(got[i*cols:(i+1)*cols], want) {
						t.Errorf("%s: row %d differs", f.Name, at[0]+i)
					}
				}
			}
			if _, err := m.Read(m.Rows-1, 2); err == nil {
				t.Errorf("%s: rows beyond the last were read", f.Name)
			}
		}
		if n == 0 {
			t.Errorf("%s: no matrix was found", f.Name)
		}
	}
}
