package weight

import (
	"encoding/binary"

	"gpuscope/engine/graph"
)

// Q5_0 is ggml's Q5_0. A weight is (q - 16) * scale, where q has 5 bits. A block (block_q5_0 in
// ggml-common.h) has 32 columns: the f16 scale, then the fifth bit of each weight in the order of the
// columns, then the low four bits of each weight in the order of Q4_0. On the device the five bits of a
// weight are stored together, and scales are in a separate array.
var Q5_0 = Format{
	Name: "q5_0", File: "Q5_0", Group: halfOf32.group,
	Doc:      "Each weight is (q - 16) * scale. q has 5 bits. 32 columns share an f16 scale.",
	Pieces:   []Block{{Cols: 32, Bytes: q50Bytes, Floats: halves(0)}},
	AsHalves: true, shader: "q5_0", constants: halfOf32.constants, MaxGroupsOf8: 4,
	Arrays: func(rows, cols int) []Array {
		return append(fives(rows, cols, packed{q50Bytes, 6, 16, 4, 16}.inOrder, taken(q50Bytes, 2, 4)),
			halfOf32.Array("scales", rows, cols, func(p [][]byte, i int) []byte {
				return p[0][q50Bytes*i:][:2]
			}))
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			q := five(arrays, row*len(into)+c)
			into[c] = (float64(q) - 16) * halfOf32.read(arrays[2], row, c, len(into))
		}
	},
}

const q50Bytes = 2 + 4 + 16

// fives returns the arrays of a 5-bit format, in the layout of shaders/include/fives.wgsl. The function
// `lows` packs the low four bits of the weights in the order of the columns, and the function `highs` packs
// the fifth bits.
func fives(rows, cols int, lows, highs pack) []Array {
	return []Array{
		weightsArray(graph.U32, rows, cols/8, fiveWords(lows, highs, 0, 1, 2, 3)),
		{"fifths", graph.U32, []int{rows, cols / 32}, fiveWords(lows, highs, 4)},
	}
}

// fiveWords returns a pack for 5-bit weights. Five words (0 to 4) hold the weights of 32 columns. `words`
// lists which of the five the pack writes: 0 to 3 for the array `weights`, or 4 for the array `fifths`.
func fiveWords(lows, highs pack, words ...int) pack {
	return func(pieces [][]byte, into []byte) {
		n := len(into) / (4 * len(words))
		low, high := make([]byte, 16*n), make([]byte, 4*n)
		lows(pieces, low)
		highs(pieces, high)
		for ; len(into) > 0; low, high = low[16:], high[4:] {
			fifths := binary.LittleEndian.Uint32(high)
			var fours [8]uint32 // fours[i] has columns 4i to 4i + 3, five bits each
			for i := range fours {
				fours[i] = spreadFives[low[2*i]] | spreadFives[low[2*i+1]]<<10 |
					spreadFifths[fifths>>(4*i)&15]
			}
			for _, w := range words {
				var word uint32
				for half := range 2 {
					bits, last := fours[half]>>15|fours[2+half]>>15<<5|fours[4+half]>>15<<10, fours[6+half]
					if w < 4 {
						bits = fours[2*w+half] & (1<<15 - 1)
					}
					word |= (bits | last>>(15+w)&1<<15) << (16 * half)
				}
				binary.LittleEndian.PutUint32(into, word)
				into = into[4:]
			}
		}
	}
}

// spreadFives maps a byte with two nibbles to two 5-bit numbers, whose fifth bits are 0. spreadFifths maps
// four fifth bits to four 5-bit numbers, whose other bits are 0.
var spreadFives, spreadFifths = func() (fives [256]uint32, fifths [16]uint32) {
	for b := range uint32(256) {
		fives[b] = b&15 | b>>4<<5
	}
	for b := range uint32(16) {
		for i := range uint32(4) {
			fifths[b] |= b >> i & 1 << (5*i + 4)
		}
	}
	return fives, fifths
}()

// five returns the 5-bit weight at index `at`, in row-major order. `arrays` starts with the arrays that
// fives(...) returns.
func five(arrays [][]byte, at int) byte {
	half := func(w int) uint16 { // returns the 16-bit half of word w that holds the weight
		array, word := arrays[0], at/32*4+w
		if w == 4 {
			array, word = arrays[1], at/32
		}
		return binary.LittleEndian.Uint16(array[4*word+at%8/4*2:])
	}
	switch eight, i := at%32/8, at%4; {
	case i < 3:
		return byte(half(eight) >> (5 * i) & 31)
	case eight < 3:
		return byte(half(4) >> (5 * eight) & 31)
	}
	var q byte
	for w := range 5 {
		q |= byte(half(w)>>15) << w
	}
	return q
}
