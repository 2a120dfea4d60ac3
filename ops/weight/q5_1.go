package weight

// Q5_1 is ggml's Q5_1. A weight is q * scale + zero, where q has 5 bits. A block (block_q5_1 in
// ggml-common.h) has 32 columns: the f16 scale and the f16 zero point, then the fifth bits and the nibbles in
// the order of Q5_0. On the device the five bits of a weight are stored together. Scales and zero points are
// in separate arrays.
var Q5_1 = Format{
	Name: "q5_1", File: "Q5_1", Group: halfOf32.group,
	Doc: "Each weight is q * scale + zero. q has 5 bits. 32 columns share scale and zero, " +
		"which are f16.",
	Pieces:   []Block{{Cols: 32, Bytes: q51Bytes, Floats: halves(0, 2)}},
	AsHalves: true, shader: "q5_1", constants: halfOf32.constants, MaxGroupsOf8: 4,
	Arrays: func(rows, cols int) []Array {
		return append(fives(rows, cols, packed{q51Bytes, 8, 16, 4, 16}.inOrder, taken(q51Bytes, 4, 4)),
			halfOf32.Array("scales", rows, cols, func(p [][]byte, i int) []byte {
				return p[0][q51Bytes*i:][:2]
			}),
			halfOf32.Array("zeros", rows, cols, func(p [][]byte, i int) []byte {
				return p[0][q51Bytes*i+2:][:2]
			}))
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			q := five(arrays, row*len(into)+c)
			into[c] = float64(q)*halfOf32.read(arrays[2], row, c, len(into)) +
				halfOf32.read(arrays[3], row, c, len(into))
		}
	},
}

const q51Bytes = 2 + 2 + 4 + 16
