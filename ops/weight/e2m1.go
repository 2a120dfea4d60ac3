package weight

import "gpuscope/engine/graph"

// e2m1 describes an array of 4-bit floats, in the layout of shaders/include/e2m1.wgsl. A float has a bit of
// mantissa, then two bits of exponent, then the sign. MXFP4 and NVFP4 have such weights. The field `nibbles`
// describes where the blocks of a file store them.
type e2m1 struct{ nibbles packed }

func (e e2m1) Array(rows, cols int) Array {
	return weightsArray(graph.U32, rows, cols/8, e2m1Places.pack(e.nibbles.inOrder))
}

// read(...) returns a weight, times two.
func (e2m1) read(data []byte, row, col, cols int) float64 {
	return e2m1Doubled[e2m1Places.number(data, row*cols+col)]
}

// e2m1Doubled has the values of the 4-bit floats, times two. In ggml-common.h this table is named
// kvalues_mxfp4.
var e2m1Doubled = [16]float64{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// e2m1Places is the layout of 8 floats in a word, as shaders/include/e2m1.wgsl describes it. The lower half
// of the word has the columns 0 to 3, and the upper half has the columns 4 to 7.
var e2m1Places = placesOfBits(4, func(i, bit int) int {
	half, i := i/4*16, i%4
	if bit == 3 {
		return half + []int{15, 12, 14, 13}[i]
	}
	return half + 9 - 3*i + bit
})
