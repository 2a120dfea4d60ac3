package ops

import (
	"encoding/binary"

	"gpuscope/engine"
)

// Q4_K is ggml's Q4_K: q * scale * super - zero * superZero with 4-bit q, a scale and a zero of 6 bits for 32
// columns, and halves for the 256 of a block. A block (block_q4_K in ggml-common.h) has super and superZero,
// the 12 bytes of scales and zeros, and the nibbles. On the device the first 16 bytes of the blocks lie apart
// from the nibbles.
var Q4_K = Format{
	Name: "q4_k", File: "Q4_K", Group: 32,
	Doc: "q * scale * super - zero * super_zero: 4 bits, 6 bits each of scale and zero for 32 columns, " +
		"two halves for 256",
	Pieces: []Block{{Cols: 256, Bytes: q4kBytes, Floats: halves(0, 2)}},
	counts: 4, shader: "q4_k", eights: 4,
	arrays: func(rows, cols int) []array {
		return []array{
			weightsArray(engine.Q4, rows, cols, packed{q4kBytes, sixesBytes, 128, 4, 32}.inOrder),
			sixesArray(rows, cols, q4kBytes),
		}
	},
	row: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			at := row*len(into) + c
			scale, zero := sixes(arrays[1], at)
			into[c] = float64(number(arrays[0], 4, at))*scale - zero
		}
	},
}

const q4kBytes = sixesBytes + 128

// sixesBytes is how long the part of a block of Q4_K and Q5_K is that has scales and zeros, as
// shaders/include/sixes.wgsl reads it: two halves, and 12 bytes with 6 bits of each for 8 groups of 32
// columns.
const sixesBytes = 2 + 2 + 12

// sixesArray has these parts of the blocks as they are.
func sixesArray(rows, cols, size int) array {
	return array{"scales", engine.U32, []int{rows, cols / 256, 4}, taken(size, 0, sixesBytes)}
}

// sixes are the scale of a weight and what is taken off it. The first four groups of a block have their scale
// and zero in the low bits of bytes 0 to 3 and 4 to 7; the others have four bits of each in bytes 8 to 11,
// and the highest two in the high bits of the bytes of groups 0 to 3.
func sixes(scales []byte, weight int) (scale, zero float64) {
	block := scales[weight/256*sixesBytes:][:sixesBytes]
	first, second := binary.LittleEndian.Uint32(block[4:]), binary.LittleEndian.Uint32(block[8:])
	third := binary.LittleEndian.Uint32(block[12:])
	group := weight % 256 / 32
	shift := group % 4 * 8
	s, z := first>>shift&63, second>>shift&63
	if group >= 4 {
		s = third>>shift&15 | first>>shift>>2&48
		z = third>>shift>>4&15 | second>>shift>>2&48
	}
	return float64(s) * float64(half(block)), float64(z) * float64(half(block[2:]))
}
