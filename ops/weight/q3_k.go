package weight

import (
	"encoding/binary"

	"gpuscope/engine/graph"
)

// Q3_K is ggml's Q3_K: (q - 4) * (scale - 32) * super with 3-bit q, a scale of 6 bits for 16 columns, and a
// half, super, for the 256 of a block. A block (block_q3_K in ggml-common.h) has the third bits, those of
// columns 32 apart in one byte, the low two bits, likewise in each half of the block, 12 bytes of scales, and
// the super. On the device the three bits of a weight lie together, where a shift for two of them is spared,
// and scales and supers apart.
var Q3_K = Format{
	Name: "q3_k", File: "Q3_K", Group: 16,
	Doc:      "(q - 4) * (scale - 32) * super: 3 bits, 6 bits for 16 columns and a half for 256",
	Pieces:   []Block{{Cols: 256, Bytes: q3kBytes, Floats: halves(q3kSuper)}},
	AsHalves: true, shader: "q3_k", MaxGroupsOf8: 4,
	Arrays: func(rows, cols int) []Array {
		return []Array{
			weightsArray(graph.U32, rows, cols/16, threes(0, 1)),
			{"thirds", graph.U32, []int{rows, cols / 32}, threes(2)},
			q3kSixes.Array(rows, cols),
			q3kSupers.Array(rows, cols),
		}
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			q := three(arrays, row*len(into)+c)
			scale := float64(q3kSixes.read(arrays[2], row, c/16, len(into))) - 32
			into[c] = (float64(q) - 4) * scale * q3kSupers.read(arrays[3], row, c, len(into), 0)
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

// q3kSixes are the scales. The low four bits of those of a block are in 8 bytes, of groups 8 apart in one,
// the high two in the last four bytes, of groups 4 apart in one.
var q3kSixes = sixes{16, q3kBytes, func(block []byte, i int) byte {
	block = block[q3kScales:]
	return block[i%8]>>(i/8*4)&15 | block[8+i%4]>>(i/4*2)&3<<4
}}

var q3kSupers = supers{q3kBytes, []int{q3kSuper}}

// threes packs some of the words that shaders/include/format/q3_k.wgsl has for 32 columns: 0 and 1, or 2.
func threes(words ...int) pack {
	return func(pieces [][]byte, into []byte) {
		n := len(pieces[0]) / q3kBytes
		lows, highs := make([]byte, 64*n), make([]byte, 32*n)
		packed{q3kBytes, q3kLows, 64, 2, 32}.inOrder(pieces, lows)
		packed{q3kBytes, 0, 32, 1, 32}.inOrder(pieces, highs)
		for at := 0; len(into) > 0; at++ {
			low, high := binary.LittleEndian.Uint64(lows[8*at:]), binary.LittleEndian.Uint32(highs[4*at:])
			four := func(i int) uint32 { // the numbers of columns 4i to 4i + 3, one after another
				return spread[0][byte(low>>(8*i))] | spread[1][high>>(4*i)&15]
			}
			first, second := four(6), four(7)
			for _, w := range words {
				half := func(own, last uint32) uint32 {
					return own | last>>(3*w)&7<<12 | last>>(9+w)&1<<15
				}
				word := half(four(2*w), first) | half(four(2*w+1), second)<<16
				binary.LittleEndian.PutUint32(into, word)
				into = into[4:]
			}
		}
	}
}

// spread are bits at the places that they have in numbers of three bits: the low two of four numbers, and the
// third ones.
var spread = func() (tables [2][256]uint32) {
	for b := range uint32(256) {
		for i := range uint32(4) {
			tables[0][b] |= b >> (2 * i) & 3 << (3 * i)
			tables[1][b] |= b >> i & 1 << (3*i + 2)
		}
	}
	return tables
}()

// three is the number of a column.
func three(arrays [][]byte, at int) byte {
	half := func(w int) uint16 { // the column's of a word
		array, word := arrays[0], at/32*2+w
		if w == 2 {
			array, word = arrays[1], at/32
		}
		return binary.LittleEndian.Uint16(array[4*word+at%8/4*2:])
	}
	switch eight, i := at%32/8, at%4; {
	case eight < 3:
		return byte(half(eight) >> (3 * i) & 7)
	case i < 3:
		return byte(half(i) >> 12 & 7)
	}
	return byte(half(0)>>15 | half(1)>>15<<1 | half(2)>>15<<2)
}
