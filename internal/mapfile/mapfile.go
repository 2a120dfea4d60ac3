// Package mapfile provides read-only access to the bytes of a file. It maps the file into memory, so that
// the system loads bytes from disk on first use. If the system or file system does not support mapping, the
// package reads each requested part from the file.
package mapfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// File is an open file. The file must not be truncated while it is open. Any goroutine may call the methods
// of a File, except for Close.
type File struct {
	size int64
	// data holds the mapped bytes. If the file could not be mapped, data is nil and the bytes are read from
	// `file`.
	data   []byte
	file   *os.File
	mapped bool // data is a mapping that Close must unmap
	closed bool
}

// Open opens a regular file. Errors contain the path.
func Open(path string) (*File, error) { return open(path, mapFile) }

// OpenUnmapped opens a file like Open but never maps it. It is for tests.
func OpenUnmapped(path string) (*File, error) {
	return open(path, func(*os.File, int) ([]byte, error) { return nil, os.ErrInvalid })
}

// Of returns a File of bytes in memory. It keeps data, which must not change.
func Of(data []byte) *File { return &File{data: data, size: int64(len(data))} }

func open(path string, mapFile func(*os.File, int) ([]byte, error)) (*File, error) {
	file, info, err := Regular(path)
	if err != nil {
		return nil, err
	}
	f := &File{size: info.Size(), file: file}
	if f.size == 0 || f.size > math.MaxInt { // no system can map such a file
		return f, nil
	}
	if f.data, err = mapFile(file, int(f.size)); err != nil {
		f.data = nil
		return f, nil
	}
	file.Close() // the mapping stays valid without the open file
	f.file, f.mapped = nil, true
	return f, nil
}

// Regular opens a regular file for reading. The returned FileInfo describes the open file, even if the path
// refers to a different file by then. Regular never blocks, not even if the path is a pipe. Errors contain
// the path.
func Regular(path string) (*os.File, os.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|doNotWait, 0)
	if err != nil {
		return nil, nil, err // *PathError contains the operation, the path and the cause
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w but %s", path, errNotRegular, kind(info.Mode()))
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

var errNotRegular = errors.New("not a regular file")

// kind describes a file that is not a regular file.
func kind(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&os.ModeDevice != 0:
		return "a device"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe"
	case mode&os.ModeSocket != 0:
		return "a socket"
	}
	return mode.Type().String()
}

// Read returns the contents of a regular file of at most the given number of bytes. Errors contain the
// path.
func Read(path string, most int64) ([]byte, error) {
	file, info, err := Regular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := bytes.NewBuffer(make([]byte, 0, min(info.Size(), most)+bytes.MinRead))
	_, err = data.ReadFrom(io.LimitReader(file, most+1)) // the file may grow or may not report its size
	if size := max(info.Size(), int64(data.Len())); err == nil && size > most {
		err = fmt.Errorf("%s: the file has at least %d bytes; the maximum is %d", path, size,
			most)
	}
	if err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return f.size }

// Head returns at least the first n bytes of the file, or the whole file if it is shorter.
func (f *File) Head(n int64) ([]byte, error) {
	if f.file == nil {
		return f.data, nil
	}
	return f.read(0, int(min(n, f.size)))
}

// Bytes returns n bytes, starting at the given offset. The caller must not change the bytes and must not use
// them after Close.
func (f *File) Bytes(at int64, n int) ([]byte, error) {
	switch {
	case f.closed:
		return nil, fmt.Errorf("read from a closed file: %w", os.ErrClosed)
	case at < 0 || n < 0 || at > f.size || int64(n) > f.size-at:
		return nil, fmt.Errorf("cannot read %d bytes at offset %d: the file has only %d bytes", n, at, f.size)
	case f.file == nil:
		end := at + int64(n)
		return f.data[at:end:end], nil
	}
	if err := hasRoom(2 * n); err != nil { // packing weights needs a copy
		return nil, fmt.Errorf("cannot allocate %d bytes for a file that cannot be memory-mapped: %w", n, err)
	}
	return f.read(at, n)
}

func (f *File) read(at int64, n int) ([]byte, error) {
	data := make([]byte, n)
	_, err := f.file.ReadAt(data, at)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the file now ends before byte %d, but it had %d bytes when it was opened. Open it again",
			at+int64(n), f.size)
	}
	if err != nil {
		return nil, fmt.Errorf("read %d bytes at offset %d: %w", n, at, err)
	}
	return data, nil
}

// Close unmaps or closes the file. Calling Close again does nothing.
func (f *File) Close() error {
	data, file, mapped := f.data, f.file, f.mapped
	*f = File{closed: true}
	switch {
	case file != nil:
		return file.Close()
	case mapped:
		return unmap(data)
	}
	return nil
}
