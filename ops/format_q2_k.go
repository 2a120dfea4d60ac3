package ops

import "gpuscope/engine"

// Q2_K is ggml's Q2_K: q * scale * super - zero * superZero with 2-bit q, four bits each of scale and zero
// for 16 columns, and halves for the 256 of a block. A block (block_q2_K in ggml-common.h) has a byte for
// each 16 columns, the zero in its high bits, then the weights, in each half of the block those of columns 32
// apart in one byte, super and superZero. On the device all three lie apart, the weights in the order of the
// columns.
var Q2_K = Format{
	Name: "q2_k", File: "Q2_K", Group: 16,
	Doc: "q * scale * super - zero * super_zero: 2 bits, 4 bits each of scale and zero for 16 columns, " +
		"two halves for 256",
	Pieces: []Block{{Cols: 256, Bytes: q2kBytes, Floats: halves(q2kSupers, q2kSupers+2)}},
	counts: 4, shader: "q2_k", eights: 2,
	arrays: func(rows, cols int) []array {
		return []array{
			weightsArray(engine.U32, rows, cols/16, packed{q2kBytes, q2kWeights, 64, 2, 32}.inOrder),
			{"scales", engine.U32, []int{rows, cols / 64}, taken(q2kBytes, 0, 16)},
			{"supers", engine.F16, []int{rows, cols / 256, 2}, taken(q2kBytes, q2kSupers, 4)},
		}
	},
	row: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			at := row*len(into) + c
			both, supers := arrays[1][at/16], arrays[2][at/256*4:]
			into[c] = float64(number(arrays[0], 2, at))*float64(both&15)*float64(half(supers)) -
				float64(both>>4)*float64(half(supers[2:]))
		}
	},
}

// Where the parts of a block of Q2_K begin, and how long it is.
const (
	q2kWeights = 16
	q2kSupers  = q2kWeights + 64
	q2kBytes   = q2kSupers + 4
)
