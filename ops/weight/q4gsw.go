package weight

import (
	"fmt"

	"gpuscope/engine/graph"
)

// Q4Options says how a file of ExecuTorch's has its 4-bit weights.
type Q4Options struct {
	// HighNibbles: even columns are in the high nibbles of a byte, as upstream's qcs4w and its embeddings
	// with is_linear_weight = 0 have it; else in the low ones.
	HighNibbles bool
	// HalfScales: scales are halves, and stay so; else they are f32.
	HalfScales bool
}

// Q4GSW is 4-bit weights (q - 8) * scale, where a group of columns has a scale: ExecuTorch's et_vk.*_q4gsw.
// Columns and group are multiples of 8. Pieces are the nibbles, two columns to a byte, and the scales.
//
// On the device a row of weights is a word for 8 columns, column k of them at bits 4k. The scales of 4 rows
// lie together, so that a lane loads those of its rows at once.
func Q4GSW(group int, o Q4Options) Format {
	scale := Block{Cols: group, Bytes: 4, Floats: floats(0)}
	if o.HalfScales {
		scale = Block{Cols: group, Bytes: 2, Floats: halves(0)}
	}
	var nibbles pack = func(p [][]byte, into []byte) { copy(into, p[0]) }
	if o.HighNibbles {
		nibbles = func(p [][]byte, into []byte) {
			for i, v := range p[0] {
				into[i] = v<<4 | v>>4
			}
		}
	}
	return q4(Format{Name: "q4gsw"}, rowScales{group, o.HalfScales},
		[]Block{{Cols: 2, Bytes: 1}, scale}, nibbles,
		func(p [][]byte, i int) []byte { return p[1][scale.Bytes*i:][:scale.Bytes] })
}

// QCS4W is Q4GSW with one scale to a row of so many columns, ExecuTorch's et_vk.linear_qcs4w. Its files have
// the even columns in the high nibbles.
func QCS4W(cols int, o Q4Options) Format {
	f := Q4GSW(cols, o)
	f.Name, f.Doc = "qcs4w", "(q - 8) * scale: 4 bits, and a scale to a row"
	f.check = func(n int) error {
		if n != cols {
			return fmt.Errorf("groups of %d, want one scale to a row of %d", cols, n)
		}
		return nil
	}
	return f
}

// Q4_0 is ggml's Q4_0, which is Q4GSW with groups of 32: nothing is lost. A block is 32 columns: the scale, a
// half, then column j beside column j + 16 in byte j.
var Q4_0 = q4(Format{Name: "q4gsw", File: "Q4_0"}, rowScales{32, true},
	[]Block{{Cols: 32, Bytes: 2 + 16, Floats: halves(0)}},
	packed{18, 2, 16, 4, 16}.inOrder, func(p [][]byte, i int) []byte { return p[0][18*i:][:2] })

// q4 is a format of 4-bit weights on the device: nibbles gives them in the order of the columns, the even
// ones in the low halves of the bytes, and scaleAt the bits of a scale.
func q4(f Format, scales rowScales, pieces []Block, nibbles pack,
	scaleAt func(p [][]byte, i int) []byte,
) Format {
	f.Doc = "(q - 8) * scale: 4 bits, and a scale, f32 or a half, for each group of columns"
	f.Group, f.Pieces, f.shader, f.MaxGroupsOf8 = scales.group, pieces, "q4", 1
	f.AsHalves = true
	f.constants = scales.constants
	f.Arrays = func(rows, cols int) []Array {
		return []Array{
			weightsArray(graph.Q4, rows, cols, nibbles),
			scales.Array("scales", rows, cols, scaleAt),
		}
	}
	f.ReadRow = func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			q := number(arrays[0], 4, row*len(into)+c)
			into[c] = (float64(q) - 8) * scales.read(arrays[1], row, c, len(into))
		}
	}
	if scales.group%32 == 0 {
		f.MaxGroupsOf8 = 4
	}
	return f
}
