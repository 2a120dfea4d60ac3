// Package gguf reads GGUF files, versions 2 and 3, little-endian: metadata and tensors, as llama.cpp and its
// converters write them. The layout is that of the specification at
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
//
//	f, err := gguf.Open("model.gguf")
//	layers, err := f.Int("llama.block_count")
//	t, err := f.Tensor("token_embd.weight") // t.Type, t.Dims = [rows, cols]
//	data, err := t.Bytes()
//
// A file is not trusted. Every count, length, offset and product is checked against what the file holds
// before it is used, nothing is allocated by a number that the file states, and damage is one error that
// names the file, the thing, the value and the limit. Open maps the file into memory: tensor bytes are read
// from disk when they are used.
package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"gpuscope/internal/mapfile"
)

// File is an open GGUF file. Its methods may be called from any goroutine, Close excepted.
type File struct {
	Version   int // 2 or 3
	Alignment int // of tensor data, in bytes

	name    string
	keys    []string // in the order of the file
	values  map[string]Value
	tensors []*Tensor // in the order of the file
	byName  map[string]*Tensor

	from   *mapfile.File
	others []*File // of a split model: the parts after the first, which this is then
}

// Open maps a file into memory and reads its metadata and tensor list. The file must not be cut shorter while
// it is open. Where it cannot be mapped it stays open, and a tensor is read when its bytes are asked for.
// Of a model that is split over files any of them may be given: the File is the whole.
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

// Parse reads a file that is in memory already. The File keeps data, which must not change. Errors start with
// name.
func Parse(data []byte, name string) (*File, error) {
	return read(mapfile.Of(data), cmp.Or(name, "GGUF data"))
}

// Metadata and tensor list take maxHead at most; the largest vocabularies are under 32 MiB. Of a file that
// cannot be mapped they are read into memory: as much as they take up to a power of two.
const (
	firstHead = 1 << 20
	maxHead   = 1 << 28
)

// read takes the file over: it is closed where there is an error.
func read(from *mapfile.File, name string) (*File, error) {
	f, err := readHead(from)
	if err != nil {
		_ = from.Close() // what is wrong with the file is what to say
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

// Is reports whether a file begins as GGUF files do.
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

// Name is the path or name that the file was opened by.
func (f *File) Name() string { return f.name }

// Close gives the mapping or the file back. What Tensor.Bytes gave must not be used after it, and it gives
// nothing more; the file is left without metadata and tensors.
func (f *File) Close() error {
	others := f.others
	f.keys, f.values, f.tensors, f.byName, f.others = nil, nil, nil, nil, nil
	err := f.from.Close()
	for _, part := range others {
		err = errors.Join(err, part.Close())
	}
	return err
}

// Tensors are all tensors in the order of the file. The slice must not be changed.
func (f *File) Tensors() []*Tensor { return f.tensors }

// HasTensor says whether there is a tensor of this name.
func (f *File) HasTensor(name string) bool { return f.byName[name] != nil }

// Tensor finds a tensor by its name.
func (f *File) Tensor(name string) (*Tensor, error) {
	if t := f.byName[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s: tensor %q is missing (the file has %d tensors)", f.name, name, len(f.tensors))
}

const maxInt = int64(^uint(0) >> 1)
