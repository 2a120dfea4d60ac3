package ops

import (
	"encoding/binary"

	"gpuscope/engine"
)

// IQ4_XS is ggml's IQ4_XS: level[q] * (scale - 32) * super with the levels of IQ4_NL, a scale of 6 bits for
// 32 columns, and a half, super, for the 256 of a block. A block (block_iq4_xs in ggml-common.h) has the
// super, the high two bits of the scales in two bytes and the low four in four, and the nibbles, 32 columns
// as Q4_0 has them. On the device the first 8 bytes of the blocks lie apart from the nibbles.
var IQ4_XS = Format{
	Name: "iq4_xs", File: "IQ4_XS", Group: 32,
	Doc: "level[q] * (scale - 32) * super: 4 bits that choose one of 16 uneven levels, 6 bits for 32 columns and " +
		"a half for 256",
	Pieces: []Block{{Cols: 256, Bytes: iq4xsBytes, Floats: halves(0)}},
	shader: "iq4_xs", eights: 4, shared: levelPairs,
	arrays: func(rows, cols int) []array {
		return []array{
			weightsArray(engine.Q4, rows, cols, packed{iq4xsBytes, iq4xsScales, 128, 4, 16}.inOrder),
			{"scales", engine.U32, []int{rows, cols / 256, 2}, taken(iq4xsBytes, 0, iq4xsScales)},
		}
	},
	row: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			at := row*len(into) + c
			block, group := arrays[1][at/256*iq4xsScales:][:iq4xsScales], at%256/32
			high := binary.LittleEndian.Uint16(block[2:]) >> (2 * group) & 3
			low := binary.LittleEndian.Uint32(block[4:]) >> (4 * group) & 15
			scale := float64(int(low)+16*int(high)) - 32
			into[c] = levels[number(arrays[0], 4, at)] * scale * float64(half(block))
		}
	},
}

// How long the parts of a block of IQ4_XS with the scales and with all are.
const (
	iq4xsScales = 2 + 2 + 4
	iq4xsBytes  = iq4xsScales + 128
)
