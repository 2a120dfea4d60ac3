// Package safetensors reads safetensors files, and models that consist of several safetensors files listed in
// model.safetensors.index.json. A safetensors file contains the length of the header in 8 bytes, the header
// as JSON, and the bytes of the tensors. The format is specified at
// https://github.com/huggingface/safetensors.
//
//	f, err := safetensors.OpenFolder("Llama-3.2-1B")
//	for _, t := range f.Tensors() { // t.DType, t.Dims = [rows, cols]
//		data, err := t.Bytes()
//	}
//
// The package does not trust the file. It checks the length of the header and every dtype, shape and offset.
// It also checks that the size of each tensor agrees with its offsets, and that the tensors fill the file
// exactly. The error for a damaged file names the file, the damaged item, its value and the limit. The file
// is mapped into memory, so tensor bytes are read from disk only when they are used.
package safetensors

import (
	"encoding/binary"
	"fmt"

	"gpuscope/internal/mapfile"
	"gpuscope/internal/printable"
)

// File is an open safetensors file. All methods except Close are safe for concurrent use.
type File struct {
	name     string
	from     *mapfile.File
	tensors  []*Tensor // sorted by offset in the file
	metadata []Pair    // sorted by key
}

// Pair is a key of the header's __metadata__ object and its value.
type Pair struct{ Key, Value string }

// Tensor is a tensor of a safetensors file.
type Tensor struct {
	Name  string
	DType string // element type in the spelling of the header, such as "BF16"
	Dims  []int  // row-major shape, outermost dim first; a scalar has no dims

	file   *File
	offset int64 // offset of the first byte from the start of the file
	size   int   // size in bytes; the header parser has checked that the file contains these bytes
}

// Size returns the size of the tensor in bytes.
func (t *Tensor) Size() int { return t.size }

// Bytes returns the elements of the tensor, little-endian. The slice may point into the memory-mapped file,
// so it must not be modified, and not be used after File.Close. After File.Close, Bytes returns an error.
func (t *Tensor) Bytes() ([]byte, error) {
	data, err := t.file.from.Bytes(t.offset, t.size)
	if err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", t.file.name, short(t.Name), err)
	}
	return data, nil
}

// Open maps a file into memory and reads its header. The file must not be truncated while it is open.
func Open(path string) (*File, error) {
	from, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	return read(from, path)
}

// Parse reads a safetensors file whose bytes are already in memory. The returned File keeps a reference to
// data, so the caller must not modify data. Error messages start with `name`.
func Parse(data []byte, name string) (*File, error) { return read(mapfile.Of(data), name) }

// read takes ownership of the file and closes it if an error occurs.
func read(from *mapfile.File, name string) (*File, error) {
	f := &File{name: name, from: from}
	if err := f.read(); err != nil {
		_ = from.Close() // return only the parse error, which tells the user more
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// maxHeader is the maximum size of a header in bytes. The format sets this limit.
const maxHeader = 100_000_000

// lengthBytes is the size of the header length at the start of the file, in bytes.
const lengthBytes = 8

func (f *File) read() error {
	size := f.from.Size()
	if size < lengthBytes {
		return fmt.Errorf("not a safetensors file: the file has %d bytes; the minimum is %d. Download it again",
			size, lengthBytes)
	}
	length, err := f.from.Bytes(0, lengthBytes)
	if err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(length)
	switch {
	case n > maxHeader:
		return fmt.Errorf("the header length is %d bytes, but the maximum is %d: the file is damaged or not a safetensors file",
			n, maxHeader)
	case int64(n) > size-lengthBytes:
		return fmt.Errorf("the header length is %d bytes, but the whole file has only %d bytes: the file is truncated or damaged. Download it again",
			n, size)
	}
	header, err := f.from.Bytes(lengthBytes, int(n))
	if err != nil {
		return err
	}
	if err := f.parse(header, size-lengthBytes-int64(n)); err != nil {
		return err
	}
	for _, t := range f.tensors {
		t.file, t.offset = f, t.offset+lengthBytes+int64(n)
	}
	return nil
}

// Name returns the path given to Open or the name given to Parse.
func (f *File) Name() string { return f.name }

// Tensors returns all tensors, sorted by their offset in the file. The caller must not modify the slice.
func (f *File) Tensors() []*Tensor { return f.tensors }

// Metadata returns the pairs of the header's __metadata__ object, sorted by key.
func (f *File) Metadata() []Pair { return f.metadata }

// Close unmaps the file. Slices returned by Tensor.Bytes must not be used after Close, and further calls of
// Tensor.Bytes return an error.
func (f *File) Close() error { return f.from.Close() }

// short makes a name from the file printable and shortens it for use in an error message.
func short(name string) string { return printable.Short(name, 80) }
