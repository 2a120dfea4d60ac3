// Package compress compresses files, and recognizes compressed files by their first bytes.
package compress

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Method is a way to compress a file. To add one, add it to Methods.
type Method struct {
	Name   string
	Suffix string // suffix of the names of compressed files
	magic  string // first bytes of every compressed file
	reader func(io.Reader) (io.Reader, error)
	writer func(io.Writer) (Writer, error)
}

// Writer compresses what is written to it. Flush writes out all data so far. If the file is truncated after
// this point, the data up to there can still be decompressed.
type Writer interface {
	io.WriteCloser
	Flush() error
}

// maxZstdWindow is the maximum number of bytes of decompressed data to which a zstd file may refer back. The
// decompressor holds that many bytes in memory.
const maxZstdWindow = 64 << 20

// Gzip is the method of gzip.
var Gzip = &Method{
	Name: "gzip", Suffix: ".gz", magic: "\x1f\x8b",
	reader: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	writer: func(w io.Writer) (Writer, error) { return gzip.NewWriter(w), nil },
}

// Methods lists all methods.
var Methods = []*Method{
	Gzip,
	{
		Name: "zstd", Suffix: ".zst", magic: "\x28\xb5\x2f\xfd",
		reader: func(r io.Reader) (io.Reader, error) {
			// With a concurrency of 1, the decoder starts no goroutine that would have to be stopped.
			return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		},
		writer: func(w io.Writer) (Writer, error) {
			return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		},
	},
}

// CutSuffix removes the suffix of a method from the name of a file. It also returns the method, or nil if the
// name has no such suffix.
func CutSuffix(name string) (string, *Method) {
	for _, m := range Methods {
		if bare, ok := strings.CutSuffix(name, m.Suffix); ok {
			return bare, m
		}
	}
	return name, nil
}

// NewWriter returns a writer that compresses what is written to it, and writes the result to w.
func (m *Method) NewWriter(w io.Writer) (Writer, error) { return m.writer(w) }

// NewReader returns a reader of the decompressed data. It also returns the method, or nil if the data is not
// compressed.
func NewReader(r io.Reader) (in *bufio.Reader, by *Method, err error) {
	in = bufio.NewReaderSize(r, 1<<16)
	start, _ := in.Peek(4)
	for _, m := range Methods {
		if !bytes.HasPrefix(start, []byte(m.magic)) {
			continue
		}
		z, err := m.reader(in)
		if err != nil {
			return nil, m, fmt.Errorf("%s: %w", m.Name, err)
		}
		return bufio.NewReaderSize(z, 1<<16), m, nil
	}
	return in, nil, nil
}
