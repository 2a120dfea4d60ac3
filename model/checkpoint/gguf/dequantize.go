package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A block of Q4_0 holds 32 consecutive weights of one row: a float16 scale and 16 bytes. Byte j holds
// weight j in its low nibble and weight j + 16 in its high nibble. Each nibble stores the quantized weight
// plus 8.
const (
	Q4_0BlockLen   = 32 // weights per block
	Q4_0BlockBytes = 18 // size of a block in bytes
)

// DecodeQ4_0 decodes a block of Q4_0 into its scale and its 32 quantized weights, which are in -8..7.
// Weight k of the block, in row order, is float32(q[k]) * scale.
func DecodeQ4_0(block *[Q4_0BlockBytes]byte) (scale float32, q [Q4_0BlockLen]int8) {
	for j, b := range block[2:] {
		q[j] = int8(b&0xf) - 8
		q[j+Q4_0BlockLen/2] = int8(b>>4) - 8
	}
	return Float16(binary.LittleEndian.Uint16(block[:])), q
}

// Float16 converts the bits of an IEEE 754 half-precision number to a float32. The conversion is exact.
func Float16(bits uint16) float32 {
	sign := uint32(bits>>15) << 31
	exponent := uint32(bits>>10) & 0x1f
	mantissa := uint32(bits & 0x3ff)
	switch exponent {
	case 0: // zero and subnormal numbers have the value mantissa * 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(mantissa)*0x1p-24))
	case 0x1f: // infinity and NaN
		return math.Float32frombits(sign | 0xff<<23 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent-15+127)<<23 | mantissa<<13)
}

// BFloat16 converts the bits of a bfloat16 to a float32. The conversion is exact.
func BFloat16(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// dequantizers maps each type that Dequantize supports to a function that converts one block to floats.
var dequantizers = map[Type]func(block []byte, out []float32){
	F32:  func(b []byte, out []float32) { out[0] = math.Float32frombits(binary.LittleEndian.Uint32(b)) },
	F16:  func(b []byte, out []float32) { out[0] = Float16(binary.LittleEndian.Uint16(b)) },
	BF16: func(b []byte, out []float32) { out[0] = BFloat16(binary.LittleEndian.Uint16(b)) },
	Q4_0: func(b []byte, out []float32) {
		scale, q := DecodeQ4_0((*[Q4_0BlockBytes]byte)(b))
		for k, w := range q {
			out[k] = float32(w) * scale
		}
	},
}

// Dequantize converts all elements of a tensor to float32 and returns them in row-major order. It supports
// the types F32, F16, BF16 and Q4_0.
func Dequantize(t *Tensor) ([]float32, error) {
	block, ok := dequantizers[t.Type]
	if !ok {
		return nil, fmt.Errorf("tensor %q: type %s is not supported yet. Quantize the model to Q4_0",
			short(t.Name), t.Type)
	}
	data, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	n, size := t.Type.BlockLen(), t.Type.BlockBytes()
	out := make([]float32, t.Elements())
	for i := 0; i*n < len(out); i++ {
		block(data[i*size:(i+1)*size], out[i*n:(i+1)*n])
	}
	return out, nil
}
