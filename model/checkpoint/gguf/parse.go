package gguf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unicode"
	"unicode/utf8"

	"gpuscope/internal/printable"
)

// A GGUF file consists of:
//
//   - the magic bytes
//   - the version (u32), the tensor count (u64) and the metadata pair count (u64)
//   - the metadata pairs: key, value type (u32), value
//   - the tensor infos: name, number of dims (u32), dims (u64 each), type (u32), offset (u64)
//   - padding to the alignment
//   - the tensor data
//
// A string is stored as its length (u64) and its bytes. A tensor's offset counts from the start of the tensor
// data.
const (
	magic            = "GGUF"
	minVersion       = 2
	maxVersion       = 3
	defaultAlignment = 32
	alignmentKey     = "general.alignment"
	maxDims          = 4
	maxNesting       = 4 // depth of nested arrays, which the specification allows but no known file has

	minPairBytes   = 8 + 4 + 1     // a pair with an empty key and a one-byte value
	minTensorBytes = 8 + 4 + 4 + 8 // a tensor with an empty name and no dims

	// maxElements limits the elements of a tensor so that its size in bytes fits an int64 for every type.
	maxElements = math.MaxInt64 / 8

	// maxPairs and maxTensors limit the memory that a File needs. The size of the file alone does not limit
	// it enough: a key or a tensor takes more bytes in memory than in the file. No known model has nearly as
	// many keys or tensors.
	maxPairs   = 1 << 16
	maxTensors = 1 << 17
)

// errHead means that the metadata and the tensor list do not end within the bytes that were read from the
// file. readHead then reads more bytes, up to maxHead.
var errHead = fmt.Errorf("the metadata and the tensor list take more than %d MiB, more than any known model needs: the file is damaged", maxHead>>20)

// parse reads the metadata and the tensor list. `data` holds the first bytes of the file, and `size` is the
// number of bytes of the whole file.
func parse(data []byte, size int64) (*File, error) {
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return nil, errors.New(looksLike(data))
	}
	r := &reader{data: data, size: size, off: len(magic)}
	version := r.u32("the version")
	if r.err == nil && (version < minVersion || version > maxVersion) {
		return nil, badVersion(version)
	}
	f := &File{
		Version: int(version), Alignment: defaultAlignment, values: map[string]Value{},
		byName: map[string]*Tensor{},
	}
	tensors := r.count("tensor count", minTensorBytes)
	pairs := r.count("metadata pair count", minPairBytes)
	switch {
	case r.err != nil:
		return nil, r.err
	case pairs > maxPairs || tensors > maxTensors:
		return nil, fmt.Errorf("the file declares %d metadata pairs and %d tensors, but at most %d pairs and %d tensors are allowed: the file is damaged",
			pairs, tensors, maxPairs, maxTensors)
	}
	for i := range pairs {
		if err := f.readPair(r); err != nil {
			return nil, fmt.Errorf("metadata pair %d of %d: %w", i+1, pairs, err)
		}
	}
	if err := f.readAlignment(); err != nil {
		return nil, err
	}
	infos := make([]info, 0, 64)
	for i := range tensors {
		in, err := f.readInfo(r)
		if err != nil {
			return nil, fmt.Errorf("tensor %d of %d: %w", i+1, tensors, err)
		}
		infos = append(infos, in)
	}
	if err := f.place(infos, size, r.off); err != nil {
		return nil, err
	}
	return f, nil
}

// short makes a name from the file printable and limits its length, for use in error messages.
func short(name string) string { return printable.Short(name, 80) }

func badVersion(version uint32) error {
	if swapped := bits.ReverseBytes32(version); swapped >= 1 && swapped <= maxVersion {
		return fmt.Errorf("the file is a big-endian GGUF file (version %d). Convert it to little-endian with gguf_convert_endian.py of llama.cpp", swapped)
	}
	return fmt.Errorf("GGUF version %d is not supported. Versions %d to %d are supported. Convert the original model again with a current llama.cpp", version, minVersion, maxVersion)
}

func (f *File) readPair(r *reader) error {
	name := r.name("the key")
	if r.err != nil {
		return r.err
	}
	if _, double := f.values[name]; double {
		return fmt.Errorf("key %q occurs twice", short(name))
	}
	value, err := r.value(Kind(r.u32("the value's type")), 0)
	if err != nil {
		return fmt.Errorf("key %q: %w", short(name), err)
	}
	f.keys = append(f.keys, name)
	f.values[name] = value
	return nil
}

func (f *File) readAlignment() error {
	alignment, err := f.UintOr(alignmentKey, defaultAlignment)
	if err != nil {
		return err
	}
	if bits.OnesCount64(alignment) != 1 || alignment > math.MaxInt32 {
		return fmt.Errorf("%s is %d; it must be a power of two up to 2^30", alignmentKey, alignment)
	}
	f.Alignment = int(alignment)
	return nil
}

// info is an entry of the tensor list, as read from the file. The method place checks its offset and its size
// later.
type info struct {
	*Tensor
	offset uint64 // from the start of the tensor data
	bytes  uint64 // size of the tensor; 0 for an unknown type
}

func (f *File) readInfo(r *reader) (info, error) {
	name := r.name("the name")
	if r.err != nil {
		return info{}, r.err
	}
	in, err := readShape(r)
	if err != nil {
		return info{}, fmt.Errorf("%q: %w", short(name), err)
	}
	if f.byName[name] != nil {
		return info{}, fmt.Errorf("the tensor name %q occurs twice", short(name))
	}
	in.Name, in.file = name, f
	f.byName[name] = in.Tensor
	f.tensors = append(f.tensors, in.Tensor)
	return in, nil
}

func readShape(r *reader) (info, error) {
	rank := r.u32("the number of dims")
	if r.err == nil && rank > maxDims {
		return info{}, fmt.Errorf("the tensor has %d dims, but the maximum is %d", rank, maxDims)
	}
	t := &Tensor{Dims: make([]int, rank)}
	elements := uint64(1)
	for i := range t.Dims {
		dim := r.u64("a dim")
		if r.err != nil {
			return info{}, r.err
		}
		if dim == 0 {
			return info{}, fmt.Errorf("dim %d has size 0; the minimum size is 1", i)
		}
		hi, lo := bits.Mul64(elements, dim)
		if hi != 0 || lo > uint64(min(maxElements, maxInt)) {
			return info{}, fmt.Errorf("dim %d has size %d, which makes the number of elements too large",
				i, dim)
		}
		elements = lo
		t.Dims[len(t.Dims)-1-i] = int(dim)
	}
	t.Type = Type(r.u32("the type"))
	offset := r.u64("the offset")
	if r.err != nil {
		return info{}, r.err
	}
	blockLen, blockBytes := uint64(t.Type.BlockLen()), uint64(t.Type.BlockBytes())
	if blockLen == 0 { // the type is unknown, so place derives the size from the offset of the next tensor
		return info{Tensor: t, offset: offset}, nil
	}
	row := 1
	if rank > 0 {
		row = t.Dims[rank-1]
	}
	if uint64(row)%blockLen != 0 {
		return info{},
			fmt.Errorf("each row has %d elements, but type %s needs a multiple of its block length %d",
				row, t.Type, blockLen)
	}
	hi, bytes := bits.Mul64(elements/blockLen, blockBytes)
	if hi != 0 {
		return info{}, fmt.Errorf("the tensor has %d elements of type %s, so its size in bytes is too large",
			elements, t.Type)
	}
	return info{Tensor: t, offset: offset, bytes: bytes}, nil
}

// place sets the file offset and the size of every tensor. It returns an error if a tensor lies outside the
// file or overlaps another tensor. `end` is the file offset at which the tensor list ends.
func (f *File) place(infos []info, fileSize int64, end int) error {
	if len(infos) == 0 {
		return nil // a file without tensors may end without padding
	}
	alignment := uint64(f.Alignment)
	start := (uint64(end) + alignment - 1) / alignment * alignment
	size := uint64(fileSize)
	for _, in := range infos {
		if in.offset%alignment != 0 {
			return fmt.Errorf("tensor %q: offset %d is not a multiple of the alignment %d", short(in.Name),
				in.offset, alignment)
		}
		if start > size || in.offset > size-start || in.bytes > size-start-in.offset {
			return fmt.Errorf("tensor %q (%s %s, %d bytes at offset %d) extends past the end of the file (%d bytes): the file is truncated or damaged. Download it again",
				short(in.Name), in.Type, printable.Dims(in.Dims), in.bytes, in.offset, size)
		}
		in.Offset, in.size = int64(start+in.offset), int(in.bytes)
	}
	slices.SortStableFunc(infos, func(a, b info) int { return cmp.Compare(a.offset, b.offset) })
	for i := range infos {
		in, end := infos[i], size-start
		if in.Type.Known() {
			continue
		}
		if i+1 < len(infos) {
			end = infos[i+1].offset
		}
		in.size = int(end - in.offset)
	}
	for i := 1; i < len(infos); i++ {
		before, in := infos[i-1], infos[i]
		if before.offset+before.bytes > in.offset {
			return fmt.Errorf("tensors %q and %q overlap: the first ends at offset %d, the second starts at %d",
				short(before.Name), short(in.Name), before.offset+before.bytes, in.offset)
		}
	}
	return nil
}

// reader reads values from the bytes of a file, one after the other. It keeps its first error in err. After
// an error, all reads return zero values.
type reader struct {
	data []byte // the start of the file
	size int64  // size of the whole file in bytes
	off  int    // offset of the next byte to read
	err  error
}

// rest returns the number of bytes from the current offset to the end of the file.
func (r *reader) rest() uint64 { return uint64(r.size - int64(r.off)) }

// take returns the next n bytes and advances past them. `what` names the item in error messages.
func (r *reader) take(n uint64, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n > r.rest() {
		r.err = fmt.Errorf("the file ends at byte %d, before the end of %s (%d bytes at byte %d): the file is truncated or damaged. Download it again", r.size, what, n, r.off)
		return nil
	}
	if n > uint64(len(r.data)-r.off) {
		r.err = errHead
		return nil
	}
	b := r.data[r.off : r.off+int(n) : r.off+int(n)]
	r.off += int(n)
	return b
}

func (r *reader) u32(what string) uint32 {
	if b := r.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64(what string) uint64 {
	if b := r.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) string(what string) []byte { return r.take(r.u64(what), what) }

// maxName is the maximum length of a key or a tensor name in bytes. The specification sets this limit for
// keys.
const maxName = 1<<16 - 1

// `name` reads a string that is a metadata key or a tensor name. It rejects control characters, so that a
// printed name cannot send escape sequences to the terminal.
func (r *reader) name(what string) string {
	at := r.off
	b := r.string(what)
	if r.err == nil && len(b) > maxName {
		r.err = fmt.Errorf("%s at byte %d is %d bytes long, but the maximum is %d: the file is damaged", what,
			at, len(b), maxName)
		return ""
	}
	if r.err == nil && (len(b) == 0 || !utf8.Valid(b) || bytes.ContainsFunc(b, unicode.IsControl)) {
		r.err = fmt.Errorf("%s at byte %d is %+.40q, which is empty or not printable UTF-8: the file is damaged", what, at, b)
	}
	return string(b)
}

// count reads how many items follow (a u64). It returns an error if the rest of the file is too short for
// that many items of `minBytes` bytes each.
func (r *reader) count(what string, minBytes uint64) uint64 {
	at := r.off
	n := r.u64(what)
	if rest := r.rest(); r.err == nil && n > rest/minBytes {
		r.err = fmt.Errorf("%s at byte %d is %d, but the rest of the file has room for at most %d: the file is truncated or damaged. Download it again", what, at, n, rest/minBytes)
		return 0
	}
	return n
}

// value reads a value of the given kind without decoding it. `depth` is the number of arrays that contain the
// value.
func (r *reader) value(kind Kind, depth int) (Value, error) {
	if r.err != nil {
		return Value{}, r.err
	}
	v := Value{Kind: kind}
	switch size := kind.size(); {
	case size > 0:
		v.raw = r.take(uint64(size), "the value")
		if kind == KindBool && r.err == nil && v.raw[0] > 1 {
			return Value{}, fmt.Errorf("the bool at byte %d has value %d; it must be 0 or 1",
				r.off-1, v.raw[0])
		}
	case kind == KindString:
		v.raw = r.string("the string")
	case kind == KindArray:
		return r.array(depth)
	default:
		return Value{},
			fmt.Errorf("value type %d at byte %d is unknown: the file is damaged or newer than GGUF version %d",
				uint32(kind), r.off-4, maxVersion)
	}
	return v, r.err
}

func (r *reader) array(depth int) (Value, error) {
	if depth == maxNesting {
		return Value{}, fmt.Errorf("arrays are nested more than %d levels deep", maxNesting)
	}
	v := Value{Kind: KindArray, Elem: Kind(r.u32("the array's element type"))}
	if r.err == nil && !v.Elem.known() {
		return Value{},
			fmt.Errorf("array element type %d at byte %d is unknown: the file is damaged or newer than GGUF version %d", uint32(v.Elem), r.off-4, maxVersion)
	}
	n := r.count("the array's length", uint64(v.Elem.minSize()))
	start := r.off
	size := v.Elem.size()
	if size == 0 && n > maxList { // elements are read one by one, so a longer array would take too long
		return Value{}, fmt.Errorf("an array has %d values of type %s, but the maximum length is %d", n,
			v.Elem, maxList)
	}
	if size > 0 && v.Elem != KindBool {
		r.take(n*uint64(size), "the array") // cannot overflow: count compared n with the size of the file
	} else {
		for range n {
			if _, err := r.value(v.Elem, depth+1); err != nil {
				return Value{}, err
			}
		}
	}
	if r.err != nil {
		return Value{}, r.err
	}
	v.Len, v.raw = int(n), r.data[start:r.off:r.off]
	return v, nil
}
