package gguftest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"gpuscope/model/checkpoint/gguf"
)

// WriteRandom writes the file to `path` with random weights in place of the data of hollow tensors. The types
// of hollow tensors must be F32, Q4_0, Q8_0 or MXFP4. The same seed always gives the same file. The weights
// are small enough that the logits of a deep model stay finite.
func (b *Builder) WriteRandom(path string, seed uint64) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := out.Close(); err == nil {
			err = e
		}
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	w := bufio.NewWriterSize(out, 1<<20)
	head, _ := b.head()
	at := len(head)
	if _, err := w.Write(head); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range b.tensors {
		t := &b.tensors[i]
		pad := align(at, b.Alignment) - at
		if _, err := w.Write(make([]byte, pad)); err != nil {
			return err
		}
		size := max(len(t.data), t.size)
		at += pad + size
		if t.data != nil {
			if _, err := w.Write(t.data); err != nil {
				return err
			}
			continue
		}
		block, err := randomBlocks(random, t)
		if err != nil {
			return err
		}
		for ; size > 0; size -= len(block) {
			block = block[:min(size, len(block))]
			if _, err := w.Write(block); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

// outputs lists parts of the names of those matrices whose results are added to the residual stream. They get
// smaller weights, so that different tokens stay different through all layers, and routers choose different
// experts for different tokens.
var outputs = []string{"attn_output", "ffn_down", "ssm_out"}

// randomBlocks returns blocks of random weights. WriteRandom fills the tensor with repetitions of these
// blocks.
func randomBlocks(random *rand.Rand, t *tensor) ([]byte, error) {
	const blocks = 1<<14 + 1 // not a multiple of the number of blocks per row, so that rows differ
	cols := t.dims[len(t.dims)-1]
	scale := 1 / math.Sqrt(float64(cols))
	switch {
	case strings.Contains(t.name, "token_embd"):
		scale = 10
	case slices.ContainsFunc(outputs, func(part string) bool { return strings.Contains(t.name, part) }):
		scale /= 10
	}
	data := make([]byte, 0, blocks*t.typ.BlockBytes())
	half := func(x float64) []byte {
		return binary.LittleEndian.AppendUint16(nil, half(float32(x*(0.5+random.Float64()))))
	}
	for range blocks {
		switch t.typ {
		case gguf.F32:
			x := float32(scale * random.NormFloat64())
			switch {
			case strings.HasSuffix(t.name, "norm.weight"), strings.HasSuffix(t.name, "scale.weight"):
				x = float32(0.9 + 0.2*random.Float64())
			case t.name == "rope_freqs.weight":
				x = 1
			case strings.HasSuffix(t.name, "ssm_a"):
				x = -float32(0.1 + random.Float64()) // negative, because it is a decay
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			continue
		case gguf.Q4_0:
			data = append(data, half(scale/5)...) // standard deviation of the 16 levels: about 5
		case gguf.Q8_0:
			data = append(data, half(scale/74)...) // standard deviation of the 256 levels: about 74
		case gguf.MXFP4:
			exponent := math.Round(math.Log2(scale / 3)) // standard deviation of the levels: about 3
			data = append(data, byte(127+exponent)-byte(random.IntN(2)))
		default:
			return nil, fmt.Errorf("tensor %s: cannot generate random weights of type %s", t.name, t.typ)
		}
		for len(data)%t.typ.BlockBytes() != 0 {
			x := byte(random.Uint32())
			if t.typ == gguf.Q4_0 {
				// The levels are -8 to 7. Without -8 their mean is 0, so that no direction of the residual
				// stream grows from layer to layer.
				x = max(x&15, 1) | max(x>>4, 1)<<4
			}
			data = append(data, x)
		}
	}
	return data, nil
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
