package ops

import "math"

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
			bits := 8 * p.Bytes
			for _, f := range p.Floats {
				bits -= 8 * f.Bytes
			}
			for block := 0; block < len(data); block += p.Bytes {
				for i, f := range p.Floats {
					v := floatNoise(name, block+i, bits/p.Cols, len(p.Floats) < p.Cols)
					f.Put(data[block+f.At:], float32(v/math.Sqrt(float64(cols))))
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
