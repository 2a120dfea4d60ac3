package ops

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"
)

// noiseMatrix is a matrix of random bits in a format, with floats that make products of order 1.
func noiseMatrix(name string, rows, cols int, f Format) Matrix {
	return Matrix{Name: name, Rows: rows, Cols: cols, Format: f, Data: func() ([][]byte, error) {
		var pieces [][]byte
		for _, p := range f.Pieces {
			data := make([]byte, rows*p.rowBytes(cols))
			for i := range data {
				data[i] = byte((noise(name, i) + 2) * 64)
			}
			// What the bits besides the floats are at most, and so how large a scale may be.
			bits := 8 * (p.Bytes - 2*len(p.Halves) - 4*len(p.Floats)) / p.Cols
			for block := 0; block < len(data); block += p.Bytes {
				for i, at := range p.Halves {
					v := floatNoise(name, block+i, bits, len(p.Halves) < p.Cols) / math.Sqrt(float64(cols))
					binary.LittleEndian.PutUint16(data[block+at:], float16.Fromfloat32(float32(v)).Bits())
				}
				for i, at := range p.Floats {
					v := floatNoise(name, block+i, bits, len(p.Floats) < p.Cols) / math.Sqrt(float64(cols))
					binary.LittleEndian.PutUint32(data[block+at:], math.Float32bits(float32(v)))
				}
			}
			pieces = append(pieces, data)
		}
		return pieces, nil
	}}
}

// floatNoise is a weight, or a scale of weights of so many bits; 0 stands for those of another piece, of 4.
func floatNoise(name string, i, bits int, scale bool) float64 {
	if !scale {
		return noise(name, i)
	}
	if bits == 0 {
		bits = 4
	}
	return (noise(name+".scale", i) + 2.5) / 10 * math.Exp2(float64(4-bits))
}

// q4Noise is a matrix of random 4-bit weights.
func q4Noise(name string, rows, cols, group int) Matrix {
	return noiseMatrix(name, rows, cols, Q4GSW(group, Q4Options{}))
}

// partBytes is the limit on a binding with which the parts of a matrix have the fewest rows.
func partBytes(f Format, cols int) uint64 {
	var most int64
	for _, a := range f.arrays(partRows, cols) {
		most = max(most, a.dtype.Bytes(product(a.dims)))
	}
	return uint64(most)
}
