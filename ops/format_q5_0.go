package ops

import "gpuscope/engine"

// Q5_0 is ggml's Q5_0: (q - 16) * scale with 5-bit q. A block (block_q5_0 in ggml-common.h) is 32 columns:
// the scale, a half, the fifth bits in the order of the columns, then the low nibbles as Q4_0 has them. On
// the device nibbles, fifth bits and scales lie apart.
var Q5_0 = Format{
	Name: "q5_0", File: "Q5_0", Group: halfOf32.group,
	Doc:    "(q - 16) * scale: 5 bits, and a half for 32 columns",
	Pieces: []Block{{Cols: 32, Bytes: q50Bytes, Floats: halves(0)}},
	counts: 64, shader: "q5_0", constants: halfOf32.constants, eights: 4, spare: true,
	arrays: func(rows, cols int) []array {
		return []array{
			weightsArray(engine.Q4, rows, cols, packed{q50Bytes, 6, 16, 4, 16}.inOrder),
			{"highs", engine.U32, []int{rows, cols / 32}, fifths.pack(taken(q50Bytes, 2, 4))},
			halfOf32.array("scales", rows, cols, func(p [][]byte, i int) []byte {
				return p[0][q50Bytes*i:][:2]
			}),
		}
	},
	row: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			q := five(arrays, row*len(into)+c)
			into[c] = (float64(q) - 16) * halfOf32.read(arrays[2], row, c, len(into))
		}
	},
}

const q50Bytes = 2 + 4 + 16

// fifths are where the fifth bits of 32 columns lie, for shaders/include/fives.wgsl: shifted in one of four
// ways the word has those of an eight at bits 5 and 9, and at 6 and 10, of its halves.
var fifths = placesOf(1, func(i int) int {
	eight, i := i/8, i%8
	return i/4*16 + i%2*4 + i/2%2 + eight%2*2 + eight/2*8
})

// five is a number of 5 bits: its nibble is in the first array, its fifth bit in the second.
func five(arrays [][]byte, i int) byte {
	return number(arrays[0], 4, i) | fifths.number(arrays[1], i)<<4
}
