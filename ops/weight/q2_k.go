package weight

import "gpuscope/engine/graph"

// Q2_K is ggml's Q2_K. A weight is q * scale * super - zero * superZero, where q has 2 bits. 16 columns share
// a 4-bit scale and a 4-bit zero point. The 256 columns of a block share the super-block scales, super and
// superZero, which are f16.
//
// A block (block_q2_K in ggml-common.h) starts with one byte for each 16 columns. The high bits of the byte
// hold the zero point, and the low bits hold the scale. The weights come next. In each half of the block, a
// byte holds the weights of four columns that are 32 apart. The block ends with super and superZero. On the
// device there are three separate arrays: the scales with the zero points, the weights, and the super-block
// scales.
var Q2_K = Format{
	Name: "q2_k", File: "Q2_K", Group: 16,
	Doc: "Each weight is q * scale * super - zero * super_zero. q has 2 bits. 16 columns share a 4-bit " +
		"scale and a 4-bit zero. 256 columns share super and super_zero, which are f16.",
	Pieces:   []Block{{Cols: 256, Bytes: q2kBytes, Floats: halves(q2kSupers, q2kSupers+2)}},
	AsHalves: true, shader: "q2_k", MaxGroupsOf8: 4,
	Arrays: func(rows, cols int) []Array {
		return []Array{
			weightsArray(graph.U32, rows, cols/16,
				twos.pack(packed{q2kBytes, q2kWeights, 64, 2, 32}.inOrder)),
			q2kSixteens.Array(rows, cols),
			q2kHalves.Array(rows, cols),
		}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			both := q2kSixteens.read(arrays[1], row, c, len(into))
			scale := float64(both&15) * q2kHalves.read(arrays[2], row, c, len(into), 0)
			zero := float64(both>>4) * q2kHalves.read(arrays[2], row, c, len(into), 1)
			into[c] = float64(twos.number(arrays[0], row*len(into)+c))*scale - zero
		}
	},
}

// Layout of a block of Q2_K, in bytes.
const (
	q2kWeights = 16              // offset of the weights
	q2kSupers  = q2kWeights + 64 // offset of the super-block scales
	q2kBytes   = q2kSupers + 4   // size of the block
)

var (
	q2kSixteens = sixteens{q2kBytes, 0}
	q2kHalves   = supers{q2kBytes, []int{q2kSupers, q2kSupers + 2}}
)

// twos is the layout of the 2-bit weights of 16 columns in a word, as shaders/include/format/q2_k.wgsl
// describes it.
var twos = placesOf(2, func(i int) int { return i%8/4*16 + i%4*2 + i/8*8 })
