package model

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/model/gguf"
	"gpuscope/model/gguf/gguftest"
	"gpuscope/ops"
)

// decoders say what a block of a type stands for, in float64 and in words of their own.
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

func halfAt(b []byte) float64 { return float64(gguf.Float16(binary.LittleEndian.Uint16(b))) }

// Each type that can be run holds, as the kernels read it, exactly the weights that its blocks stand for.
func TestMatricesHoldTheFilesWeights(t *testing.T) {
	const rows, cols = 37, 768
	random := rand.New(rand.NewPCG(3, 4))
	for _, format := range ops.Formats {
		if format.File == "" {
			continue
		}
		t.Run(format.File, func(t *testing.T) {
			for typ, decode := range decoders {
				if typ.String() == format.File {
					holdMatrix(t, typ, decode, random, rows, cols)
					return
				}
			}
			t.Errorf("decoders has no row for it")
		})
	}
}

func holdMatrix(t *testing.T, typ gguf.Type, decode func([]byte, []float64), random *rand.Rand,
	rows, cols int,
) {
	n, size := typ.BlockLen(), typ.BlockBytes()
	data := make([]byte, rows*cols/n*size)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	for at := 0; at < len(data); at += size { // floats that are finite
		if size == 4 && n == 1 {
			binary.LittleEndian.PutUint32(data[at:], math.Float32bits(float32(random.NormFloat64())))
		} else {
			for _, half := range []int{0, 2, size - 2} { // wherever a type has one
				binary.LittleEndian.PutUint16(data[min(at+half, len(data)-2):], uint16(1+random.IntN(0x7000)))
			}
		}
	}
	b := gguftest.New()
	b.Set("general.architecture", "llama")
	b.Tensor("m", typ, []int{rows, cols}, data)
	f, err := gguf.Parse(b.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	build := engine.NewBuilder(gpu.DefaultLimits())
	w := &weights{build, f, map[string]bool{}}
	ids := build.Input("ids", engine.I32, []int{rows}, []int{rows})
	y := ops.Embedding(build, "y", w.matrix("m", rows, cols), ids)
	build.Output(y)
	g, err := build.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var in engine.InputData
	in.Value, in.Dims = ids, []int{rows}
	for i := range rows {
		in.Data = binary.LittleEndian.AppendUint32(in.Data, uint32(i))
	}
	x := ops.NewInterpreter(g)
	if err := x.Step(&engine.StepInput{Inputs: []engine.InputData{in}}, nil); err != nil {
		t.Fatal(err)
	}
	want := make([]float64, n)
	for i, got := range x.Tensor(y).Data {
		if i%n == 0 {
			decode(data[i/n*size:][:size], want)
		}
		if got != want[i%n] {
			t.Fatalf("weight %d is %v, the file's is %v", i, got, want[i%n])
		}
	}
}
