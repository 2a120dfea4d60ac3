package model

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/model/quantize"
	"gpuscope/ops"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
)

// decoders decode a block of each type in float64, independently of the code under test.
var decoders = map[gguf.Type]func(block []byte, out []float64){
	gguf.F32: func(b []byte, out []float64) {
		out[0] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	},
	gguf.F16: func(b []byte, out []float64) { out[0] = halfAt(b) },
	gguf.BF16: func(b []byte, out []float64) {
		out[0] = float64(gguf.BFloat16(binary.LittleEndian.Uint16(b)))
	},
	gguf.Q4_0: func(b []byte, out []float64) {
		for j := range 16 {
			out[j] = float64(int(b[2+j]&15)-8) * halfAt(b)
			out[j+16] = float64(int(b[2+j]>>4)-8) * halfAt(b)
		}
	},
	gguf.Q4_1: func(b []byte, out []float64) {
		for j := range 16 {
			out[j] = float64(b[4+j]&15)*halfAt(b) + halfAt(b[2:])
			out[j+16] = float64(b[4+j]>>4)*halfAt(b) + halfAt(b[2:])
		}
	},
	gguf.Q5_0: func(b []byte, out []float64) {
		for j, q := range fives(b[2:]) {
			out[j] = float64(q-16) * halfAt(b)
		}
	},
	gguf.Q5_1: func(b []byte, out []float64) {
		for j, q := range fives(b[4:]) {
			out[j] = float64(q)*halfAt(b) + halfAt(b[2:])
		}
	},
	gguf.Q2_K: func(b []byte, out []float64) {
		for j := range out {
			q, scales := b[16+j/128*32+j%32]>>(j%128/32*2)&3, b[j/16]
			out[j] = float64(q)*float64(scales&15)*halfAt(b[80:]) - float64(scales>>4)*halfAt(b[82:])
		}
	},
	gguf.Q3_K: func(b []byte, out []float64) {
		for j := range out {
			q := int(b[32+j/128*32+j%32] >> (j % 128 / 32 * 2) & 3)
			if b[j%32]>>(j/32)&1 == 0 {
				q -= 4
			}
			scales, g := b[96:], j/16
			scale := scales[g%8] & 15
			if g >= 8 {
				scale = scales[g%8] >> 4
			}
			scale |= scales[8+g%4] >> (g / 4 * 2) & 3 << 4
			out[j] = float64(q) * float64(int(scale)-32) * halfAt(b[108:])
		}
	},
	gguf.Q4_K: func(b []byte, out []float64) {
		for j := range out {
			scale, zero := sixes(b, j/32)
			out[j] = float64(b[16+j/64*32+j%32]>>(j%64/32*4)&15)*scale - zero
		}
	},
	gguf.Q5_K: func(b []byte, out []float64) {
		for j := range out {
			scale, zero := sixes(b, j/32)
			q := b[48+j/64*32+j%32]>>(j%64/32*4)&15 + 16*(b[16+j%32]>>(j/32)&1)
			out[j] = float64(q)*scale - zero
		}
	},
	gguf.IQ4_NL: func(b []byte, out []float64) {
		for j := range 16 {
			out[j] = levels[b[2+j]&15] * halfAt(b)
			out[j+16] = levels[b[2+j]>>4] * halfAt(b)
		}
	},
	gguf.IQ4_XS: func(b []byte, out []float64) {
		for j := range out {
			g := j / 32
			low, high := b[4+g/2]>>(g%2*4)&15, binary.LittleEndian.Uint16(b[2:])>>(2*g)&3
			q := b[8+g*16+j%16] >> (j % 32 / 16 * 4) & 15
			out[j] = levels[q] * (float64(int(low)+16*int(high)-32) * halfAt(b))
		}
	},
	gguf.MXFP4: func(b []byte, out []float64) {
		for j := range 16 {
			out[j] = fourBits(b[1+j]&15) * math.Pow(2, float64(b[0])-127)
			out[j+16] = fourBits(b[1+j]>>4) * math.Pow(2, float64(b[0])-127)
		}
	},
	gguf.NVFP4: func(b []byte, out []float64) {
		for j := range out {
			scale := floatOf(b[j/16]&127, 4, 3, 7)
			if b[j/16] == 0x7f { // NaN in E4M3; 0 in ggml
				scale = 0
			}
			out[j] = fourBits(b[4+j/16*8+j%8]>>(j%16/8*4)&15) * scale
		}
	},
	gguf.Q6_K: func(b []byte, out []float64) {
		for n := range 2 {
			low, high, scales, y := b[64*n:], b[128+32*n:], b[192+8*n:], out[128*n:]
			for l := range 32 {
				q := [4]byte{
					low[l]&15 | high[l]&3<<4, low[l+32]&15 | high[l]>>2&3<<4,
					low[l]>>4 | high[l]>>4&3<<4, low[l+32]>>4 | high[l]>>6<<4,
				}
				for k := range q {
					scale := float64(int8(scales[l/16+2*k]))
					y[l+32*k] = (float64(q[k]) - 32) * (scale * halfAt(b[208:]))
				}
			}
		}
	},
	gguf.Q8_0: func(b []byte, out []float64) {
		for j := range out {
			out[j] = float64(int8(b[2+j])) * halfAt(b)
		}
	},
}

// fourBits returns the value of a float with a sign, 2 bits of exponent and 1 bit of mantissa (E2M1).
func fourBits(b byte) float64 {
	if b >= 8 {
		return -floatOf(b-8, 2, 1, 1)
	}
	return floatOf(b, 2, 1, 1)
}

// floatOf returns the value of a float without a sign, by the general rule for such numbers: with so many
// bits of exponent and mantissa, a bias, and subnormal numbers at exponent 0.
func floatOf(b byte, exponent, mantissa, bias int) float64 {
	e, m := int(b)>>mantissa&(1<<exponent-1), float64(int(b)&(1<<mantissa-1))/float64(int(1)<<mantissa)
	if e == 0 {
		return m * math.Pow(2, float64(1-bias))
	}
	return (1 + m) * math.Pow(2, float64(e-bias))
}

// fives decodes Q5_0 and Q5_1: first a word with the high bits of all weights, then bytes with the low 4 bits
// of weights j and j + 16.
func fives(b []byte) (q [32]int) {
	for j := range 16 {
		q[j], q[j+16] = int(b[4+j]&15), int(b[4+j]>>4)
	}
	for j := range q {
		q[j] += int(b[j/8]>>(j%8)&1) * 16
	}
	return q
}

// sixes returns the scale and the minimum of group g in a block of Q4_K and Q5_K. Each has 6 bits. The two
// highest bits of groups 4 to 7 are stored in the bytes of groups 0 to 3.
func sixes(b []byte, g int) (scale, zero float64) {
	q := b[4:16]
	if g < 4 {
		return float64(q[g]&63) * halfAt(b), float64(q[g+4]&63) * halfAt(b[2:])
	}
	return float64(q[g+4]&15+q[g-4]>>6*16) * halfAt(b), float64(q[g+4]>>4+q[g]>>6*16) * halfAt(b[2:])
}

// levels are the values that IQ4_NL and IQ4_XS weights index.
var levels = [16]float64{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func halfAt(b []byte) float64 { return float64(gguf.Float16(binary.LittleEndian.Uint16(b))) }

// For each supported type, the kernels read exactly the weights that the file's blocks encode.
func TestMatricesHoldTheFilesWeights(t *testing.T) {
	const rows, cols = 37, 768
	random := rand.New(rand.NewPCG(3, 4))
	for _, format := range weight.Formats {
		if format.File == "" {
			continue
		}
		t.Run(format.File, func(t *testing.T) {
			for typ, decode := range decoders {
				if typ.String() == format.File {
					holdMatrix(t, &format, typ, decode, random, rows, cols)
					return
				}
			}
			t.Errorf("decoders has no entry for this type")
		})
	}
}

func holdMatrix(t *testing.T, format *weight.Format, typ gguf.Type, decode func([]byte, []float64),
	random *rand.Rand, rows, cols int,
) {
	n, size := typ.BlockLen(), typ.BlockBytes()
	data := make([]byte, rows*cols/n*size)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	piece := &format.Pieces[0]
	for at := 0; at < len(data); at += piece.Bytes { // make the floats finite
		for _, f := range piece.Floats {
			f.Put(data[at+f.At:], float32(random.NormFloat64()))
		}
	}
	b := gguftest.New()
	b.Set("general.architecture", "llama")
	b.Tensor("m", typ, []int{rows, cols}, data)
	want := make([]float64, n)
	for i, got := range matrixOf(t, b, nil, rows, cols) {
		if i%n == 0 {
			decode(data[i/n*size:][:size], want)
		}
		if got != want[i%n] {
			t.Fatalf("weight %d is %v, the file's is %v", i, got, want[i%n])
		}
	}
}

// Files made from NVIDIA's checkpoints have a number by which all weights of a matrix are multiplied.
func TestWeightsOfNVFP4AreMultipliedByTheirFactor(t *testing.T) {
	const rows, cols, factor = 21, 128, 0.37
	random := rand.New(rand.NewPCG(5, 6))
	n, size := gguf.NVFP4.BlockLen(), gguf.NVFP4.BlockBytes()
	data := make([]byte, rows*cols/n*size)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	b := gguftest.New()
	b.Set("general.architecture", "llama")
	b.Tensor("m.weight", gguf.NVFP4, []int{rows, cols}, data)
	b.F32("m.scale", []int{1}, []float32{factor})
	want := make([]float64, n)
	for i, got := range matrixNamed(t, b, "m.weight", nil, rows, cols) {
		if i%n == 0 {
			decoders[gguf.NVFP4](data[i/n*size:][:size], want)
		}
		if near := want[i%n] * float64(float32(factor)); math.Abs(got-near) > 1e-12*math.Abs(near) {
			t.Fatalf("weight %d is %v, want %v", i, got, near)
		}
	}
}

// The scales of MXFP4 and NVFP4 are bytes. Each of the 256 bytes is read as ggml reads it.
func TestEveryScaleByteIsReadAsTheFileSays(t *testing.T) {
	for typ, scales := range map[gguf.Type]int{gguf.MXFP4: 1, gguf.NVFP4: 4} {
		n, size := typ.BlockLen(), typ.BlockBytes()
		data := make([]byte, 256*size)
		for i := range 256 {
			for k := range size {
				data[i*size+k] = byte(i + 16*k)
			}
			data[i*size+scales-1] = byte(i)
		}
		b := gguftest.New()
		b.Set("general.architecture", "llama")
		b.Tensor("m", typ, []int{256, n}, data)
		want := make([]float64, n)
		for i, got := range matrixOf(t, b, nil, 256, n) {
			if i%n == 0 {
				decoders[typ](data[i/n*size:][:size], want)
			}
			if got != want[i%n] {
				t.Fatalf("%s: weight %d with scale %d is %v, the file's is %v", typ, i%n, i/n, got, want[i%n])
			}
		}
	}
}

// matrixOf returns the elements of matrix m of a file as a graph reads them, quantized if q is not nil.
func matrixOf(t *testing.T, b *gguftest.Builder, q *quantize.Quantizer, rows, cols int) []float64 {
	t.Helper()
	return matrixNamed(t, b, "m", q, rows, cols)
}

func matrixNamed(t *testing.T, b *gguftest.Builder, name string, q *quantize.Quantizer,
	rows, cols int,
) []float64 {
	t.Helper()
	f, err := arch.ParseGGUF(b.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	build := graph.NewBuilder(gpu.DefaultLimits())
	w := arch.NewWeights(build, f, &arch.Llama.Gguf, q)
	ids := build.Input("ids", graph.I32, []int{rows}, []int{rows})
	y := ops.Embedding(build, "y", w.Matrix(name, rows, cols), ids)
	build.Output(y)
	g, err := build.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var in graph.InputData
	in.Value, in.Dims = ids, []int{rows}
	for i := range rows {
		in.Data = binary.LittleEndian.AppendUint32(in.Data, uint32(i))
	}
	x := reference.NewInterpreter(g)
	if err := x.Step(&graph.StepInput{Inputs: []graph.InputData{in}}, nil); err != nil {
		t.Fatal(err)
	}
	return x.Tensor(y).Data
}
