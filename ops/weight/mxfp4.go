package weight

import (
	"math"

	"gpuscope/engine/graph"
)

// MXFP4 is ggml's MXFP4, and the MXFP4 of the OCP Microscaling Formats. A weight is e2m1 * scale, where e2m1
// has 4 bits: a sign, two bits of exponent and one of mantissa. 32 columns share the scale, which is a power
// of two: a byte e stands for 2^(e - 127).
//
// A block (block_mxfp4 in ggml-common.h) has the byte e, followed by the nibbles in the order of Q4_0. As in
// ggml, the levels are twice the values of e2m1, so that they are whole numbers. The scale is therefore half
// of 2^(e - 127). On the device scales and nibbles are in separate arrays.
var MXFP4 = Format{
	Name: "mxfp4", File: "MXFP4", Group: 32,
	Doc: "Each weight is e2m1 * 2^(e - 127). e2m1 is a float of 4 bits: 0, 0.5, 1, 1.5, 2, 3, 4 or 6, with " +
		"a sign. 32 columns share e, which is a byte.",
	Pieces: []Block{{Cols: 32, Bytes: 1 + 16, Floats: []Float{{0, 1, putE8M0}}}},
	shader: "mxfp4", constants: withLevels(&e2m1Levels, mxfp4Scales.constants), MaxGroupsOf8: 4,
	WorkgroupBytes: levelTable,
	Arrays: func(rows, cols int) []Array {
		return []Array{
			weightsArray(graph.Q4, rows, cols, packed{17, 1, 16, 4, 16}.inOrder),
			mxfp4Scales.Array(rows, cols),
		}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			e := int(mxfp4Scales.read(arrays[1], row, c, len(into)))
			into[c] = e2m1Levels[number(arrays[0], 4, row*len(into)+c)] * math.Ldexp(1, e-128)
		}
	},
}

// e2m1Levels has the values of the 4-bit float E2M1, times two. In ggml-common.h this table is named
// kvalues_mxfp4.
var e2m1Levels = levels{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

var mxfp4Scales = byteScales{group: 32, size: 17, n: 1}

// putE8M0 writes the power of two nearest to the size of v. E8M0 has no sign.
func putE8M0(data []byte, v float32) {
	e := math.Round(math.Log2(math.Abs(float64(v)))) + 127
	data[0] = byte(min(max(e, 0), 254))
}
