package ops

import "gpuscope/engine"

// Q6_K is ggml's Q6_K: (q - 32) * scale * super with 6-bit q, a scale, a signed byte, for 16 columns, and a
// super, a half, for the 256 of a block. A block has the low four bits of its weights, then the high two, the
// scales and the super. On the device low bits, high bits, scales and supers lie apart, each in the order of
// the columns.
var Q6_K = Format{
	Name: "q6_k", File: "Q6_K", Group: 16,
	Doc:    "(q - 32) * scale * super: 6 bits, a signed byte for 16 columns and a half for 256",
	Pieces: []Block{{Cols: 256, Bytes: q6Bytes, Floats: halves(q6Super)}},
	shader: "q6_k", eights: 2,
	arrays: func(rows, cols int) []array {
		return []array{
			weightsArray(engine.Q4, rows, cols, packed{q6Bytes, 0, 128, 4, 64}.inOrder),
			{"highs", engine.U32, []int{rows, cols / 16}, packed{q6Bytes, q6Highs, 64, 2, 32}.inOrder},
			{"scales", engine.I8, []int{rows, cols / 16}, taken(q6Bytes, q6Scales, 16)},
			{"supers", engine.F16, []int{rows, cols / 256}, taken(q6Bytes, q6Super, 2)},
		}
	},
	row: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			at := row*len(into) + c
			q := number(arrays[0], 4, at) | number(arrays[1], 2, at)<<4
			scale := float64(int8(arrays[2][at/16])) * float64(half(arrays[3][at/256*2:]))
			into[c] = (float64(q) - 32) * scale
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
