package weight

import (
	"encoding/binary"
	"math"
)

// MaxQuantizeGroup is the largest group of QuantizeQ4GSW.
const MaxQuantizeGroup = 128

// QuantizeQ4GSW turns a row of weights into the pieces of Q4GSW(group, Q4Options{}) that are near it: nibbles
// has len(row)/2 bytes, scales 4*len(row)/group. It gives what is left of the weights: the largest magnitude
// and the sum of squares, which is not finite where a weight is not.
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

// nearestGrid fills best with steps of -8 to 7 and gives the length of a step. The weight of the largest
// magnitude is put at the eighth step of the one side or at the seventh of the other, and of the two ways the
// one that leaves less, with the length that is best for its steps, is taken.
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
			up := float64(w)*inverse + 8.5 // steps up from -8, to be cut to a whole number
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
		// Of the sum of the weights' squares the best length of a step, along / length, takes this away.
		if gain := along * along / length; gain > most {
			most, scale = gain, float32(along/length)
			copy(best, scratch)
		}
	}
	return scale
}
