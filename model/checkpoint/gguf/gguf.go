// Package gguf reads the metadata and the tensors of GGUF files, the model format of llama.cpp and its
// converters. It supports versions 2 and 3 of the format, little-endian. The specification of the format is
// at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
//
//	f, err := gguf.Open("model.gguf")
//	layers, err := f.Int("llama.block_count")
//	t, err := f.Tensor("token_embd.weight") // t.Type, t.Dims = [rows, cols]
//	data, err := t.Bytes()
//
// The package does not trust the file. It checks every count, length, offset and product against the size of
// the file before it uses the number. A number in the file never decides how much memory is allocated. The
// error for a damaged file names the file, the damaged item, its value and the limit. Open maps the file into
// memory, so tensor bytes are read from disk only when they are used.
package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"gpuscope/internal/mapfile"
)

// File is an open GGUF file. All methods except Close are safe for concurrent use.
type File struct {
	Version   int // format version, 2 or 3
	Alignment int // alignment of the tensor data in bytes

	name    string
	keys    []string // metadata keys in file order
	values  map[string]Value
	tensors []*Tensor // tensors in file order
	byName  map[string]*Tensor

	from *mapfile.File
	// others holds the other parts of a split model. This File is the first part.
	others []*File
}

// Open maps a file into memory and reads its metadata and tensor list. The file must not be truncated while
// it is open. If the file cannot be mapped, Open keeps a file handle and Tensor.Bytes reads from the file.
// For a model that is split over several files, path may name any of the files. The returned File then
// contains the whole model.
func Open(path string) (*File, error) {
	f, err := openOne(path)
	if err != nil {
		return nil, err
	}
	return f.join()
}

func openOne(path string) (*File, error) {
	from, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	return read(from, path)
}

// Parse reads a GGUF file whose bytes are already in memory. The returned File keeps a reference to data, so
// the caller must not modify data. Error messages start with `name`.
func Parse(data []byte, name string) (*File, error) {
	return read(mapfile.Of(data), cmp.Or(name, "GGUF data"))
}

// firstHead and maxHead limit the number of bytes that are read for the metadata and the tensor list. The
// largest known vocabularies take less than 32 MiB. If the file cannot be mapped, these bytes are copied into
// memory: readHead starts with firstHead bytes and doubles the number until parsing succeeds.
const (
	firstHead = 1 << 20
	maxHead   = 1 << 28
)

// read takes ownership of the file and closes it if an error occurs.
func read(from *mapfile.File, name string) (*File, error) {
	f, err := readHead(from)
	if err != nil {
		_ = from.Close() // return only the parse error, which tells the user more
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.name, f.from = name, from
	return f, nil
}

func readHead(from *mapfile.File) (*File, error) {
	for n := int64(firstHead); ; n *= 2 {
		head, err := from.Head(n)
		if err != nil {
			return nil, err
		}
		f, err := parse(head[:min(len(head), maxHead)], from.Size())
		if !errors.Is(err, errHead) || n >= maxHead {
			return f, err
		}
	}
}

// Is reports whether a file starts with the magic bytes of GGUF. It returns false if the file cannot be read.
func Is(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == "GGUF"
}

// Name returns the path given to Open or the name given to Parse. For a split model it returns the path of
// the first part.
func (f *File) Name() string { return f.name }

// Close unmaps or closes the file, and the other parts of a split model. Slices returned by Tensor.Bytes must
// not be used after Close, and further calls of Tensor.Bytes return an error. A closed File has no metadata
// and no tensors.
func (f *File) Close() error {
	others := f.others
	f.keys, f.values, f.tensors, f.byName, f.others = nil, nil, nil, nil, nil
	err := f.from.Close()
	for _, part := range others {
		err = errors.Join(err, part.Close())
	}
	return err
}

// Tensors returns all tensors in file order. The caller must not modify the slice.
func (f *File) Tensors() []*Tensor { return f.tensors }

// HasTensor reports whether the file contains a tensor with the given name.
func (f *File) HasTensor(name string) bool { return f.byName[name] != nil }

// Tensor returns the tensor with the given name, or an error if the file contains no such tensor.
func (f *File) Tensor(name string) (*Tensor, error) {
	if t := f.byName[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s: tensor %q is missing (the file has %d tensors)", f.name, name, len(f.tensors))
}

const maxInt = int64(^uint(0) >> 1)
