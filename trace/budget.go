package trace

import (
	"bytes"
	"fmt"
	"io"
)

// What a file may cost is bounded before it is spent: a few kilobytes of gzip can hold gigabytes of nothing,
// and three bytes of JSON become a record of hundreds. There are four bounds. White space between values is
// squeezed out as it is read, and may be no more than a few times what is not. The text without it has an
// end. A single value has one too, and is looked over for how much memory it may take before it is decoded.
// And all that is kept is counted: it may be as much as any trace needs, and more for a file that is itself
// large. While a trace is read the program takes about three times what it keeps.
type bounds struct {
	memory int64 // of a trace that has been read, beside memoryRate times its file
	value  int64 // of JSON, for one value: a step, a plan, a field of the head
	idle   int64 // of white space, beside idleRate times the rest
}

const (
	memoryRate = 4 // a recording takes 1.5 to 3 times its JSON in memory
	jsonRate   = 3 // so many times the memory is all the JSON that may come
	idleRate   = 4
)

var usualBounds = bounds{memory: 384 << 20, value: 128 << 20, idle: 64 << 20}

// file is what a source reads in the end, before it is decompressed.
type file struct {
	r      io.Reader
	size   int64 // read so far
	zipped bool
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.size += int64(n)
	return n, err
}

// source reads JSON with one space in place of all white space between two values.
type source struct {
	r      io.Reader
	file   *file
	bounds bounds
	quotes
	spaced      bool  // the last byte was white space
	read        int64 // bytes so far, and of them
	text, space int64
	idle        int64 // text that was of no use, with what it costs to find that out
	left        int64 // of the value that is read now
	err         error
}

// next reports that another value begins.
func (s *source) next() { s.left = s.bounds.value }

// ignored reports that the value before was of no use. What is small takes its time too.
func (s *source) ignored(n int) {
	s.text -= int64(n)
	s.idle += int64(n) + recordBytes
}

// memory is how much a trace may hold, from what has been read of its file.
func (s *source) memory() int64 { return s.bounds.memory + memoryRate*s.file.size }

// offset is about where in the file a byte of the squeezed text stands.
func (s *source) offset(of int64) int64 { return of + s.space }

// place is a byte of the text for people. Of a file that is gzipped it is not one of the file.
func (s *source) place(near string, at int64) string {
	if s.file.zipped {
		return fmt.Sprintf("%s byte %d of what was unpacked", near, at)
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
			s.err = fmt.Errorf("a value has more than %s of JSON", mib(s.bounds.value))
		case s.text > jsonRate*s.memory():
			s.err = fmt.Errorf("more than %s of JSON: %s", mib(jsonRate*s.memory()), s.remedy())
		case s.space+s.idle > s.bounds.idle+idleRate*s.text:
			s.err = fmt.Errorf("%s of it are white space and unknown records, %s are not",
				mib(s.space+s.idle), mib(s.text))
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, s.err
}

// squeeze takes white space out of what was read, in place, and returns how much is left.
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

// estimate is about the most memory that JSON takes when it is decoded: the largest record for each object, a
// string's or a list's header for each element.
func estimate(raw []byte) int64 {
	return 2*int64(len(raw)) + recordBytes*int64(bytes.Count(raw, []byte("{"))) +
		elementBytes*int64(bytes.Count(raw, []byte(","))+bytes.Count(raw, []byte("[")))
}

const recordBytes, elementBytes = 256, 48

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// remedy says what to do with a file that is too large.
func (s *source) remedy() string {
	if s.text > 2*s.file.size {
		return "gunzip it first (the limit is higher then), or record fewer steps"
	}
	return "record fewer steps"
}

// spend counts memory that is kept.
func (d *decoder) spend(n int64) error {
	if d.used += n; d.used > d.in.memory() {
		return d.tooLarge()
	}
	return nil
}

func (d *decoder) tooLarge() error {
	return fmt.Errorf("the trace needs more than %s of memory; %s", mib(d.in.memory()), d.in.remedy())
}

// fits refuses a value that would take too much memory when it is decoded.
func (d *decoder) fits(raw []byte) error {
	if estimate(raw) > d.in.memory() {
		return d.tooLarge()
	}
	return nil
}
