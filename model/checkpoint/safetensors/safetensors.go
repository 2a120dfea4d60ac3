// Package safetensors reads safetensors files: the length of a header as 8 bytes, the header as JSON, and the
// bytes of the tensors, as https://github.com/huggingface/safetensors has the format; and the folders of
// several such files that model.safetensors.index.json lists.
//
//	f, err := safetensors.OpenFolder("Llama-3.2-1B")
//	for _, t := range f.Tensors() { // t.DType, t.Dims = [rows, cols]
//		data, err := t.Bytes()
//	}
//
// A file is not trusted: the length of the header, every dtype, dim, product and offset is checked against
// what the file holds before it is used, and damage is one error that names the file, the thing, the value
// and the limit. Tensor bytes are mapped, and read from disk when they are used.
package safetensors

import (
	"encoding/binary"
	"fmt"

	"gpuscope/internal/mapfile"
	"gpuscope/internal/printable"
)

// File is an open file. Its methods may be called from any goroutine, Close excepted.
type File struct {
	name     string
	from     *mapfile.File
	tensors  []*Tensor // in the order of their bytes
	metadata []Pair
}

// Pair is a key of the header's __metadata__ with its value.
type Pair struct{ Key, Value string }

// Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	DType string // as the header has it: "BF16"
	Dims  []int  // row-major, outermost first; none for a scalar

	file   *File
	offset int64 // of the first byte, from the start of the file
	size   int   // bytes, which the file has been found to hold
}

// Size is the number of bytes.
func (t *Tensor) Size() int { return t.size }

// Bytes are the tensor's elements, little-endian. They may lie in the file's mapping: they must not be
// changed, nor used after File.Close. To ask for them after it is an error.
func (t *Tensor) Bytes() ([]byte, error) {
	data, err := t.file.from.Bytes(t.offset, t.size)
	if err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", t.file.name, short(t.Name), err)
	}
	return data, nil
}

// Open maps a file into memory and reads its header. The file must not be cut shorter while it is open.
func Open(path string) (*File, error) {
	from, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	return read(from, path)
}

// Parse reads a file that is in memory already. The File keeps data, which must not change. Errors start with
// name.
func Parse(data []byte, name string) (*File, error) { return read(mapfile.Of(data), name) }

// read takes the file over: it is closed where there is an error.
func read(from *mapfile.File, name string) (*File, error) {
	f := &File{name: name, from: from}
	if err := f.read(); err != nil {
		_ = from.Close() // what is wrong with the file is what to say
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// maxHeader is what the format allows a header at most.
const maxHeader = 100_000_000

const lengthBytes = 8

func (f *File) read() error {
	size := f.from.Size()
	if size < lengthBytes {
		return fmt.Errorf("%d bytes are no safetensors file: fetch it again", size)
	}
	length, err := f.from.Bytes(0, lengthBytes)
	if err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(length)
	switch {
	case n > maxHeader:
		return fmt.Errorf("a header of %d bytes, at most %d are allowed: not a safetensors file, or damaged",
			n, maxHeader)
	case int64(n) > size-lengthBytes:
		return fmt.Errorf("a header of %d bytes ends after the file's %d: it is cut short or damaged, fetch it again",
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

// Name is the path or name that the file was opened by.
func (f *File) Name() string { return f.name }

// Tensors are all tensors in the order of their bytes. The slice must not be changed.
func (f *File) Tensors() []*Tensor { return f.tensors }

// Metadata are the pairs of the header's __metadata__ in its order.
func (f *File) Metadata() []Pair { return f.metadata }

// Close gives the mapping back. What Tensor.Bytes gave must not be used after it, and it gives nothing more.
func (f *File) Close() error { return f.from.Close() }

// short is a name of the file as an error has it.
func short(name string) string { return printable.Short(name, 80) }
