package ops

import "gpuscope/engine"

// Q6_K is ggml's Q6_K: (q - 32) * scale * super with 6-bit q, a scale, a signed byte, for 16 columns, and a
// super, a half, for the 256 of a block. A block has the low four bits of its weights, then the high two, the
// scales and the super. On the device low bits, high bits, scales and supers lie apart, each in the order of
// the columns.
var Q6_K = Format{
	Name: "q6_k", File: "Q6_K", Group: 16,
	Doc:    "(q - 32) * scale * super: 6 bits, a signed byte for 16 columns and a half for 256",
	Pieces: []Block{{Cols: 256, Bytes: q6Bytes, Floats: halves(q6Super)}},
	shader: "q6_k", eights: 2,
	arrays: func(rows, cols int) []array {
		blocks := rows * cols / 256
		return []array{
			weightsArray(engine.Q4, rows, cols, func(p [][]byte) []byte {
				data := make([]byte, 128*blocks)
				for c := range 256 * blocks {
					data[c/2] |= q6Low(p[0], c) << (c % 2 * 4)
				}
				return data
			}),
			{"highs", engine.U32, []int{rows, cols / 16}, func(p [][]byte) []byte {
				data := make([]byte, 64*blocks)
				for c := range 256 * blocks {
					data[c/4] |= q6High(p[0], c) << (c % 4 * 2)
				}
				return data
			}},
			{"scales", engine.I8, []int{rows, cols / 16}, func(p [][]byte) []byte {
				return q6Pieces(p[0], q6Scales, 16)
			}},
			{"supers", engine.F16, []int{rows, cols / 256}, func(p [][]byte) []byte {
				data := q6Pieces(p[0], q6Super, 2)
				return append(data, make([]byte, len(data)%4)...) // whole words
			}},
		}
	},
	row: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			at := row*len(into) + c
			q := arrays[0][at/2]>>(at%2*4)&15 | arrays[1][at/4]>>(at%4*2)&3<<4
			scale := float64(int8(arrays[2][at/16])) * float64(half(arrays[3][at/256*2:]))
			into[c] = (float64(q) - 32) * scale
		}
	},
}

// Where the parts of a block of Q6_K begin, and how long it is.
const (
	q6Highs  = 128
	q6Scales = q6Highs + 64
	q6Super  = q6Scales + 16
	q6Bytes  = q6Super + 2
)

// q6Low are the low bits of column c of blocks, q6High the high ones. In each half of a block 32 bytes have
// the low bits of columns 0 to 31, and in their high nibbles those of 64 to 95; the next 32 those of 32 to 63
// and 96 to 127. Another 32 bytes have the high bits of columns 32 apart, from the lowest bits up.
func q6Low(blocks []byte, c int) byte {
	low := blocks[c/256*q6Bytes+c%256/128*64:]
	return low[c%64] >> (c % 128 / 64 * 4) & 15
}

func q6High(blocks []byte, c int) byte {
	high := blocks[c/256*q6Bytes+q6Highs+c%256/128*32:]
	return high[c%32] >> (c % 128 / 32 * 2) & 3
}

// q6Pieces are n bytes at a place of each block.
func q6Pieces(blocks []byte, at, n int) []byte {
	data := make([]byte, 0, len(blocks)/q6Bytes*n)
	for ; len(blocks) > 0; blocks = blocks[q6Bytes:] {
		data = append(data, blocks[at:at+n]...)
	}
	return data
}
