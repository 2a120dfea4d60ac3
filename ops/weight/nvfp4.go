package weight

import (
	"encoding/binary"
	"math"
)

// NVFP4 is ggml's NVFP4. A weight is e2m1 * scale, with the 4-bit floats of MXFP4. 16 columns share the
// scale, which is a float of 7 bits: four bits of exponent and three of mantissa (UE4M3). The highest bit of
// its byte has no meaning. The byte 127, which is NaN in other formats, means 0.
//
// A block (block_nvfp4 in ggml-common.h) has 64 columns: four scales, then the nibbles. Every 8 bytes have
// the nibbles of 16 columns: the low nibbles are the first 8 columns, and the high nibbles are the last 8. As
// for MXFP4, kernels compute twice the value of e2m1 and half of the scale. On the device scales and nibbles
// are in separate arrays.
//
// Files made from NVIDIA's checkpoints also have a number by which all weights of a matrix are multiplied
// (Matrix.Factor).
var NVFP4 = Format{
	Name: "nvfp4", File: "NVFP4", Group: 16,
	Doc: "Each weight is e2m1 * scale. e2m1 is a float of 4 bits: 0, 0.5, 1, 1.5, 2, 3, 4 or 6, with a " +
		"sign. 16 columns share the scale, which is a float with 4 bits of exponent and 3 of mantissa. A matrix " +
		"can also have a factor by which all its weights are multiplied.",
	Pieces: []Block{{Cols: 64, Bytes: 4 + 32, Floats: []Float{
		{0, 1, putUE4M3}, {1, 1, putUE4M3}, {2, 1, putUE4M3}, {3, 1, putUE4M3},
	}}},
	AsHalves: true, shader: "nvfp4", constants: nvfp4Scales.constants, MaxGroupsOf8: 4,
	Arrays: func(rows, cols int) []Array {
		return []Array{nvfp4Weights.Array(rows, cols), nvfp4Scales.Array(rows, cols), factorsArray(rows)}
	},
	factors: 2,
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		factor := float64(math.Float32frombits(binary.LittleEndian.Uint32(arrays[2][row/4*4:])))
		for c := range into {
			scale := halfOfUE4M3(nvfp4Scales.read(arrays[1], row, c, len(into))) * factor
			into[c] = nvfp4Weights.read(arrays[0], row, c, len(into)) * scale
		}
	},
}

var (
	nvfp4Weights = e2m1{packed{36, 4, 32, 4, 8}}
	nvfp4Scales  = byteScales{group: 16, size: 36, n: 4, factors: true}
)

// halfOfUE4M3 returns half of the value of a UE4M3 number.
func halfOfUE4M3(b byte) float64 {
	e, m := int(b>>3&15), float64(b&7)
	switch {
	case b == 127:
		return 0
	case e == 0:
		return math.Ldexp(m, -10)
	}
	return math.Ldexp(8+m, e-11)
}

// putUE4M3 writes the UE4M3 number nearest to |v|. UE4M3 has no sign.
func putUE4M3(data []byte, v float32) {
	size, best := math.Abs(float64(v))/2, math.Inf(1)
	for b := range byte(127) {
		if off := math.Abs(halfOfUE4M3(b) - size); off < best {
			data[0], best = b, off
		}
	}
}
