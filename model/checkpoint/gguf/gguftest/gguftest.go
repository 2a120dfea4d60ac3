// Package gguftest writes small GGUF files for tests: tiny models with their metadata, tokenizer and weights,
// and files that are wrong on purpose.
//
//	b := gguftest.New()
//	b.Set("general.architecture", "llama")
//	b.Set("llama.block_count", uint32(1))
//	b.F32("output_norm.weight", []int{64}, norm)
//	b.Q4_0("blk.0.attn_q.weight", []int{64, 64}, weights)
//	b.ByteTokenizer(288)
//	f, err := gguf.Parse(b.Bytes(), "tiny.gguf")
//
// A mistake of the test itself (a slice of the wrong length, a value that GGUF has no type for) panics.
package gguftest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"

	"github.com/x448/float16"

	"gpuscope/model/checkpoint/gguf"
	"gpuscope/text/tokenizer"
)

// Builder collects what a file shall hold.
type Builder struct {
	Version   uint32 // 3 unless changed
	Alignment int    // of tensor data, 32 unless changed; general.alignment is written where it is not 32

	pairs   []pair
	tensors []tensor
}

type pair struct {
	key   string
	value any
}

type tensor struct {
	name string
	typ  gguf.Type
	dims []int
	data []byte
	size int // that the file says, where it is not that of data
}

// New is an empty file.
func New() *Builder { return &Builder{Version: 3, Alignment: 32} }

// Set puts a metadata value under a key, in place of the one that is there. Values are bool, string, integers
// of 8 to 64 bits, floats, and slices of these; slices of slices are nested arrays. A plain int is written as
// uint32, or int32 where it is negative, and []int as int32: the types that real files use.
func (b *Builder) Set(key string, value any) {
	for i := range b.pairs {
		if b.pairs[i].key == key {
			b.pairs[i].value = value
			return
		}
	}
	b.Add(key, value)
}

// Keys are the metadata keys.
func (b *Builder) Keys() []string {
	keys := make([]string, len(b.pairs))
	for i, p := range b.pairs {
		keys[i] = p.key
	}
	return keys
}

// Remove takes a key away, if it is there.
func (b *Builder) Remove(key string) {
	b.pairs = slices.DeleteFunc(b.pairs, func(p pair) bool { return p.key == key })
}

// Tensors is the number of tensors.
func (b *Builder) Tensors() int { return len(b.tensors) }

// Reshape makes the file say other dims and another type of a tensor, whose bytes stay as they are.
func (b *Builder) Reshape(i int, dims func([]int) []int, typ gguf.Type) {
	b.tensors[i].dims, b.tensors[i].typ = dims(b.tensors[i].dims), typ
}

// Add is Set without the look for a key that is there: so a test gets one twice.
func (b *Builder) Add(key string, value any) {
	b.pairs = append(b.pairs, pair{key, value})
}

// Tensor adds a tensor of any type with its bytes as they are. Dims are row-major, [rows, cols].
func (b *Builder) Tensor(name string, typ gguf.Type, dims []int, data []byte) {
	b.tensors = append(b.tensors, tensor{name: name, typ: typ, dims: slices.Clone(dims), data: data})
}

// Hollow adds a tensor whose bytes are nowhere: WriteSparse leaves a hole for it, which reads as zeros. So
// models of any size can be planned without their weights.
func (b *Builder) Hollow(name string, typ gguf.Type, dims []int) {
	size := typ.BlockBytes()
	for _, d := range dims {
		size *= d
	}
	b.tensors = append(b.tensors,
		tensor{name: name, typ: typ, dims: slices.Clone(dims), size: size / typ.BlockLen()})
}

// WriteSparse writes the file with holes in place of the tensors' bytes.
func (b *Builder) WriteSparse(path string) error {
	out, size := b.head()
	if err := os.WriteFile(path, out, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, int64(align(len(out), b.Alignment)+size))
}

// Split is the model cut into parts of so many tensors each, as llama-gguf-split cuts one: all metadata is in
// the first. SplitName is what they are to be called.
func (b *Builder) Split(tensors ...int) []*Builder {
	parts := make([]*Builder, len(tensors))
	left := b.tensors
	for i, n := range tensors {
		part := &Builder{Version: b.Version, Alignment: b.Alignment}
		if i == 0 {
			part.pairs = slices.Clone(b.pairs)
		}
		part.Set("split.no", uint16(i))
		part.Set("split.count", uint16(len(tensors)))
		part.Set("split.tensors.count", int32(len(b.tensors)))
		part.tensors, left = slices.Clone(left[:n]), left[n:]
		parts[i] = part
	}
	return parts
}

// SplitName is the name of part i, from 0, of so many.
func SplitName(base string, i, count int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", base, i+1, count)
}

// Change changes the bytes of a tensor that is there in place.
func (b *Builder) Change(name string, change func(data []byte)) {
	i := slices.IndexFunc(b.tensors, func(t tensor) bool { return t.name == name })
	if i < 0 {
		panic(fmt.Sprintf("gguftest: there is no tensor %q to change", name))
	}
	change(b.tensors[i].data)
}

// F32 adds a tensor of floats.
func (b *Builder) F32(name string, dims []int, values []float32) {
	b.plain(name, gguf.F32, dims, values, func(data []byte, v float32) []byte {
		return binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	})
}

// F16 adds a tensor of halves, rounded to the nearest.
func (b *Builder) F16(name string, dims []int, values []float32) {
	b.plain(name, gguf.F16, dims, values, func(data []byte, v float32) []byte {
		return binary.LittleEndian.AppendUint16(data, half(v))
	})
}

// BF16 adds a tensor of bfloat16, cut to the upper half.
func (b *Builder) BF16(name string, dims []int, values []float32) {
	b.plain(name, gguf.BF16, dims, values, func(data []byte, v float32) []byte {
		return binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
	})
}

func (b *Builder) plain(name string, typ gguf.Type, dims []int, values []float32,
	add func([]byte, float32) []byte,
) {
	mustHold(name, dims, len(values))
	var data []byte
	for _, v := range values {
		data = add(data, v)
	}
	b.Tensor(name, typ, dims, data)
}

// Q4_0 quantises floats and adds them as a tensor. What the file then holds is what gguf.Dequantize gives,
// not the floats themselves.
func (b *Builder) Q4_0(name string, dims []int, values []float32) {
	mustHold(name, dims, len(values))
	var data []byte
	for block := range slices.Chunk(values, gguf.Q4_0BlockLen) {
		// The value that is farthest from zero becomes -8, the end of the range that has one more step.
		farthest := slices.MaxFunc(block, func(a, b float32) int {
			return cmp.Compare(math.Abs(float64(a)), math.Abs(float64(b)))
		})
		scale := half(farthest / -8)
		var q [gguf.Q4_0BlockLen]int8
		if s := gguf.Float16(scale); s != 0 {
			for k, v := range block {
				q[k] = int8(min(max(math.Round(float64(v/s)), -8), 7))
			}
		}
		data = append(data, Q4_0Block(scale, q)...)
	}
	b.Tensor(name, gguf.Q4_0, dims, data)
}

// Q4_0Block is one block of exact content: weight k is q[k], in -8..7, times the half with the given bits.
func Q4_0Block(scaleBits uint16, q [gguf.Q4_0BlockLen]int8) []byte {
	block := binary.LittleEndian.AppendUint16(nil, scaleBits)
	for j := range gguf.Q4_0BlockLen / 2 {
		block = append(block, byte(q[j]+8)|byte(q[j+gguf.Q4_0BlockLen/2]+8)<<4)
	}
	return block
}

func half(v float32) uint16 { return float16.Fromfloat32(v).Bits() }

func mustHold(name string, dims []int, n int) {
	elements := 1
	for _, d := range dims {
		elements *= d
	}
	if elements != n {
		panic(fmt.Sprintf("gguftest: tensor %q of dims %v with %d values", name, dims, n))
	}
}

// ByteTokenizer sets a vocabulary of size tokens, at least 257, without merges: token 0 is <|endoftext|>, BOS
// and EOS at once and put before prompts, token 1 + b is the byte b, and the rest is unused.
func (b *Builder) ByteTokenizer(size int) {
	tokens := make([]string, size)
	kinds := make([]int32, size)
	for id := range tokens {
		tokens[id], kinds[id] = fmt.Sprintf("<|unused_%d|>", id), int32(tokenizer.Unused)
	}
	tokens[0], kinds[0] = "<|endoftext|>", int32(tokenizer.Control)
	for c := range 256 {
		tokens[1+c], kinds[1+c] = tokenizer.ByteText(byte(c)), int32(tokenizer.Normal)
	}
	b.Tokenizer("gpt-2", tokens, kinds, []string{})
	b.Set("tokenizer.ggml.bos_token_id", 0)
	b.Set("tokenizer.ggml.eos_token_id", 0)
	b.Set("tokenizer.ggml.add_bos_token", true)
}

// Tokenizer sets a byte-level BPE vocabulary: the split rule's name, the tokens and their kinds by id, and
// the merges ("Ġ t") by falling priority.
func (b *Builder) Tokenizer(pre string, tokens []string, kinds []int32, merges []string) {
	b.Set("tokenizer.ggml.model", "gpt2")
	b.Set("tokenizer.ggml.pre", pre)
	b.Set("tokenizer.ggml.tokens", tokens)
	b.Set("tokenizer.ggml.token_type", kinds)
	b.Set("tokenizer.ggml.merges", merges)
}

// Bytes is the file.
func (b *Builder) Bytes() []byte {
	out, _ := b.head()
	for _, t := range b.tensors {
		out = append(out, make([]byte, align(len(out), b.Alignment)-len(out))...)
		out = append(out, t.data...)
	}
	return out
}

// Sparse is the file up to its tensor data, which says of a tensor that it has dims so large that nobody
// writes it. The caller makes a file with holes of it.
func (b *Builder) Sparse(name string, dims []int) []byte {
	c := *b
	c.tensors = slices.Clone(b.tensors)
	for i := range c.tensors {
		if c.tensors[i].name == name {
			c.tensors[i].dims, c.tensors[i].size = dims, b.tensors[i].typ.BlockBytes()
			for _, d := range dims {
				c.tensors[i].size *= d
			}
			c.tensors[i].size /= b.tensors[i].typ.BlockLen()
		}
	}
	out, _ := c.head()
	return out
}

// head is the file up to its tensor data, and the size of that.
func (b *Builder) head() (out []byte, size int) {
	pairs := b.pairs
	if b.Alignment != 32 {
		pairs = append(slices.Clone(pairs), pair{"general.alignment", uint32(b.Alignment)})
	}
	le := binary.LittleEndian
	out = le.AppendUint32([]byte("GGUF"), b.Version)
	out = le.AppendUint64(out, uint64(len(b.tensors)))
	out = le.AppendUint64(out, uint64(len(pairs)))
	for _, p := range pairs {
		out = appendString(out, p.key)
		out = le.AppendUint32(out, uint32(kindOf(reflect.ValueOf(p.value))))
		out = appendValue(out, reflect.ValueOf(p.value))
	}
	for _, t := range b.tensors {
		out = appendString(out, t.name)
		out = le.AppendUint32(out, uint32(len(t.dims)))
		for _, d := range slices.Backward(t.dims) {
			out = le.AppendUint64(out, uint64(d))
		}
		out = le.AppendUint32(out, uint32(t.typ))
		out = le.AppendUint64(out, uint64(size))
		size = align(size+max(len(t.data), t.size), b.Alignment)
	}
	return out, size
}

func align(n, alignment int) int { return (n + alignment - 1) / alignment * alignment }

func appendString(out []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(out, uint64(len(s))), s...)
}

// kinds maps Go's kinds to GGUF's; int is not among them, see kindOf.
var kinds = map[reflect.Kind]gguf.Kind{
	reflect.Uint8: gguf.KindUint8, reflect.Int8: gguf.KindInt8, reflect.Uint16: gguf.KindUint16,
	reflect.Int16:  gguf.KindInt16,
	reflect.Uint32: gguf.KindUint32, reflect.Int32: gguf.KindInt32, reflect.Uint64: gguf.KindUint64,
	reflect.Int64:   gguf.KindInt64,
	reflect.Float32: gguf.KindFloat32, reflect.Float64: gguf.KindFloat64, reflect.Bool: gguf.KindBool,
	reflect.String: gguf.KindString,
	reflect.Slice:  gguf.KindArray,
}

func kindOf(v reflect.Value) gguf.Kind {
	if v.Kind() == reflect.Int && v.Int() >= 0 {
		return gguf.KindUint32
	}
	return kindOfType(v.Type())
}

func kindOfType(t reflect.Type) gguf.Kind {
	if t.Kind() == reflect.Int {
		return gguf.KindInt32
	}
	kind, ok := kinds[t.Kind()]
	if !ok {
		panic(fmt.Sprintf("gguftest: GGUF has no type for %v", t))
	}
	return kind
}

func appendValue(out []byte, v reflect.Value) []byte {
	le := binary.LittleEndian
	switch v.Kind() {
	case reflect.String:
		return appendString(out, v.String())
	case reflect.Slice:
		out = le.AppendUint32(out, uint32(kindOfType(v.Type().Elem())))
		out = le.AppendUint64(out, uint64(v.Len()))
		for i := range v.Len() {
			out = appendValue(out, v.Index(i))
		}
		return out
	case reflect.Int:
		return le.AppendUint32(out, uint32(v.Int()))
	}
	out, err := binary.Append(out, le, v.Interface())
	if err != nil {
		panic(err)
	}
	return out
}
