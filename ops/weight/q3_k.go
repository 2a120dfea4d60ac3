package weight

import (
	"encoding/binary"

	"gpuscope/engine/graph"
)

// Q3_K is ggml's Q3_K. A weight is (q - 4) * (scale - 32) * super, where q has 3 bits. 16 columns share a
// 6-bit scale. The 256 columns of a block share the f16 super-block scale, super.
//
// A block (block_q3_K in ggml-common.h) starts with the highest bit of each weight: a byte holds these bits
// of eight columns that are 32 apart. The low two bits come next: in each half of the block, a byte holds
// those of four columns that are 32 apart. The block ends with 12 bytes of scales and with super. On the
// device the three bits of a weight are stored together, so that kernels need fewer shifts. Scales and
// super-block scales are in separate arrays.
var Q3_K = Format{
	Name: "q3_k", File: "Q3_K", Group: 16,
	Doc: "Each weight is (q - 4) * (scale - 32) * super. q has 3 bits. 16 columns share a 6-bit " +
		"scale. 256 columns share super, which is f16.",
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

// Layout of a block of Q3_K, in bytes.
const (
	q3kLows   = 32             // offset of the low two bits of the weights
	q3kScales = q3kLows + 64   // offset of the scales
	q3kSuper  = q3kScales + 12 // offset of the super-block scale
	q3kBytes  = q3kSuper + 2   // size of the block
)

// q3kSixes describes the 6-bit scales, which take 12 bytes of a block. The first 8 bytes hold the low four
// bits: byte j has those of scales j and j + 8. The last 4 bytes hold the high two bits: byte j has those of
// scales j, j + 4, j + 8 and j + 12.
var q3kSixes = sixes{16, q3kBytes, func(block []byte, i int) byte {
	block = block[q3kScales:]
	return block[i%8]>>(i/8*4)&15 | block[8+i%4]>>(i/4*2)&3<<4
}}

var q3kSupers = supers{q3kBytes, []int{q3kSuper}}

// threes returns a pack for 3-bit weights, in the layout of shaders/include/format/q3_k.wgsl. In this layout,
// three words (0, 1 and 2) hold the weights of 32 columns. `words` lists which of the three the pack writes:
// 0 and 1 for the array `weights`, or 2 for the array `thirds`.
func threes(words ...int) pack {
	return func(pieces [][]byte, into []byte) {
		n := len(pieces[0]) / q3kBytes
		lows, highs := make([]byte, 64*n), make([]byte, 32*n)
		packed{q3kBytes, q3kLows, 64, 2, 32}.inOrder(pieces, lows)
		packed{q3kBytes, 0, 32, 1, 32}.inOrder(pieces, highs)
		for at := 0; len(into) > 0; at++ {
			low, high := binary.LittleEndian.Uint64(lows[8*at:]), binary.LittleEndian.Uint32(highs[4*at:])
			four := func(i int) uint32 { // columns 4i to 4i + 3, three bits each
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

// spread has two tables that build four adjacent 3-bit numbers. The first table maps a byte with the low two
// bits of the four numbers to a word that has these bits at their places. The second table does this for the
// third bit of each number. The OR of both words has the four numbers.
var spread = func() (tables [2][256]uint32) {
	for b := range uint32(256) {
		for i := range uint32(4) {
			tables[0][b] |= b >> (2 * i) & 3 << (3 * i)
			tables[1][b] |= b >> i & 1 << (3*i + 2)
		}
	}
	return tables
}()

// three returns the 3-bit weight at index `at`, in row-major order.
func three(arrays [][]byte, at int) byte {
	half := func(w int) uint16 { // returns the 16-bit half of word w that holds the weight
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
