package weight

import (
	"fmt"

	"gpuscope/engine/graph"
)

// Q4Options describes how an ExecuTorch file stores its 4-bit weights.
type Q4Options struct {
	// HighNibbles is true if the high nibble of each byte holds an even column. This is so in ExecuTorch's
	// qcs4w, and in its embeddings with is_linear_weight = 0. Otherwise the low nibble holds the even column.
	HighNibbles bool
	// HalfScales is true if scales are f16, in the file and on the device. Otherwise scales are f32.
	HalfScales bool
}

// Q4GSW returns the format of 4-bit weights (q - 8) * scale with one scale for each group of columns. This is
// ExecuTorch's et_vk.*_q4gsw. The number of columns and the group size must be multiples of 8. A file has two
// pieces: the nibbles, two columns to a byte, and the scales.
//
// On the device a word has 8 columns of a row, and column k starts at bit 4k. The scales of 4 rows are stored
// together, so that a lane loads the scales of its rows at once.
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

// QCS4W is Q4GSW with one scale for each row of `cols` columns. This is ExecuTorch's et_vk.linear_qcs4w.
// Files of this format have even columns in the high nibbles.
func QCS4W(cols int, o Q4Options) Format {
	f := Q4GSW(cols, o)
	f.Name, f.Doc = "qcs4w", "Each weight is (q - 8) * scale. q has 4 bits. Each row has one scale."
	f.check = func(n int) error {
		if n != cols {
			return fmt.Errorf("group size is %d, but each row has one scale for all its %d columns: the group size must be the number of columns", cols, n)
		}
		return nil
	}
	return f
}

// Q4_0 is ggml's Q4_0. On the device it has the same layout as Q4GSW with groups of 32 columns and f16
// scales. Weights and scales keep their bits. A block has 32 columns: the f16 scale, then 16 bytes. Byte j
// holds columns j and j + 16.
var Q4_0 = q4(Format{Name: "q4gsw", File: "Q4_0"}, rowScales{32, true},
	[]Block{{Cols: 32, Bytes: 2 + 16, Floats: halves(0)}},
	packed{18, 2, 16, 4, 16}.inOrder, func(p [][]byte, i int) []byte { return p[0][18*i:][:2] })

// q4 adds to the format f all fields that the formats with weights (q - 8) * scale have in common. The
// function `nibbles` packs the weights in the order of the columns, with even columns in the low nibbles.
// The function `scaleAt` returns the bytes of scale i.
func q4(f Format, scales rowScales, pieces []Block, nibbles pack,
	scaleAt func(p [][]byte, i int) []byte,
) Format {
	f.Doc = "Each weight is (q - 8) * scale. q has 4 bits. The columns of a group share a scale, which is f32 or f16."
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
