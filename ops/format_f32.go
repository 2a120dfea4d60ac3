package ops

import (
	"encoding/binary"
	"math"

	"gpuscope/engine/graph"
)

// F32 is weights as they are. Their rows may have any number of columns.
var F32 = Format{
	File: "F32", Doc: "floats",
	Pieces: []Block{{Cols: 1, Bytes: 4, Floats: floats(0)}},
	shader: "f32", eights: 1,
	arrays: func(rows, cols int) []array {
		return []array{weightsArray(graph.F32, rows, cols, nil)}
	},
	row: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			bits := binary.LittleEndian.Uint32(arrays[0][4*(row*len(into)+c):])
			into[c] = float64(math.Float32frombits(bits))
		}
	},
}
