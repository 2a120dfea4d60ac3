package weight

import "gpuscope/engine/graph"

// IQ4_XS is ggml's IQ4_XS: level[q] * (scale - 32) * super, with the levels of IQ4_NL. A 6-bit scale covers
// 32 columns, and the f16 super-block scale (super) covers the 256 columns of a block.
//
// A block (block_iq4_xs in ggml-common.h) stores `super`, then two bytes with the high two bits of the
// scales. Then follow four bytes with the low four bits of the scales, and then the nibbles. Within each 32
// columns, the nibbles have the order of Q4_0. On the device super-block scales, scales and nibbles are in
// separate arrays.
var IQ4_XS = Format{
	Name: "iq4_xs", File: "IQ4_XS", Group: 32,
	Doc: "Each weight is level[q] * (scale - 32) * super. q has 4 bits and selects one of 16 unevenly " +
		"spaced levels. 32 columns share a 6-bit scale. 256 columns share super, which is f16.",
	Pieces: []Block{{Cols: 256, Bytes: iq4xsBytes, Floats: halves(0)}},
	shader: "iq4_xs", MaxGroupsOf8: 4, WorkgroupBytes: levelTable,
	Arrays: func(rows, cols int) []Array {
		return []Array{
			weightsArray(graph.Q4, rows, cols, packed{iq4xsBytes, iq4xsScales, 128, 4, 16}.inOrder),
			iq4xsSixes.Array(rows, cols),
			iq4xsSupers.Array(rows, cols),
		}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			at := row*len(into) + c
			scale := float64(iq4xsSixes.read(arrays[1], row, c/32, len(into))) - 32
			scale *= iq4xsSupers.read(arrays[2], row, c, len(into), 0)
			into[c] = levels[number(arrays[0], 4, at)] * scale
		}
	},
}

// Sizes in a block of IQ4_XS, in bytes.
const (
	iq4xsScales = 2 + 2 + 4         // everything before the nibbles: super-block scale and scales
	iq4xsBytes  = iq4xsScales + 128 // whole block
)

var (
	iq4xsSixes = sixes{8, iq4xsBytes, func(block []byte, i int) byte {
		return block[4+i/2]>>(i%2*4)&15 | block[2+i/4]>>(i%4*2)&3<<4
	}}
	iq4xsSupers = supers{iq4xsBytes, []int{0}}
)
