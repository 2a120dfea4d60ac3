// Package gguf reads GGUF files, versions 2 and 3, little-endian: metadata and tensors, as llama.cpp and its
// converters write them. The layout is that of the specification at
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
//
//	f, err := gguf.Open("model.gguf")
//	layers, err := f.Int("llama.block_count")
//	t, err := f.Tensor("token_embd.weight") // t.Type, t.Dims = [rows, cols], t.Bytes()
//
// A file is not trusted. Every count, length, offset and product is checked against what the file holds
// before it is used, nothing is allocated by a number that the file states, and damage is one error that
// names the file, the thing, the value and the limit. Open maps the file into memory: tensor bytes are read
// from disk when they are used.
package gguf

import (
	"cmp"
	"fmt"
	"io"
	"os"
)

// File is an open GGUF file. Its methods may be called from any goroutine, Close excepted.
type File struct {
	Version   int // 2 or 3
	Alignment int // of tensor data, in bytes

	name     string
	keys     []string // in the order of the file
	values   map[string]Value
	tensors  []*Tensor // in the order of the file
	byName   map[string]*Tensor
	mappings []byte // what Close unmaps, nil where nothing is mapped
}

// Open maps a file into memory and reads its metadata and tensor list. The file must not be cut shorter while
// it is open.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err // *PathError names the operation, the file and the cause
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file (%s): give a .gguf file", path, info.Mode().Type())
	}
	if info.Size() > maxInt {
		return nil,
			fmt.Errorf("%s: %d bytes are more than this system can map (%d)", path, info.Size(), maxInt)
	}
	data, mapped, err := readable(file, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("%s: map %d bytes: %w", path, info.Size(), err)
	}
	f, err := Parse(data, path)
	if err != nil {
		if mapped {
			_ = unmap(data) // what is wrong with the file is what to say
		}
		return nil, err
	}
	if mapped {
		f.mappings = data
	}
	return f, nil
}

// Parse reads a file that is in memory already. The File keeps data, which must not change. Errors start with
// name.
func Parse(data []byte, name string) (*File, error) {
	name = cmp.Or(name, "GGUF data")
	f, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.name = name
	return f, nil
}

// Name is the path or name that the file was opened by.
func (f *File) Name() string { return f.name }

// Close gives the mapping back. Bytes of tensors must not be used after it; the file is left without metadata
// and tensors.
func (f *File) Close() error {
	data := f.mappings
	f.keys, f.values, f.tensors, f.byName, f.mappings = nil, nil, nil, nil, nil
	if data == nil {
		return nil
	}
	return unmap(data)
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

// readAll is what readable does on systems without a mapping.
func readAll(file *os.File, size int) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(file, data)
	return data, err
}

const maxInt = int64(^uint(0) >> 1)
