package weight

import "math"

// MXFP4 is ggml's MXFP4, and the MXFP4 of the OCP Microscaling Formats. A weight is e2m1 * scale, where e2m1
// has 4 bits: a sign, two bits of exponent and one of mantissa. 32 columns share the scale, which is a power
// of two: a byte e stands for 2^(e - 127).
//
// A block (block_mxfp4 in ggml-common.h) has the byte e, followed by the nibbles in the order of Q4_0. As in
// ggml, kernels compute twice the value of e2m1 and half of the scale. On the device scales and nibbles are
// in separate arrays.
var MXFP4 = Format{
	Name: "mxfp4", File: "MXFP4", Group: 32,
	Doc: "Each weight is e2m1 * 2^(e - 127). e2m1 is a float of 4 bits: 0, 0.5, 1, 1.5, 2, 3, 4 or 6, with " +
		"a sign. 32 columns share e, which is a byte.",
	Pieces:   []Block{{Cols: 32, Bytes: 1 + 16, Floats: []Float{{0, 1, putE8M0}}}},
	AsHalves: true, shader: "mxfp4", constants: mxfp4Scales.constants, MaxGroupsOf8: 4,
	Arrays: func(rows, cols int) []Array {
		return []Array{mxfp4Weights.Array(rows, cols), mxfp4Scales.Array(rows, cols)}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			e := int(mxfp4Scales.read(arrays[1], row, c, len(into)))
			into[c] = mxfp4Weights.read(arrays[0], row, c, len(into)) * math.Ldexp(1, e-128)
		}
	},
}

var (
	mxfp4Weights = e2m1{packed{17, 1, 16, 4, 16}}
	mxfp4Scales  = byteScales{group: 32, size: 17, n: 1}
)

// putE8M0 writes the power of two nearest to |v|. E8M0 has no sign.
func putE8M0(data []byte, v float32) {
	e := math.Round(math.Log2(math.Abs(float64(v)))) + 127
	data[0] = byte(min(max(e, 0), 254))
}
