package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Compression is a way to compress the file of a trace. To add one, add it to compressions.
type Compression struct {
	Name   string
	Suffix string // suffix of the file name, after that of the format
	magic  string // first bytes of every compressed file
	reader func(io.Reader) (io.Reader, error)
	writer func(io.Writer) (compressor, error)
}

// compressor compresses what is written to it. Flush writes out all data so far. If the file is truncated
// after this point, the data up to there can still be decompressed.
type compressor interface {
	io.WriteCloser
	Flush() error
}

// maxZstdWindow is the maximum number of bytes of decompressed data to which a zstd file may refer back. The
// decompressor holds that many bytes in memory.
const maxZstdWindow = 64 << 20

var gzipped = &Compression{
	Name: "gzip", Suffix: ".gz", magic: "\x1f\x8b",
	reader: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	writer: func(w io.Writer) (compressor, error) { return gzip.NewWriter(w), nil },
}

var compressions = []*Compression{
	gzipped,
	{
		Name: "zstd", Suffix: ".zst", magic: "\x28\xb5\x2f\xfd",
		reader: func(r io.Reader) (io.Reader, error) {
			// With a concurrency of 1, the decoder starts no goroutine that would have to be stopped.
			return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		},
		writer: func(w io.Writer) (compressor, error) {
			return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		},
	},
}

// cutCompression removes the suffix of a compression from the name of a file. It also returns the
// compression, or nil if the name has no such suffix.
func cutCompression(name string) (string, *Compression) {
	for _, c := range compressions {
		if bare, ok := strings.CutSuffix(name, c.Suffix); ok {
			return bare, c
		}
	}
	return name, nil
}

// decompressed returns a reader of the decompressed data. It also returns the compression, or nil if the data
// is not compressed.
func decompressed(r io.Reader) (in *bufio.Reader, by *Compression, err error) {
	in = bufio.NewReaderSize(r, 1<<16)
	start, _ := in.Peek(4)
	for _, c := range compressions {
		if !bytes.HasPrefix(start, []byte(c.magic)) {
			continue
		}
		z, err := c.reader(in)
		if err != nil {
			return nil, c, fmt.Errorf("%s: %w", c.Name, err)
		}
		return bufio.NewReaderSize(z, 1<<16), c, nil
	}
	return in, nil, nil
}
