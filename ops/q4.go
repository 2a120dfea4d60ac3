package ops

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Q4Matrix is a matrix of 4-bit weights as a file gives it, before any operator packs it for its kernels.
// Element (row, col) is (q - 8) * scale of its group, groups being runs of Group columns of a row.
type Q4Matrix struct {
	Name       string
	Rows, Cols int
	Group      int // divides Cols
	// even columns are in the high nibbles, as upstream's qcs4w and older embeddings have it; else in the low
	// ones
	HighNibbles bool
	HalfScales  bool // every scale is exactly a half, as in GGUF's Q4_0, and is kept as one
	// Nibbles gives Rows * Cols/2 bytes, row by row, two columns to a byte.
	Nibbles func() ([]byte, error)
	// Scales gives Rows * Cols/Group scales, row by row.
	Scales func() ([]float32, error)
}

// check says what is wrong with the matrix's dims.
func (m *Q4Matrix) check() error {
	switch {
	case m.Rows < 1 || m.Cols < 1 || m.Group < 1:
		return fmt.Errorf("%s: %d x %d weights in groups of %d, all must be positive", m.Name, m.Rows, m.Cols,
			m.Group)
	case m.Cols%8 != 0 || m.Group%8 != 0:
		return fmt.Errorf("%s: %d columns in groups of %d, both must be multiples of 8", m.Name, m.Cols,
			m.Group)
	case m.Cols%m.Group != 0:
		return fmt.Errorf("%s: %d columns do not divide into groups of %d", m.Name, m.Cols, m.Group)
	}
	return nil
}

// nibbles are the bytes of Nibbles, held to the matrix's size.
func (m *Q4Matrix) nibbles() ([]byte, error) {
	data, err := m.Nibbles()
	if err == nil && len(data) != m.Rows*m.Cols/2 {
		err = fmt.Errorf("%s: %d bytes of nibbles for %d x %d, want %d", m.Name, len(data), m.Rows, m.Cols,
			m.Rows*m.Cols/2)
	}
	return data, err
}

// scales are the values of Scales, held to the matrix's size.
func (m *Q4Matrix) scales() ([]float32, error) {
	list, err := m.Scales()
	if err == nil && len(list) != m.Rows*m.Cols/m.Group {
		err = fmt.Errorf("%s: %d scales for %d x %d in groups of %d, want %d", m.Name, len(list), m.Rows,
			m.Cols, m.Group, m.Rows*m.Cols/m.Group)
	}
	return list, err
}

// float32Bytes are floats as the device has them.
func float32Bytes(list []float32) []byte {
	data := make([]byte, 0, 4*len(list))
	for _, f := range list {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return data
}
