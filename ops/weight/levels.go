package weight

import (
	"fmt"
	"maps"
	"strings"

	"gpuscope/shaders"
)

// levels has the 16 numbers that the 4-bit weights of a format select. They are whole numbers from -128 to
// 127. Kernels read them in the way that shaders/include/levels.wgsl describes.
type levels [16]float64

// levelTable is the size of the lookup table in shaders/include/levels.wgsl, in bytes.
const levelTable = 256 * 4

// constants() returns the template constant that levels.wgsl needs.
func (l *levels) constants() shaders.Constants {
	var words [4]string
	for i := range words {
		var word uint32
		for k := range 4 {
			word |= uint32(l[4*i+k]+128) << (8 * k)
		}
		words[i] = fmt.Sprintf("0x%08xu", word)
	}
	return shaders.Constants{"Levels": strings.Join(words[:], ", ")}
}

// withLevels(l, rest) returns a function that returns the constants of l and those of rest.
func withLevels(l *levels, rest func() shaders.Constants) func() shaders.Constants {
	return func() shaders.Constants {
		c := l.constants()
		maps.Copy(c, rest())
		return c
	}
}
