// Package mapfile gives the bytes of a file that is only read. They lie in a mapping, so that they come from
// disk when they are used; where a system or a file system has none, each part is read when it is asked for.
package mapfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// File is an open file, which must not be cut shorter while it is open. Its methods may be called from any
// goroutine, Close excepted.
type File struct {
	size int64
	// Bytes are in data, or where the file could not be mapped they are read from file.
	data   []byte
	file   *os.File
	mapped bool // data is, and Close must give it back
	closed bool
}

// Open opens a file, which must be a regular one. Errors name it.
func Open(path string) (*File, error) { return open(path, mapFile) }

// OpenUnmapped is Open where no file can be mapped, for tests.
func OpenUnmapped(path string) (*File, error) {
	return open(path, func(*os.File, int) ([]byte, error) { return nil, os.ErrInvalid })
}

// Of is a file that is in memory already. It keeps data, which must not change.
func Of(data []byte) *File { return &File{data: data, size: int64(len(data))} }

func open(path string, mapFile func(*os.File, int) ([]byte, error)) (*File, error) {
	file, info, err := Regular(path)
	if err != nil {
		return nil, err
	}
	f := &File{size: info.Size(), file: file}
	if f.size == 0 || f.size > math.MaxInt { // what no system maps
		return f, nil
	}
	if f.data, err = mapFile(file, int(f.size)); err != nil {
		f.data = nil
		return f, nil
	}
	file.Close() // the mapping stays
	f.file, f.mapped = nil, true
	return f, nil
}

// Regular opens a file for reading that must be a regular one. What is said of it is of the open file,
// whatever has its name by then. Opening waits for nothing, as that of a pipe would. Errors name it.
func Regular(path string) (*os.File, os.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|doNotWait, 0)
	if err != nil {
		return nil, nil, err // *PathError names the operation, the file and the cause
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file but %s", path, kind(info.Mode()))
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// kind says what it is that is no regular file.
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

// Read is all of a regular file, which may have so many bytes at most. Errors name it.
func Read(path string, most int64) ([]byte, error) {
	file, info, err := Regular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := bytes.NewBuffer(make([]byte, 0, min(info.Size(), most)+bytes.MinRead))
	_, err = data.ReadFrom(io.LimitReader(file, most+1)) // it may grow, or not say its size
	if size := max(info.Size(), int64(data.Len())); err == nil && size > most {
		err = fmt.Errorf("%s: it has %d bytes or more, and no such file should have over %d", path, size,
			most)
	}
	if err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// Size is how many bytes the file has.
func (f *File) Size() int64 { return f.size }

// Head is the start of the file: n bytes or more, or all there are.
func (f *File) Head(n int64) ([]byte, error) {
	if f.file == nil {
		return f.data, nil
	}
	return f.read(0, int(min(n, f.size)))
}

// Bytes are n bytes from a place on. They must not be changed, nor used after Close.
func (f *File) Bytes(at int64, n int) ([]byte, error) {
	switch {
	case f.closed:
		return nil, fmt.Errorf("bytes were asked for after the file was closed: %w", os.ErrClosed)
	case at < 0 || n < 0 || at > f.size || int64(n) > f.size-at:
		return nil, fmt.Errorf("%d bytes at %d are not in a file of %d", n, at, f.size)
	case f.file == nil:
		end := at + int64(n)
		return f.data[at:end:end], nil
	}
	if err := hasRoom(2 * n); err != nil { // packing makes a copy
		return nil, fmt.Errorf("no memory for %d bytes, and the file cannot be mapped: %w", n, err)
	}
	return f.read(at, n)
}

func (f *File) read(at int64, n int) ([]byte, error) {
	data := make([]byte, n)
	_, err := f.file.ReadAt(data, at)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the file ends before byte %d and had %d when it was opened: it was cut short since, open it again",
			at+int64(n), f.size)
	}
	if err != nil {
		return nil, fmt.Errorf("read %d bytes at %d: %w", n, at, err)
	}
	return data, nil
}

// Close gives the mapping or the file back. Closing twice does nothing.
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
