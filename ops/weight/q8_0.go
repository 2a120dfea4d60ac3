package weight

import (
	"encoding/binary"

	"gpuscope/engine/graph"
)

// Q8_0 is ggml's Q8_0. A weight is q * scale, where q is a signed byte. A block has 32 columns: the f16
// scale, then the bytes. On the device the bytes of a row are stored together, in the layout of
// shaders/include/format/q8_0.wgsl. Scales are in a separate array.
var Q8_0 = Format{
	Name: "q8_0", File: "Q8_0", Group: halfOf32.group,
	Doc:      "Each weight is q * scale. q is a signed byte. 32 columns share an f16 scale.",
	Pieces:   []Block{{Cols: 32, Bytes: 2 + 32, Floats: halves(0)}},
	AsHalves: true, shader: "q8_0", constants: halfOf32.constants, MaxGroupsOf8: 2,
	Arrays: func(rows, cols int) []Array {
		return []Array{
			weightsArray(graph.I8, rows, cols, q8Bytes),
			halfOf32.Array("scales", rows, cols, func(p [][]byte, i int) []byte { return p[0][34*i:][:2] }),
		}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			q := int8(arrays[0][row*len(into)+q8Place(c)])
			into[c] = float64(q) * halfOf32.read(arrays[1], row, c, len(into))
		}
	},
}

// q8Bytes is a pack that copies the signed bytes of the blocks, and changes the order within each 8 bytes as
// q8Place says.
func q8Bytes(pieces [][]byte, into []byte) {
	taken(34, 2, 32)(pieces, into)
	for ; len(into) > 0; into = into[8:] {
		w := binary.LittleEndian.Uint64(into)
		binary.LittleEndian.PutUint64(into, w&0xffff_0000_0000_ffff|w>>16&0xffff_0000|w&0xffff_0000<<16)
	}
}

// q8Place returns the index, within its row, of the byte for column c.
func q8Place(c int) int { return c&^6 | c&2<<1 | c&4>>1 }
