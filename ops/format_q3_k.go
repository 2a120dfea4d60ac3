package ops

import "gpuscope/engine"

// Q3_K is ggml's Q3_K: (q - 4) * (scale - 32) * super with 3-bit q, a scale of 6 bits for 16 columns, and a
// half, super, for the 256 of a block. A block (block_q3_K in ggml-common.h) has the third bits, those of
// columns 32 apart in one byte, the low two bits, likewise in each half of the block, 12 bytes of scales, and
// the super. On the device all four lie apart.
var Q3_K = Format{
	Name: "q3_k", File: "Q3_K", Group: 16,
	Doc:    "(q - 4) * (scale - 32) * super: 3 bits, 6 bits for 16 columns and a half for 256",
	Pieces: []Block{{Cols: 256, Bytes: q3kBytes, Floats: halves(q3kSuper)}},
	counts: 16, shader: "q3_k", eights: 4,
	arrays: func(rows, cols int) []array {
		return []array{
			weightsArray(engine.U32, rows, cols/16,
				twos.pack(packed{q3kBytes, q3kLows, 64, 2, 32}.inOrder)),
			{
				"highs", engine.U32,
				[]int{rows, cols / 32},
				q3kThirds.pack(packed{q3kBytes, 0, 32, 1, 32}.inOrder),
			},
			q3kSixes.array(rows, cols),
			q3kSupers.array(rows, cols),
		}
	},
	row: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			at := row*len(into) + c
			q := twos.number(arrays[0], at) | q3kThirds.number(arrays[1], at)<<2
			scale := float64(q3kSixes.read(arrays[2], row, c/16, len(into))) - 32
			into[c] = (float64(q) - 4) * scale * q3kSupers.read(arrays[3], row, c, len(into), 0)
		}
	},
}

// Where the parts of a block of Q3_K begin, and how long it is.
const (
	q3kLows   = 32
	q3kScales = q3kLows + 64
	q3kSuper  = q3kScales + 12
	q3kBytes  = q3kSuper + 2
)

// q3kSixes are the scales. The low four bits of those of a block are in 8 bytes, of groups 8 apart in one,
// the high two in the last four bytes, of groups 4 apart in one.
var q3kSixes = sixes{16, q3kBytes, func(block []byte, i int) byte {
	block = block[q3kScales:]
	return block[i%8]>>(i/8*4)&15 | block[8+i%4]>>(i/4*2)&3<<4
}}

var q3kSupers = supers{q3kBytes, []int{q3kSuper}}

// q3kThirds are where the third bits of 32 columns lie, for shaders/include/format/q3_k.wgsl: shifted in one
// of four ways the word has those of an eight at bits 3, 5, 7 and 9 of its halves.
var q3kThirds = placesOf(1, func(i int) int {
	eight, i := i/8, i%8
	return i/4*16 + i%4*2 + eight%2 + eight/2*8
})
