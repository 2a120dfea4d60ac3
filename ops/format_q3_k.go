package ops

import (
	"encoding/binary"

	"gpuscope/engine"
)

// Q3_K is ggml's Q3_K: (q - 4) * (scale - 32) * super with 3-bit q, a scale of 6 bits for 16 columns, and a
// half, super, for the 256 of a block. A block (block_q3_K in ggml-common.h) has the third bits, those of
// columns 32 apart in one byte, the low two bits, likewise in each half of the block, 12 bytes of scales, and
// the super. On the device all four lie apart, the bits of the weights in the order of the columns.
var Q3_K = Format{
	Name: "q3_k", File: "Q3_K", Group: 16,
	Doc:    "(q - 4) * (scale - 32) * super: 3 bits, 6 bits for 16 columns and a half for 256",
	Pieces: []Block{{Cols: 256, Bytes: q3kBytes, Floats: halves(q3kSuper)}},
	shader: "q3_k", eights: 2,
	arrays: func(rows, cols int) []array {
		return []array{
			weightsArray(engine.U32, rows, cols/16, packed{q3kBytes, q3kLows, 64, 2, 32}.inOrder),
			{"highs", engine.U32, []int{rows, cols / 32}, packed{q3kBytes, 0, 32, 1, 32}.inOrder},
			{"scales", engine.U32, []int{rows, cols / 256, 3}, taken(q3kBytes, q3kScales, 12)},
			{"supers", engine.F16, []int{rows, cols / 256}, taken(q3kBytes, q3kSuper, 2)},
		}
	},
	row: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			at := row*len(into) + c
			q := number(arrays[0], 2, at) | number(arrays[1], 1, at)<<2
			super := half(arrays[3][at/256*2:])
			into[c] = (float64(q) - 4) * q3kScale(arrays[2], at) * float64(super)
		}
	},
}

// Where the parts of a block of Q3_K begin, and how long it is.
const (
	q3kLows   = 32
	q3kScales = q3kLows + 64
	q3kSuper  = q3kScales + 12
	q3kBytes  = q3kSuper + 2
)

// q3kScale is the scale of a weight without its super. The low four bits of those of a block are in 8 bytes,
// of groups 8 apart in one, the high two in the last four bytes, of groups 4 apart in one.
func q3kScale(scales []byte, weight int) float64 {
	block := scales[weight/256*12:][:12]
	lows, highs := binary.LittleEndian.Uint64(block), binary.LittleEndian.Uint32(block[8:])
	group := weight % 256 / 16
	low := lows >> (group%8*8 + group/8*4) & 15
	high := highs >> (group%4*8 + group/4*2) & 3
	return float64(int(low)+16*int(high)) - 32
}
