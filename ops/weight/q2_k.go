package weight

import (
	"gpuscope/engine/graph"
)

// Q2_K is ggml's Q2_K: q * scale * super - zero * superZero with 2-bit q, four bits each of scale and zero
// for 16 columns, and halves for the 256 of a block. A block (block_q2_K in ggml-common.h) has a byte for
// each 16 columns, the zero in its high bits, then the weights, in each half of the block those of columns 32
// apart in one byte, super and superZero. On the device all three lie apart.
var Q2_K = Format{
	Name: "q2_k", File: "Q2_K", Group: 16,
	Doc: "q * scale * super - zero * super_zero: 2 bits, 4 bits each of scale and zero for 16 columns, " +
		"two halves for 256",
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

// Where the parts of a block of Q2_K begin, and how long it is.
const (
	q2kWeights = 16
	q2kSupers  = q2kWeights + 64
	q2kBytes   = q2kSupers + 4
)

var (
	q2kSixteens = sixteens{q2kBytes, 0}
	q2kHalves   = supers{q2kBytes, []int{q2kSupers, q2kSupers + 2}}
)

// twos are where two bits of each of 16 columns lie, for shaders/include/format/q2_k.wgsl.
var twos = placesOf(2, func(i int) int { return i%8/4*16 + i%4*2 + i/8*8 })
