package ops

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"gpuscope/ops/weight"
)

// The format reads the quantized pieces as values near the weights. The reported errors are the exact
// differences.
func TestQuantizedWeightsAreNearAndTheirErrorExact(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, group := range []int{32, 64, 128} {
		const cols = 256
		row := make([]float32, cols)
		for i := range row {
			row[i] = float32(random.NormFloat64())
		}
		clear(row[:group]) // a group of zeros
		row[group] = 100   // one weight that dwarfs the others
		row[cols-1] = math.SmallestNonzeroFloat32
		nibbles, scales := make([]byte, cols/2), make([]byte, 4*cols/group)
		worst, squares := weight.QuantizeQ4GSW(row, group, nibbles, scales)

		m := weight.Matrix{
			Name: "m", Rows: 1, Cols: cols, Format: weight.Q4GSW(group, weight.Q4Options{}),
			Data: func() ([][]byte, error) { return [][]byte{nibbles, scales}, nil },
		}
		if err := m.CheckSize(); err != nil {
			t.Fatal(err)
		}
		var arrays [][]byte
		for k := range m.Format.Arrays(1, cols) {
			data, err := m.PackArray(k, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			arrays = append(arrays, data)
		}
		read := make([]float64, cols)
		m.Format.ReadRow(arrays, 0, read)
		var largest, sum float64
		for i, w := range row {
			gap := math.Abs(float64(w) - read[i])
			largest, sum = max(largest, gap), sum+gap*gap
			scale := math.Float32frombits(binary.LittleEndian.Uint32(scales[4*(i/group):]))
			if gap > math.Abs(float64(scale))*1.01 {
				t.Errorf("groups of %d: weight %d is %v, read as %v, step %v", group, i, w, read[i],
					scale)
			}
		}
		if math.Abs(largest-worst) > 1e-9 || math.Abs(sum-squares) > 1e-9*sum {
			t.Errorf("groups of %d: largest error %v and sum of squares %v, reported %v and %v",
				group, largest, sum, worst, squares)
		}
	}
}

func TestWeightsOnAGridAreQuantizedExactly(t *testing.T) {
	row := make([]float32, 32)
	for _, scale := range []float32{0.25, -3, 1e-30} {
		for i := range row {
			row[i] = float32(i%16-8) * scale
		}
		if worst, _ := weight.QuantizeQ4GSW(row, 32, make([]byte, 16), make([]byte, 4)); worst != 0 {
			t.Errorf("step %v: error %v, want 0", scale, worst)
		}
	}
}

func TestNonFiniteWeightHasANonFiniteError(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		row := make([]float32, 64)
		row[5], row[6], row[40] = float32(bad), 1, 1
		_, squares := weight.QuantizeQ4GSW(row, 32, make([]byte, 32), make([]byte, 8))
		if !math.IsNaN(squares) && !math.IsInf(squares, 0) {
			t.Errorf("%v: squared error %v, want NaN or Inf", bad, squares)
		}
	}
}

func BenchmarkQuantizeQ4GSW(b *testing.B) {
	row := make([]float32, 4096)
	for i := range row {
		row[i] = float32(math.Sin(float64(i)))
	}
	b.SetBytes(int64(4 * len(row)))
	for b.Loop() {
		weight.QuantizeQ4GSW(row, 64, make([]byte, len(row)/2), make([]byte, 4*len(row)/64))
	}
}
