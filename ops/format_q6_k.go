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
				for b := range blocks {
					q6Lows(p[0][b*q6Bytes:], data[128*b:])
				}
				return data
			}),
			{"highs", engine.U32, []int{rows, cols / 16}, func(p [][]byte) []byte {
				data := make([]byte, 64*blocks)
				for b := range blocks {
					q6HighBits(p[0][b*q6Bytes+q6Highs:], data[64*b:])
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

// q6Lows brings the low bits of a block into the order of the columns. In each half of a block 32 bytes have
// those of columns 0 to 31 and, in their high nibbles, 64 to 95; the next 32 those of 32 to 63 and 96 to 127.
func q6Lows(block, into []byte) {
	for half := range 2 {
		for c := 0; c < 64; c += 2 {
			first, second := block[64*half+c], block[64*half+c+1]
			into[64*half+c/2] = first&15 | second<<4
			into[64*half+32+c/2] = first>>4 | second&0xf0
		}
	}
}

// q6HighBits does so with the high bits: 32 bytes to each half of a block have those of columns 32 apart,
// from the lowest bits up.
func q6HighBits(highs, into []byte) {
	for half := range 2 {
		for c := 0; c < 32; c += 4 {
			from := highs[32*half+c : 32*half+c+4]
			for k := range 4 {
				v := from[0]>>(2*k)&3 | from[1]>>(2*k)&3<<2 | from[2]>>(2*k)&3<<4 | from[3]>>(2*k)&3<<6
				into[32*half+8*k+c/4] = v
			}
		}
	}
}

// q6Pieces are n bytes at a place of each block.
func q6Pieces(blocks []byte, at, n int) []byte {
	data := make([]byte, 0, len(blocks)/q6Bytes*n)
	for ; len(blocks) > 0; blocks = blocks[q6Bytes:] {
		data = append(data, blocks[at:at+n]...)
	}
	return data
}
