package program

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/model/checkpoint/pte"
)

// element describes how the elements of one type of the file are stored on the device, which has only 32-bit
// numbers.
type element struct {
	numpy  npy.Type
	device graph.DType
	// read converts the element at the start of data to the 32 bits that the device stores. ok is false if
	// the number does not fit.
	read func(data []byte) (bits uint32, ok bool)
	// write converts 32 bits of the device to an element, and stores the element at the start of data.
	write func(data []byte, bits uint32)
}

var elements = map[pte.Type]element{
	pte.Float32: {
		npy.Float32, graph.F32,
		func(data []byte) (uint32, bool) { return binary.LittleEndian.Uint32(data), true },
		binary.LittleEndian.PutUint32,
	},
	pte.Float64: {
		npy.Float64, graph.F32,
		func(data []byte) (uint32, bool) {
			wide := math.Float64frombits(binary.LittleEndian.Uint64(data))
			narrow := float32(wide)
			return math.Float32bits(narrow), !math.IsInf(float64(narrow), 0) || math.IsInf(wide, 0)
		},
		func(data []byte, bits uint32) {
			binary.LittleEndian.PutUint64(data, math.Float64bits(float64(math.Float32frombits(bits))))
		},
	},
	pte.Float16: {
		npy.Float16, graph.F32,
		func(data []byte) (uint32, bool) {
			return math.Float32bits(float16.Frombits(binary.LittleEndian.Uint16(data)).Float32()), true
		},
		func(data []byte, bits uint32) {
			binary.LittleEndian.PutUint16(data, float16.Fromfloat32(math.Float32frombits(bits)).Bits())
		},
	},
	pte.Int32: {
		npy.Int32, graph.I32,
		func(data []byte) (uint32, bool) { return binary.LittleEndian.Uint32(data), true },
		binary.LittleEndian.PutUint32,
	},
	pte.Int64: {
		npy.Int64, graph.I32,
		func(data []byte) (uint32, bool) {
			n := int64(binary.LittleEndian.Uint64(data))
			return uint32(n), n >= math.MinInt32 && n <= math.MaxInt32
		},
		func(data []byte, bits uint32) { binary.LittleEndian.PutUint64(data, uint64(int32(bits))) },
	},
	pte.Int8: {
		npy.Int8, graph.F32,
		func(data []byte) (uint32, bool) { return math.Float32bits(float32(int8(data[0]))), true },
		func(data []byte, bits uint32) { data[0] = byte(int8(whole(bits, math.MinInt8, math.MaxInt8))) },
	},
	pte.Uint8: {
		npy.Uint8, graph.F32,
		func(data []byte) (uint32, bool) { return math.Float32bits(float32(data[0])), true },
		func(data []byte, bits uint32) { data[0] = byte(whole(bits, 0, math.MaxUint8)) },
	},
	pte.Bool: {
		npy.Bool, graph.F32,
		func(data []byte) (uint32, bool) { return math.Float32bits(float32(min(data[0], 1))), true },
		func(data []byte, bits uint32) {
			data[0] = 0
			if math.Float32frombits(bits) != 0 {
				data[0] = 1
			}
		},
	},
}

// whole converts the bits of an f32 to an integer and limits it to the range from lo to hi.
func whole(bits uint32, lo, hi float64) int {
	v := float64(math.Float32frombits(bits))
	if math.IsNaN(v) {
		return 0
	}
	return int(min(max(v, lo), hi))
}

// deviceType returns the type in which the device stores elements of type t.
func deviceType(t pte.Type) (graph.DType, bool) {
	e, ok := elements[t]
	return e.device, ok
}

// toDevice converts elements of a file or of an input to the 32-bit words that the device stores. The result
// may be the slice data itself.
func toDevice(t pte.Type, data []byte) ([]byte, error) {
	e, ok := elements[t]
	if !ok {
		return nil, &TypeError{t}
	}
	if t == pte.Float32 || t == pte.Int32 {
		return data, nil
	}
	size := e.numpy.Size()
	out := make([]byte, 0, len(data)/size*4)
	for i := 0; i+size <= len(data); i += size {
		bits, ok := e.read(data[i:])
		if !ok {
			return nil, fmt.Errorf("element %d (%s) does not fit the 32 bits that the device stores",
				i/size, t)
		}
		out = binary.LittleEndian.AppendUint32(out, bits)
	}
	return out, nil
}

// fromDevice converts 32-bit words of the device to elements of type t. The result may be the slice words
// itself.
func fromDevice(t pte.Type, words []byte) ([]byte, error) {
	e, ok := elements[t]
	if !ok {
		return nil, &TypeError{t}
	}
	if t == pte.Float32 || t == pte.Int32 {
		return words, nil
	}
	size := e.numpy.Size()
	out := make([]byte, len(words)/4*size)
	for i := range len(words) / 4 {
		e.write(out[i*size:], binary.LittleEndian.Uint32(words[4*i:]))
	}
	return out, nil
}

// halved returns a function that loads f32 numbers with `load` and returns them as f16 numbers.
func halved(load func() ([]byte, error)) func() ([]byte, error) {
	return func() ([]byte, error) {
		data, err := load()
		if err != nil {
			return nil, err
		}
		out := make([]byte, 0, len(data)/2)
		for word := range slices.Chunk(data, 4) {
			half := float16.Fromfloat32(math.Float32frombits(binary.LittleEndian.Uint32(word)))
			out = binary.LittleEndian.AppendUint16(out, half.Bits())
		}
		return out, nil
	}
}
