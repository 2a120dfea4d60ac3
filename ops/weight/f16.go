package weight

import "gpuscope/engine/graph"

// F16 stores each weight as an f16. This is ggml's F16. The number of columns must be a multiple of 8.
var F16 = Format{
	Name: "f16", File: "F16", Doc: "Each weight is an f16 number.",
	Pieces: []Block{{Cols: 8, Bytes: 16, Floats: halves(0, 2, 4, 6, 8, 10, 12, 14)}},
	shader: "f16", MaxGroupsOf8: 1,
	Arrays: func(rows, cols int) []Array {
		return []Array{weightsArray(graph.F16, rows, cols, nil)}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			into[c] = float64(half(arrays[0][2*(row*len(into)+c):]))
		}
	},
}
