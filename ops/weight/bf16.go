package weight

import (
	"encoding/binary"
	"math"

	"gpuscope/engine/graph"
)

// BF16 stores each weight as a bfloat16, the upper 16 bits of an f32. This is ggml's BF16. The number of
// columns must be a multiple of 8. On the device a 32-bit word holds two weights.
var BF16 = Format{
	Name: "bf16", File: "BF16", Doc: "Each weight is a bf16 number, the upper 16 bits of an f32.",
	Pieces: []Block{{Cols: 8, Bytes: 16, Floats: bf16s(8)}},
	shader: "bf16", MaxGroupsOf8: 1,
	Arrays: func(rows, cols int) []Array {
		return []Array{weightsArray(graph.U32, rows, cols/2, nil)}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			bits := binary.LittleEndian.Uint16(arrays[0][2*(row*len(into)+c):])
			into[c] = float64(math.Float32frombits(uint32(bits) << 16))
		}
	},
}

// bf16s(n) describes a block that consists of n bfloat16 numbers.
func bf16s(n int) (list []Float) {
	for i := range n {
		list = append(list, Float{2 * i, 2, func(data []byte, v float32) {
			binary.LittleEndian.PutUint16(data, uint16(math.Float32bits(v)>>16))
		}})
	}
	return list
}
