package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
)

// dtypes are the bits of an element, of each type that the format knows.
var dtypes = map[string]uint64{
	"BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F16": 16, "BF16": 16,
	"F32": 32, "F64": 64, "C64": 64,
}

// Bounds that no file comes near.
const (
	maxTensors  = 1 << 17
	maxRank     = 8
	maxMetadata = 1 << 20 // bytes of it
)

// metadataKey is the one key of a header that is no tensor.
const metadataKey = "__metadata__"

// entry is a tensor as a header has it.
type entry struct {
	DType       string  `json:"dtype"`
	Shape       numbers `json:"shape"`
	DataOffsets numbers `json:"data_offsets"` // first byte and past the last, from the end of the header
}

// numbers are a short list: what is longer than any entry has is not kept.
type numbers []uint64

// UnmarshalJSON reads the list.
func (n *numbers) UnmarshalJSON(data []byte) error {
	if count := bytes.Count(data, []byte(",")) + 1; count > maxRank {
		return fmt.Errorf("a list of %d numbers, at most %d are read", count, maxRank)
	}
	return json.Unmarshal(data, (*[]uint64)(n))
}

// parse reads a header, after which the file has rest bytes. Offsets of tensors count from its end.
func (f *File) parse(header []byte, rest int64) error {
	if len(header) == 0 || header[0] != '{' {
		return fmt.Errorf("the header begins with %+.8q, want {: not a safetensors file, or damaged", header)
	}
	if !utf8.Valid(header) {
		return errors.New("the header is not UTF-8: the file is damaged")
	}
	if err := readjson.Check(header); err != nil {
		return headerError(err)
	}
	d := json.NewDecoder(bytes.NewReader(header))
	if _, err := d.Token(); err != nil { // the brace
		return headerError(err)
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return headerError(err)
		}
		name := key.(string) // no other token is a key of an object
		if seen[name] {
			return fmt.Errorf("%q is there twice", short(name))
		}
		seen[name] = true
		if name == metadataKey {
			err = f.readMetadata(d)
		} else {
			err = f.readEntry(d, name, rest)
		}
		if err != nil {
			return err
		}
	}
	return f.place(rest)
}

func headerError(err error) error {
	return fmt.Errorf("the header is not as the format has it: %w: the file is damaged, fetch it again",
		readjson.Error(err, nil))
}

func (f *File) readMetadata(d *json.Decoder) error {
	var said json.RawMessage
	if err := d.Decode(&said); err != nil {
		return headerError(err)
	}
	if len(said) > maxMetadata {
		return fmt.Errorf("%s has %d bytes, at most %d are read: save the model without it", metadataKey,
			len(said), maxMetadata)
	}
	var pairs map[string]string
	if err := json.Unmarshal(said, &pairs); err != nil {
		return headerError(err)
	}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		f.metadata = append(f.metadata, Pair{key, pairs[key]})
	}
	return nil
}

func (f *File) readEntry(d *json.Decoder, name string, rest int64) error {
	if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("a tensor has the name %q, want printable text: the file is damaged", short(name))
	}
	if len(f.tensors) == maxTensors {
		return fmt.Errorf("more than %d tensors", maxTensors)
	}
	var e entry
	if err := d.Decode(&e); err != nil {
		return fmt.Errorf("tensor %q: %w", short(name), headerError(err))
	}
	t, err := e.tensor(uint64(rest))
	if err != nil {
		return fmt.Errorf("tensor %q: %w", short(name), err)
	}
	t.Name = name
	f.tensors = append(f.tensors, t)
	return nil
}

// tensor is the tensor of an entry, with its place in rest bytes.
func (e *entry) tensor(rest uint64) (*Tensor, error) {
	size, ok := dtypes[e.DType]
	switch {
	case !ok:
		return nil, fmt.Errorf("dtype %q is unknown: update gpuscope, or save the model as BF16",
			short(e.DType))
	case len(e.DataOffsets) != 2 || e.DataOffsets[0] > e.DataOffsets[1]:
		return nil, fmt.Errorf("data_offsets %s, want [first, past the last]",
			printable.Short(printable.Dims(e.DataOffsets), 40))
	case e.DataOffsets[1] > rest:
		return nil, fmt.Errorf("it ends at byte %d of the data, which has %d: the file is cut short or damaged, fetch it again",
			e.DataOffsets[1], rest)
	}
	t := &Tensor{DType: e.DType, Dims: make([]int, len(e.Shape))}
	elements := uint64(1)
	for i, dim := range e.Shape {
		hi, lo := bits.Mul64(elements, dim)
		if hi != 0 || lo > math.MaxInt/64 || dim > math.MaxInt/64 {
			return nil, fmt.Errorf("dim %d is %d: more elements than can be counted", i, dim)
		}
		elements, t.Dims[i] = lo, int(dim)
	}
	have := e.DataOffsets[1] - e.DataOffsets[0]
	if elements*size%8 != 0 || elements*size/8 != have {
		return nil, fmt.Errorf("%d bytes for %s %s, want %d", have, e.DType, printable.Dims(t.Dims),
			(elements*size+7)/8)
	}
	t.offset, t.size = int64(e.DataOffsets[0]), int(have)
	return t, nil
}

// place brings the tensors into the order of their bytes, which must fill the file: the format allows neither
// overlap nor gaps.
func (f *File) place(rest int64) error {
	slices.SortStableFunc(f.tensors, func(a, b *Tensor) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.size, b.size))
	})
	var end int64
	var before string
	for _, t := range f.tensors {
		switch {
		case t.offset < end:
			return fmt.Errorf("tensors %q and %q share bytes: the first ends at %d of the data, the second starts at %d",
				short(before), short(t.Name), end, t.offset)
		case t.offset > end:
			return fmt.Errorf("bytes %d to %d of the data, before tensor %q, belong to no tensor: the file is damaged",
				end, t.offset, short(t.Name))
		}
		end, before = t.offset+int64(t.size), t.Name
	}
	if end != rest {
		return fmt.Errorf("%d bytes after the last tensor belong to none: the file is damaged", rest-end)
	}
	return nil
}
