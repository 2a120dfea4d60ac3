package trace

import (
	"bytes"
	"fmt"
	"io"
)

// bounds limits the resources that one file may consume. A limit applies before the resource is consumed. A
// few kilobytes of gzip can expand to gigabytes of white space, and three bytes of JSON can become a record
// of hundreds of bytes.
//
// There are four limits:
//   - White space between values is removed while reading. The white space may be a few times as long as
//     the rest of the file.
//   - The text without white space has a maximum length.
//   - A single value has a maximum length. Its memory is estimated before it is decoded.
//   - The memory of all data that is kept is counted. The limit suffices for any trace and grows with the
//     size of the file.
//
// While it reads a trace, the program uses about three times the memory of the trace itself.
type bounds struct {
	memory int64 // limit on the bytes of a trace in memory; memoryRate * file size is added
	value  int64 // limit on the bytes of JSON of one value: a step, a plan, or a field of the head
	idle   int64 // limit on the bytes of white space; idleRate * the other bytes is added
}

const (
	memoryRate = 4 // a recording needs 1.5 to 3 times its JSON in memory
	jsonRate   = 3 // limit on the bytes of JSON, as a multiple of the memory limit
	idleRate   = 4
)

var usualBounds = bounds{memory: 384 << 20, value: 128 << 20, idle: 64 << 20}

// file is the underlying reader of a source, before decompression.
type file struct {
	r      io.Reader
	size   int64 // bytes read so far
	zipped bool
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.size += int64(n)
	return n, err
}

// source reads JSON and replaces each run of white space between two values by one space.
type source struct {
	r      io.Reader
	file   *file
	bounds bounds
	quotes
	spaced bool // the last byte was white space
	// read is the number of bytes read so far; text and space are its parts.
	read        int64
	text, space int64
	idle        int64 // bytes of ignored values, plus recordBytes for each ignored value
	left        int64 // bytes left for the current value
	err         error
}

// next resets the length limit for the next value.
func (s *source) next() { s.left = s.bounds.value }

// ignored counts the n bytes of the last value as ignored instead of useful text. It also adds recordBytes to
// the ignored bytes, because even a small value takes time to read.
func (s *source) ignored(n int) {
	s.text -= int64(n)
	s.idle += int64(n) + recordBytes
}

// memory returns the memory limit of the trace in bytes, based on the bytes read from the file so far.
func (s *source) memory() int64 { return s.bounds.memory + memoryRate*s.file.size }

// offset converts an offset in the squeezed text to an approximate offset in the file.
func (s *source) offset(of int64) int64 { return of + s.space }

// place describes a byte offset in words. For a gzipped file the offset refers to the decompressed data.
func (s *source) place(near string, at int64) string {
	if s.file.zipped {
		return fmt.Sprintf("%s byte %d of the decompressed data", near, at)
	}
	return fmt.Sprintf("%s byte %d", near, at)
}

func (s *source) Read(p []byte) (int, error) {
	for s.err == nil && len(p) > 0 {
		n, err := s.r.Read(p)
		s.read += int64(n)
		n = s.squeeze(p[:n])
		s.text += int64(n)
		s.left -= int64(n)
		switch {
		case err != nil:
			s.err = err
		case s.left < 0:
			s.err = fmt.Errorf("a single JSON value exceeds the limit of %s", mib(s.bounds.value))
		case s.text > jsonRate*s.memory():
			s.err = fmt.Errorf("the JSON text of the trace exceeds the limit of %s: %s",
				mib(jsonRate*s.memory()), s.remedy())
		case s.space+s.idle > s.bounds.idle+idleRate*s.text:
			s.err = fmt.Errorf("white space and unknown records fill %s, which is too much beside %s of other data",
				mib(s.space+s.idle), mib(s.text))
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, s.err
}

// squeeze removes redundant white space from p in place and returns the number of remaining bytes.
func (s *source) squeeze(p []byte) int {
	n := 0
	for i := 0; i < len(p); i++ {
		if s.quoted {
			end := s.end(p[i:])
			n += copy(p[n:], p[i:i+end])
			i += end - 1
			continue
		}
		switch c := p[i]; c {
		case ' ', '\n', '\t', '\r':
			if s.spaced {
				s.space++
				continue
			}
			s.spaced = true
			p[n] = ' '
			n++
		default:
			s.quoted, s.spaced = c == '"', false
			p[n] = c
			n++
		}
	}
	return n
}

// estimate returns an upper estimate of the memory in bytes that a JSON value needs after decoding. It
// assumes the largest record type for each object, and a string or slice header for each element.
func estimate(raw []byte) int64 {
	return 2*int64(len(raw)) + recordBytes*int64(bytes.Count(raw, []byte("{"))) +
		elementBytes*int64(bytes.Count(raw, []byte(","))+bytes.Count(raw, []byte("[")))
}

const recordBytes, elementBytes = 256, 48

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// remedy tells the user what to do about a file that is too large.
func (s *source) remedy() string {
	if s.text > 2*s.file.size {
		return "decompress the file with gunzip, which raises the limit, or record fewer steps"
	}
	return "record fewer steps"
}

// spend adds n bytes to the memory that is kept. It returns an error if the sum exceeds the limit.
func (d *decoder) spend(n int64) error {
	if d.used += n; d.used > d.in.memory() {
		return d.tooLarge()
	}
	return nil
}

func (d *decoder) tooLarge() error {
	return fmt.Errorf("the trace needs more memory than the limit of %s: %s", mib(d.in.memory()), d.in.remedy())
}

// fits returns an error if decoding the value would need more memory than the limit.
func (d *decoder) fits(raw []byte) error {
	if estimate(raw) > d.in.memory() {
		return d.tooLarge()
	}
	return nil
}
