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

// dtypes maps each dtype of the format to the size of an element in bits.
var dtypes = map[string]uint64{
	"BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F16": 16, "BF16": 16,
	"F32": 32, "F64": 64, "C64": 64,
}

// The limits of a header. They are far above the numbers in real files.
const (
	maxTensors  = 1 << 17
	maxRank     = 8       // dims of a tensor
	maxMetadata = 1 << 20 // size of the __metadata__ object in bytes
)

// metadataKey is the only key of a header that does not name a tensor.
const metadataKey = "__metadata__"

// entry is the description of one tensor in a header.
type entry struct {
	DType string  `json:"dtype"`
	Shape numbers `json:"shape"`
	// DataOffsets holds the offset of the tensor's first byte and the offset just past its last byte, both
	// counted from the end of the header.
	DataOffsets numbers `json:"data_offsets"`
}

// numbers is a list of at most maxRank numbers.
type numbers []uint64

// UnmarshalJSON decodes the list. It first counts the elements, so that no memory is allocated for a list
// that is too long.
func (n *numbers) UnmarshalJSON(data []byte) error {
	if count := bytes.Count(data, []byte(",")) + 1; count > maxRank {
		return fmt.Errorf("a list has %d numbers, but the maximum is %d", count, maxRank)
	}
	return json.Unmarshal(data, (*[]uint64)(n))
}

// parse reads the tensors and the metadata from the header. `rest` is the number of bytes after the header.
// The offsets that it stores in the tensors still count from the end of the header.
func (f *File) parse(header []byte, rest int64) error {
	if len(header) == 0 || header[0] != '{' {
		return fmt.Errorf("the header starts with %+.8q instead of {: the file is damaged or not a safetensors file",
			header)
	}
	if !utf8.Valid(header) {
		return errors.New("the header is not valid UTF-8: the file is damaged")
	}
	if err := readjson.Check(header); err != nil {
		return headerError(err)
	}
	d := json.NewDecoder(bytes.NewReader(header))
	if _, err := d.Token(); err != nil { // the opening brace
		return headerError(err)
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return headerError(err)
		}
		name := key.(string) // object keys are always strings
		if seen[name] {
			return fmt.Errorf("the header key %q occurs twice", short(name))
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
	return fmt.Errorf("invalid header: %w: the file is damaged. Download it again", readjson.Error(err, nil))
}

func (f *File) readMetadata(d *json.Decoder) error {
	var said json.RawMessage
	if err := d.Decode(&said); err != nil {
		return headerError(err)
	}
	if len(said) > maxMetadata {
		return fmt.Errorf("the header key %s has %d bytes, but the maximum is %d. Save the model without %s",
			metadataKey, len(said), maxMetadata, metadataKey)
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
		return fmt.Errorf("tensor name %q is empty or not printable: the file is damaged", short(name))
	}
	if len(f.tensors) == maxTensors {
		return fmt.Errorf("the file has too many tensors: the maximum is %d", maxTensors)
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

// tensor checks an entry and converts it to a Tensor. The tensor must fit into the bytes after the header.
// `rest` is the number of these bytes.
func (e *entry) tensor(rest uint64) (*Tensor, error) {
	size, ok := dtypes[e.DType]
	switch {
	case !ok:
		return nil, fmt.Errorf("dtype %q is unknown. Update gpuscope, or save the model as BF16",
			short(e.DType))
	case len(e.DataOffsets) != 2 || e.DataOffsets[0] > e.DataOffsets[1]:
		return nil, fmt.Errorf("data_offsets is %s; want [start, end] with start <= end",
			printable.Short(printable.Dims(e.DataOffsets), 40))
	case e.DataOffsets[1] > rest:
		return nil, fmt.Errorf("the tensor ends at byte %d of the tensor data, but the file has only %d bytes of tensor data: the file is truncated or damaged. Download it again",
			e.DataOffsets[1], rest)
	}
	t := &Tensor{DType: e.DType, Dims: make([]int, len(e.Shape))}
	elements := uint64(1)
	for i, dim := range e.Shape {
		hi, lo := bits.Mul64(elements, dim)
		if hi != 0 || lo > math.MaxInt/64 || dim > math.MaxInt/64 {
			return nil, fmt.Errorf("dim %d has size %d, which makes the number of elements too large", i, dim)
		}
		elements, t.Dims[i] = lo, int(dim)
	}
	have := e.DataOffsets[1] - e.DataOffsets[0]
	if elements*size%8 != 0 || elements*size/8 != have {
		return nil, fmt.Errorf("the tensor has %d bytes, but type %s with shape %s needs %d", have, e.DType,
			printable.Dims(t.Dims), (elements*size+7)/8)
	}
	t.offset, t.size = int64(e.DataOffsets[0]), int(have)
	return t, nil
}

// place sorts the tensors by their offset in the file. The format allows neither overlaps nor unused bytes,
// so place returns an error if the tensors overlap or do not fill the file.
func (f *File) place(rest int64) error {
	slices.SortStableFunc(f.tensors, func(a, b *Tensor) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.size, b.size))
	})
	var end int64
	var before string
	for _, t := range f.tensors {
		switch {
		case t.offset < end:
			return fmt.Errorf("tensors %q and %q overlap: the first ends at byte %d of the tensor data, but the second starts at byte %d",
				short(before), short(t.Name), end, t.offset)
		case t.offset > end:
			return fmt.Errorf("bytes %d to %d of the tensor data (before tensor %q) belong to no tensor: the file is damaged",
				end, t.offset, short(t.Name))
		}
		end, before = t.offset+int64(t.size), t.Name
	}
	if end != rest {
		return fmt.Errorf("%d extra bytes after the last tensor: the file is damaged", rest-end)
	}
	return nil
}
