package weight

import "gpuscope/engine/graph"

// Q4_K is ggml's Q4_K. A weight is q * scale * super - zero * superZero, where q has 4 bits. 32 columns share
// a 6-bit scale and a 6-bit zero point. The 256 columns of a block share the super-block scales, super and
// superZero, which are f16.
//
// A block (block_q4_K in ggml-common.h) has super and superZero, then 12 bytes of scales and zero points,
// then the nibbles. On the device there are three separate arrays: the super-block scales, the scales with
// the zero points, and the weights.
var Q4_K = Format{
	Name: "q4_k", File: "Q4_K", Group: 32,
	Doc: "Each weight is q * scale * super - zero * super_zero. q has 4 bits. 32 columns share a 6-bit " +
		"scale and a 6-bit zero. 256 columns share super and super_zero, which are f16.",
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

// sixesBytes is the size of the header of a block of Q4_K and Q5_K, in bytes. The header has two f16
// super-block scales and 12 bytes. The bytes hold a 6-bit scale and a 6-bit zero point for each of 8 groups
// of 32 columns.
const sixesBytes = 2 + 2 + 12

// scalesAndZeros describes the 6-bit scales and zero points of blocks with `size` bytes: number 2g is the
// scale of group g, and number 2g+1 is its zero point. For groups 0 to 3, the scale is in the low bits of
// bytes 0 to 3. The zero point is in the low bits of bytes 4 to 7. For groups 4 to 7, the low four bits of
// scale and zero point are in bytes 8 to 11. Their high two bits are in the high bits of bytes 0 to 7.
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

// supersOfBoth(size) describes the two super-block scales, super and superZero, of blocks that have `size`
// bytes.
func supersOfBoth(size int) supers { return supers{size, []int{0, 2}} }

// scaleAndZero returns two numbers for a weight whose stored integer is q. The weight is q * scale - zero.
// The slice `arrays` starts with the array of scales and zero points, followed by the array of super-block
// scales.
func scaleAndZero(arrays [][]byte, row, col, cols int) (scale, zero float64) {
	both, super := scalesAndZeros(0), supersOfBoth(0)
	scale = float64(both.read(arrays[0], row, col/32*2, cols)) * super.read(arrays[1], row, col, cols, 0)
	zero = float64(both.read(arrays[0], row, col/32*2+1, cols)) * super.read(arrays[1], row, col, cols, 1)
	return scale, zero
}
