package weight

import (
	"gpuscope/engine/graph"
)

// Q6_K is ggml's Q6_K: (q - 32) * scale * super with 6-bit q, a scale, a signed byte, for 16 columns, and a
// super, a half, for the 256 of a block. A block has the low four bits of its weights, then the high two, the
// scales and the super. On the device low bits, high bits, scales and supers lie apart.
var Q6_K = Format{
	Name: "q6_k", File: "Q6_K", Group: 16,
	Doc:      "(q - 32) * scale * super: 6 bits, a signed byte for 16 columns and a half for 256",
	Pieces:   []Block{{Cols: 256, Bytes: q6Bytes, Floats: halves(q6Super)}},
	AsHalves: true, shader: "q6_k", MaxGroupsOf8: 4,
	Arrays: func(rows, cols int) []Array {
		return []Array{
			weightsArray(graph.Q4, rows, cols, packed{q6Bytes, 0, 128, 4, 64}.inOrder),
			{
				"highs", graph.U32,
				[]int{rows, cols / 16},
				q6Places.pack(packed{q6Bytes, q6Highs, 64, 2, 32}.inOrder),
			},
			q6Sixteens.Array(rows, cols),
			q6Supers.Array(rows, cols),
		}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			at := row*len(into) + c
			q := number(arrays[0], 4, at) | q6Places.number(arrays[1], at)<<4
			scale := float64(int8(q6Sixteens.read(arrays[2], row, c, len(into))))
			into[c] = (float64(q) - 32) * scale * q6Supers.read(arrays[3], row, c, len(into), 0)
		}
	},
}

// Where the parts of a block of Q6_K begin, and how long it is.
const (
	q6Highs  = 128
	q6Scales = q6Highs + 64
	q6Super  = q6Scales + 16
	q6Bytes  = q6Super + 2
)

var (
	q6Sixteens = sixteens{q6Bytes, q6Scales}
	q6Supers   = supers{q6Bytes, []int{q6Super}}
)

// q6Places are where the high bits of 16 columns lie, for shaders/include/format/q6_k.wgsl: shifted in one of
// two ways the word has those of an eight at bits 4 and 8, and at 6 and 10, of its halves.
var q6Places = placesOf(2, func(i int) int {
	eight, i := i/8, i%8
	return i/4*16 + i%2*4 + i/2%2*2 + eight*8
})
