package weight

// IQ4_NL is ggml's IQ4_NL. A weight is level[q] * scale, where q has 4 bits. The 16 levels are closer
// together near zero, because small weights are more frequent. The blocks (block_iq4_nl in ggml-common.h) and
// the layout on the device are the same as for Q4_0.
var IQ4_NL = Format{
	Name: "iq4_nl", File: "IQ4_NL", Group: halfOf32.group,
	Doc: "Each weight is level[q] * scale. q has 4 bits and selects one of 16 unevenly spaced levels. " +
		"32 columns share an f16 scale.",
	Pieces: Q4_0.Pieces,
	shader: "iq4_nl", constants: halfOf32.constants, MaxGroupsOf8: 4,
	WorkgroupBytes: levelTable,
	Arrays:         Q4_0.Arrays,
	ReadRow: func(arrays [][]byte, row int, into []float64) {
		for c := range into {
			level := levels[number(arrays[0], 4, row*len(into)+c)]
			into[c] = level * halfOf32.read(arrays[1], row, c, len(into))
		}
	},
}

// levelTable is the size of the lookup table in shaders/include/levels.wgsl, in bytes.
const levelTable = 256 * 4

// levels has the 16 numbers that 4-bit weights of IQ4_NL and IQ4_XS select. In ggml-common.h this table is
// named kvalues_iq4nl.
var levels = [16]float64{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
