package weight

import "gpuscope/engine/graph"

// Q4_1 is ggml's Q4_1. A weight is q * scale + zero, where q has 4 bits. A block has 32 columns. It starts
// with the f16 scale and the f16 zero point, followed by the nibbles in the order of Q4_0. On the device a
// word has 8 columns, and column k starts at bit 4k. Scales and zero points are in separate arrays.
var Q4_1 = Format{
	Name: "q4_1", File: "Q4_1", Group: halfOf32.group,
	Doc: "Each weight is q * scale + zero. q has 4 bits. 32 columns share scale and zero, " +
		"which are f16.",
	Pieces:   []Block{{Cols: 32, Bytes: 4 + 16, Floats: halves(0, 2)}},
	AsHalves: true, shader: "q4_1", constants: halfOf32.constants, MaxGroupsOf8: 4,
	Arrays: func(rows, cols int) []Array {
		return []Array{
			weightsArray(graph.Q4, rows, cols, packed{20, 4, 16, 4, 16}.inOrder),
			halfOf32.Array("scales", rows, cols, func(p [][]byte, i int) []byte { return p[0][20*i:][:2] }),
			halfOf32.Array("zeros", rows, cols, func(p [][]byte, i int) []byte { return p[0][20*i+2:][:2] }),
		}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			q := number(arrays[0], 4, row*len(into)+c)
			into[c] = float64(q)*halfOf32.read(arrays[1], row, c, len(into)) +
				halfOf32.read(arrays[2], row, c, len(into))
		}
	},
}
