package weight

import (
	"encoding/binary"
	"math"

	"gpuscope/engine/graph"
)

// F32 stores each weight as an f32. Rows can have any number of columns.
var F32 = Format{
	File: "F32", Doc: "Each weight is an f32 number.",
	Pieces: []Block{{Cols: 1, Bytes: 4, Floats: floats(0)}},
	shader: "f32", MaxGroupsOf8: 1,
	Arrays: func(rows, cols int) []Array {
		return []Array{weightsArray(graph.F32, rows, cols, nil)}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			bits := binary.LittleEndian.Uint32(arrays[0][4*(row*len(into)+c):])
			into[c] = float64(math.Float32frombits(bits))
		}
	},
}
