package weight

// Q5_K is ggml's Q5_K. It is like Q4_K, but q has 5 bits. A block (block_q5_K in ggml-common.h) has `super`
// and `superZero`, then 12 bytes of scales and zero points. Then follow the fifth bits of the weights, and
// then the nibbles. A byte of fifth bits has those of eight columns that are 32 apart. On the device the five
// bits of a weight are stored together. Scales and super-block scales are in separate arrays.
var Q5_K = Format{
	Name: "q5_k", File: "Q5_K", Group: 32,
	Doc: "Each weight is q * scale * super - zero * super_zero. q has 5 bits. 32 columns share a 6-bit " +
		"scale and a 6-bit zero. 256 columns share super and super_zero, which are f16.",
	Pieces:   []Block{{Cols: 256, Bytes: q5kBytes, Floats: halves(0, 2)}},
	AsHalves: true, shader: "q5_k", MaxGroupsOf8: 4,
	Arrays: func(rows, cols int) []Array {
		lows := packed{q5kBytes, sixesBytes + 32, 128, 4, 32}
		return append(fives(rows, cols, lows.inOrder, packed{q5kBytes, sixesBytes, 32, 1, 32}.inOrder),
			scalesAndZeros(q5kBytes).Array(rows, cols),
			supersOfBoth(q5kBytes).Array(rows, cols))
	},
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			scale, zero := scaleAndZero(arrays[2:], row, c, len(into))
			into[c] = float64(five(arrays, row*len(into)+c))*scale - zero
		}
	},
}

const q5kBytes = sixesBytes + 32 + 128
