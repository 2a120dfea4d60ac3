package weight

import (
	"gpuscope/engine/graph"
)

// Q4_K is ggml's Q4_K: q * scale * super - zero * superZero with 4-bit q, a scale and a zero of 6 bits for 32
// columns, and halves for the 256 of a block. A block (block_q4_K in ggml-common.h) has super and superZero,
// the 12 bytes of scales and zeros, and the nibbles. On the device the three lie apart.
var Q4_K = Format{
	Name: "q4_k", File: "Q4_K", Group: 32,
	Doc: "q * scale * super - zero * super_zero: 4 bits, 6 bits each of scale and zero for 32 columns, " +
		"two halves for 256",
	Pieces:   []Block{{Cols: 256, Bytes: q4kBytes, Floats: halves(0, 2)}},
	AsHalves: true, shader: "q4_k", MaxGroupsOf8: 4,
	Arrays: func(rows, cols int) []Array {
		return []Array{
			weightsArray(graph.Q4, rows, cols, packed{q4kBytes, sixesBytes, 128, 4, 32}.inOrder),
			scalesAndZeros(q4kBytes).Array(rows, cols),
			supersOfBoth(q4kBytes).Array(rows, cols),
		}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			scale, zero := scaleAndZero(arrays[1:], row, c, len(into))
			into[c] = float64(number(arrays[0], 4, row*len(into)+c))*scale - zero
		}
	},
}

const q4kBytes = sixesBytes + 128

// sixesBytes is how long the part of a block of Q4_K and Q5_K is that has scales and zeros: two halves, and
// 12 bytes with 6 bits of each for 8 groups of 32 columns.
const sixesBytes = 2 + 2 + 12

// scalesAndZeros are those of blocks of so many bytes, in turns. The first four groups of a block have their
// scale and zero in the low bits of bytes 0 to 3 and 4 to 7; the others have four bits of each in bytes 8 to
// 11, and the highest two in the high bits of the bytes of groups 0 to 3.
func scalesAndZeros(size int) sixes {
	return sixes{16, size, func(block []byte, i int) byte {
		block = block[4:]
		group, zero := i/2, i%2
		if group < 4 {
			return block[group+4*zero] & 63
		}
		return block[group+4]>>(4*zero)&15 | block[group-4+4*zero]>>6<<4
	}}
}

// supersOfBoth are what those of blocks of so many bytes count in.
func supersOfBoth(size int) supers { return supers{size, []int{0, 2}} }

// scaleAndZero are the scale of a weight and what is taken off it, from the arrays that have them.
func scaleAndZero(arrays [][]byte, row, col, cols int) (scale, zero float64) {
	both, super := scalesAndZeros(0), supersOfBoth(0)
	scale = float64(both.read(arrays[0], row, col/32*2, cols)) * super.read(arrays[1], row, col, cols, 0)
	zero = float64(both.read(arrays[0], row, col/32*2+1, cols)) * super.read(arrays[1], row, col, cols, 1)
	return scale, zero
}
