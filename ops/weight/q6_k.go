package weight

import "gpuscope/engine/graph"

// Q6_K is ggml's Q6_K. A weight is (q - 32) * scale * super, where q has 6 bits. 16 columns share the scale,
// which is a signed byte. The 256 columns of a block share the f16 super-block scale, super. A block has the
// low four bits of its weights, then the high two bits, the scales and super. On the device low bits, high
// bits, scales and super-block scales are in separate arrays.
var Q6_K = Format{
	Name: "q6_k", File: "Q6_K", Group: 16,
	Doc: "Each weight is (q - 32) * scale * super. q has 6 bits. 16 columns share a scale, which is a " +
		"signed byte. 256 columns share super, which is f16.",
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

// Layout of a block of Q6_K, in bytes.
const (
	q6Highs  = 128           // offset of the high two bits of the weights
	q6Scales = q6Highs + 64  // offset of the scales
	q6Super  = q6Scales + 16 // offset of the super-block scale
	q6Bytes  = q6Super + 2   // size of the block
)

var (
	q6Sixteens = sixteens{q6Bytes, q6Scales}
	q6Supers   = supers{q6Bytes, []int{q6Super}}
)

// q6Places is the layout of the high two bits of 16 columns in a word, as shaders/include/format/q6_k.wgsl
// describes it. The kernel shifts the word left by 4 bits for the first 8 columns, and right by 4 bits for
// the other 8. After either shift, each 16-bit half of the word has the high bits of four columns. They are
// at bits 4, 8, 6 and 10, in the order of the columns.
var q6Places = placesOf(2, func(i int) int {
	eight, i := i/8, i%8
	return i/4*16 + i%2*4 + i/2%2*2 + eight*8
})
