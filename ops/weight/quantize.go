package weight

import (
	"encoding/binary"
	"math"
)

// MaxQuantizeGroup is the largest group size that QuantizeQ4GSW supports.
const MaxQuantizeGroup = 128

// QuantizeQ4GSW quantizes a row of weights to the format Q4GSW(group, Q4Options{}). It fills `nibbles`, which
// has len(row)/2 bytes, and `scales`, which has 4*len(row)/group bytes. It returns the largest absolute
// quantization error and the sum of the squared errors. The sum is not finite if a weight is not finite.
func QuantizeQ4GSW(row []float32, group int, nibbles, scales []byte) (worst, squares float64) {
	var buffer [2][MaxQuantizeGroup]int8
	best, scratch := buffer[0][:group], buffer[1][:group]
	for g := range len(row) / group {
		weights := row[g*group:][:group]
		scale := nearestGrid(weights, best, scratch)
		binary.LittleEndian.PutUint32(scales[4*g:], math.Float32bits(scale))
		for i := 0; i < group; i += 2 {
			nibbles[(g*group+i)/2] = byte(best[i]+8) | byte(best[i+1]+8)<<4
		}
		for i, w := range weights {
			gap := math.Abs(float64(w) - float64(best[i])*float64(scale))
			squares += gap * gap
			worst = max(worst, gap)
		}
	}
	return worst, squares
}

// nearestGrid quantizes weights to the integers -8 to 7. It stores the integers in `best`, and returns the
// scale. First it rounds the weights with two candidate scales: one maps the weight of largest magnitude to
// -8, the other maps the same weight to 7. For each of the two lists of integers it then computes the scale
// with the smallest squared error. It chooses the list whose error is smaller.
func nearestGrid(weights []float32, best, scratch []int8) (scale float32) {
	var extreme float64
	for _, w := range weights {
		if w := float64(w); math.Abs(w) > math.Abs(extreme) {
			extreme = w
		}
	}
	clear(best)
	if extreme == 0 {
		return 0
	}
	most := -1.0
	for _, end := range []float64{-8, 7} {
		var along, length float64
		inverse := end / extreme
		for i, w := range weights {
			up := float64(w)*inverse + 8.5 // steps from -8 to w, plus 0.5, because int8() rounds down
			switch {
			case up < 0:
				up = 0
			case up > 15:
				up = 15
			}
			step := int8(up) - 8
			scratch[i] = step
			along += float64(w) * float64(step)
			length += float64(step) * float64(step)
		}
		// For these integers, the scale with the smallest squared error is `along / length`. It reduces the
		// squared error by `gain`, compared with a scale of 0.
		if gain := along * along / length; gain > most {
			most, scale = gain, float32(along/length)
			copy(best, scratch)
		}
	}
	return scale
}
