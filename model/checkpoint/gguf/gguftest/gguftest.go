// Package gguftest writes small GGUF files for tests. The files can be tiny models with metadata, tokenizer
// and weights, or deliberately invalid files.
//
//	b := gguftest.New()
//	b.Set("general.architecture", "llama")
//	b.Set("llama.block_count", uint32(1))
//	b.F32("output_norm.weight", []int{64}, norm)
//	b.Q4_0("blk.0.attn_q.weight", []int{64, 64}, weights)
//	b.ByteTokenizer(288)
//	f, err := gguf.Parse(b.Bytes(), "tiny.gguf")
//
// The functions panic if a test misuses them. Examples are a slice of the wrong length, and a value that GGUF
// has no type for.
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

// Builder collects the metadata and the tensors of a file.
type Builder struct {
	Version uint32 // format version; New sets it to 3
	// Alignment is the alignment of the tensor data in bytes. New sets it to 32. Any other value is written
	// to the file as general.alignment.
	Alignment int

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
	size int // size of the tensor in bytes, if data does not hold all of its bytes
}

// New returns a Builder for an empty file.
func New() *Builder { return &Builder{Version: 3, Alignment: 32} }

// Set sets the metadata value of a key and replaces an existing value. The value is a bool, a string, an
// integer of 8 to 64 bits, a float, or a slice of these. A slice of slices becomes a nested array. Set
// follows the conventions of real files for int values: it writes an int as uint32, or as int32 if it is
// negative, and []int as an array of int32.
func (b *Builder) Set(key string, value any) {
	for i := range b.pairs {
		if b.pairs[i].key == key {
			b.pairs[i].value = value
			return
		}
	}
	b.Add(key, value)
}

// Keys returns the metadata keys in file order.
func (b *Builder) Keys() []string {
	keys := make([]string, len(b.pairs))
	for i, p := range b.pairs {
		keys[i] = p.key
	}
	return keys
}

// Remove removes a key. It does nothing if the key does not exist.
func (b *Builder) Remove(key string) {
	b.pairs = slices.DeleteFunc(b.pairs, func(p pair) bool { return p.key == key })
}

// Tensors returns the number of tensors.
func (b *Builder) Tensors() int { return len(b.tensors) }

// Reshape changes the dims and the type that the file states for tensor i. It does not change the bytes of
// the tensor.
func (b *Builder) Reshape(i int, dims func([]int) []int, typ gguf.Type) {
	b.tensors[i].dims, b.tensors[i].typ = dims(b.tensors[i].dims), typ
}

// Add adds a metadata pair without a check for an existing key. A test can write a duplicate key with Add.
func (b *Builder) Add(key string, value any) {
	b.pairs = append(b.pairs, pair{key, value})
}

// Tensor adds a tensor of any type. `data` holds the encoded bytes of the tensor. `dims` are row-major:
// [rows, cols].
func (b *Builder) Tensor(name string, typ gguf.Type, dims []int, data []byte) {
	b.tensors = append(b.tensors, tensor{name: name, typ: typ, dims: slices.Clone(dims), data: data})
}

// Hollow adds a tensor without data. WriteSparse writes a hole for the tensor's bytes, which reads as zeros.
// Tests can therefore plan models of any size without weights.
func (b *Builder) Hollow(name string, typ gguf.Type, dims []int) {
	size := typ.BlockBytes()
	for _, d := range dims {
		size *= d
	}
	b.tensors = append(b.tensors,
		tensor{name: name, typ: typ, dims: slices.Clone(dims), size: size / typ.BlockLen()})
}

// WriteSparse writes the file to `path` with a hole in place of the tensor data.
func (b *Builder) WriteSparse(path string) error {
	out, size := b.head()
	if err := os.WriteFile(path, out, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, int64(align(len(out), b.Alignment)+size))
}

// Split splits the model into parts in the same way as llama-gguf-split. `tensors` lists the number of
// tensors of each part. The first part has all metadata. SplitName returns the file names of the parts.
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

// SplitName returns the file name of part i of a model that is split into count parts. Parts count from 0.
func SplitName(base string, i, count int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", base, i+1, count)
}

// Change calls the function `change` to modify the bytes of an existing tensor in place.
func (b *Builder) Change(name string, change func(data []byte)) {
	i := slices.IndexFunc(b.tensors, func(t tensor) bool { return t.name == name })
	if i < 0 {
		panic(fmt.Sprintf("gguftest: cannot change tensor %q: no such tensor", name))
	}
	change(b.tensors[i].data)
}

// F32 adds a tensor of type F32.
func (b *Builder) F32(name string, dims []int, values []float32) {
	b.plain(name, gguf.F32, dims, values, func(data []byte, v float32) []byte {
		return binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	})
}

// F16 adds a tensor of type F16. It rounds each value to the nearest F16 number.
func (b *Builder) F16(name string, dims []int, values []float32) {
	b.plain(name, gguf.F16, dims, values, func(data []byte, v float32) []byte {
		return binary.LittleEndian.AppendUint16(data, half(v))
	})
}

// BF16 adds a tensor of type BF16. It truncates each value to the upper 16 bits of the float32.
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

// Q4_0 quantizes values and adds a tensor of type Q4_0. Quantization is lossy, so gguf.Dequantize returns
// values that differ from the arguments.
func (b *Builder) Q4_0(name string, dims []int, values []float32) {
	mustHold(name, dims, len(values))
	var data []byte
	for block := range slices.Chunk(values, gguf.Q4_0BlockLen) {
		// The value with the largest magnitude becomes -8, because the range -8..7 has one more step on the
		// negative side.
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

// Q4_0Block encodes one block of Q4_0. Weight k is q[k] times the scale. Each q[k] is in -8..7. `scaleBits`
// are the bits of the scale as an IEEE 754 half-precision number.
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
		panic(fmt.Sprintf("gguftest: tensor %q: dims %v do not match %d values", name, dims, n))
	}
}

// ByteTokenizer sets a vocabulary without merges. `size` is the number of tokens. It must be at least 257.
// Token 0 is <|endoftext|>, which is both BOS and EOS and is added before prompts. Token 1 + b is the byte
// b. All other tokens are unused.
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

// Tokenizer sets a byte-level BPE vocabulary. `pre` is the name of the rule that splits text before BPE.
// `tokens` and `kinds` hold the token texts and the token kinds, indexed by token id. `merges` lists the
// merges, such as "Ġ t", from the highest to the lowest priority.
func (b *Builder) Tokenizer(pre string, tokens []string, kinds []int32, merges []string) {
	b.Set("tokenizer.ggml.model", "gpt2")
	b.Set("tokenizer.ggml.pre", pre)
	b.Set("tokenizer.ggml.tokens", tokens)
	b.Set("tokenizer.ggml.token_type", kinds)
	b.Set("tokenizer.ggml.merges", merges)
}

// Bytes returns the contents of the file.
func (b *Builder) Bytes() []byte {
	out, _ := b.head()
	for _, t := range b.tensors {
		out = append(out, make([]byte, align(len(out), b.Alignment)-len(out))...)
		out = append(out, t.data...)
	}
	return out
}

// Sparse returns the start of the file, up to the tensor data. In the tensor list, the tensor `name` has the
// shape `dims`. This shape may be too large for a file with data, so the caller makes a sparse file from the
// returned bytes.
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

// head returns the start of the file, up to the tensor data, and the size of the tensor data in bytes.
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

// kinds maps Go kinds to GGUF kinds. It does not contain int, which kindOf and kindOfType handle.
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
