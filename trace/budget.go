package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"gpuscope/trace/internal/lexer"
)

// bounds limits the resources that reading one file may use. The limits are needed: a few compressed bytes
// can expand to gigabytes of white space, and three bytes of JSON can become a record of hundreds of bytes.
// Each limit is checked before the resource is used. There are four limits:
//
//   - White space between values is removed during reading, and it may be only a few times as long as the
//     rest of the file.
//   - The text without white space has a maximum length.
//   - Each value has a maximum length. The memory that it needs is estimated before it is decoded.
//   - The memory of all data that is kept is added up and has a maximum.
//
// The limits grow with the size of the file, and every real trace is within them. While a trace is read, the
// program uses about three times the memory that the trace itself needs.
type bounds struct {
	memory int64 // constant part of the memory limit of a trace in bytes; memoryRate * file size is added
	value  int64 // size limit of the JSON of one value: a step, a plan, or a field of the head
	idle   int64 // constant part of the limit of ignored bytes; idleRate * other bytes is added
}

const (
	memoryRate = 4 // a trace needs 1.5 to 3 times the size of its JSON in memory
	jsonRate   = 3 // size limit of the JSON text, as a multiple of the memory limit
	idleRate   = 4
)

// MemoryLimit is the memory in bytes that the data of a trace may need when Read reads it, even if the file
// is tiny. The limit of a larger file is higher.
const MemoryLimit = 384 << 20

var usualBounds = bounds{memory: MemoryLimit, value: 128 << 20, idle: 64 << 20}

// file reads the bytes of a file as they are stored, before decompression.
type file struct {
	r      io.Reader
	size   int64 // bytes read so far
	packed bool  // the file is compressed
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.size += int64(n)
	return n, err
}

// source reads JSON and shortens white space: between two values, only one space is left, or one newline if
// there was one.
type source struct {
	r      io.Reader
	file   *file
	bounds bounds
	lexer.String
	spaced byte // the last byte if it was white space: ' ' or '\n'
	// read is the number of bytes that were read. Of these, `text` bytes belong to JSON values, and `space`
	// bytes are white space that was removed.
	read        int64
	text, space int64
	idle        int64 // bytes of ignored values, plus recordBytes for each ignored value
	left        int64 // number of bytes that the current value may still use
	err         error
}

var errLong = errors.New("a single JSON value is longer than the limit")

// Next begins a new value, for which the full size limit applies.
func (s *source) Next() { s.left = s.bounds.value }

// ignored counts the last value, which has n bytes, as ignored. Its bytes move from `text` to `idle`. Another
// recordBytes bytes are added to idle, because even a small value takes time to read.
func (s *source) ignored(n int) {
	s.text -= int64(n)
	s.idle += int64(n) + recordBytes
}

// memory returns the memory limit of the trace in bytes. It grows with the number of bytes that were read
// from the file.
func (s *source) memory() int64 { return s.bounds.memory + memoryRate*s.file.size }

// Offset converts an offset in the text, from which white space was removed, to an approximate offset in the
// file.
func (s *source) Offset(of int64) int64 { return of + s.space }

// place returns a byte offset as text for an error message, after the word `near`, such as "at byte 10". In a
// compressed file, it is the offset in the decompressed data.
func (s *source) place(near string, at int64) string {
	if s.file.packed {
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
			s.err = fmt.Errorf("%w of %s", errLong, mib(s.bounds.value))
		case s.text > jsonRate*s.memory():
			s.err = fmt.Errorf("the trace has more JSON than the limit of %s: %s",
				mib(jsonRate*s.memory()), s.remedy())
		case s.space+s.idle > s.bounds.idle+idleRate*s.text:
			s.err = fmt.Errorf("the file has %s of white space and unknown records; with %s of other data, the limit for them is %s",
				mib(s.space+s.idle), mib(s.text), mib(s.bounds.idle+idleRate*s.text))
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, s.err
}

// squeeze removes white space from p that is not needed, and returns how many bytes remain. It changes p in
// place.
func (s *source) squeeze(p []byte) int {
	n := 0
	for i := 0; i < len(p); i++ {
		if s.Quoted {
			end := s.End(p[i:])
			n += copy(p[n:], p[i:i+end])
			i += end - 1
			continue
		}
		switch c := p[i]; c {
		case ' ', '\n', '\t', '\r':
			if s.spaced == '\n' || s.spaced == ' ' && c != '\n' {
				s.space++
				continue
			}
			if s.spaced = ' '; c == '\n' {
				s.spaced = c
			}
			p[n] = s.spaced
			n++
		default:
			s.Quoted, s.spaced = c == '"', 0
			p[n] = c
			n++
		}
	}
	return n
}

// estimate returns an upper limit of the memory in bytes that a JSON value needs after decoding. It assumes
// that each object is of the largest record type and that each element is a string or a slice.
func estimate(raw []byte) int64 {
	return 2*int64(len(raw)) + recordBytes*int64(bytes.Count(raw, []byte("{"))) +
		elementBytes*int64(bytes.Count(raw, []byte(","))+bytes.Count(raw, []byte("[")))
}

const recordBytes, elementBytes = 256, 48

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// remedy returns what a user can do about a trace that is too large.
func (s *source) remedy() string {
	if s.text > 2*s.file.size {
		return "decompress the file with gunzip, which raises the limit, or record fewer steps"
	}
	return "record fewer steps"
}

// spend adds n bytes to the memory that the kept data uses. It returns an error if this exceeds the limit.
func (d *decoder) spend(n int64) error {
	if d.used += n; d.used > d.in.memory() {
		return d.tooLarge()
	}
	return nil
}

func (d *decoder) tooLarge() error {
	return fmt.Errorf("the trace needs more memory than the limit of %s: %s", mib(d.in.memory()),
		d.in.remedy())
}

// fits returns an error if decoding the value would need more memory than the limit.
func (d *decoder) fits(raw []byte) error {
	if estimate(raw) > d.in.memory() {
		return d.tooLarge()
	}
	return nil
}

// SizeError is the error for a trace that exceeds a limit of Read.
type SizeError struct {
	What         string // "the trace", or the part of it that is too large
	Bytes, Limit int64  // memory that Read needs, and its limit
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s needs %s of memory, but the limit is %s", e.What, mib(e.Bytes), mib(e.Limit))
}

// CheckSize returns a SizeError if Read could refuse the trace because of its size. Read accepts a trace that
// passes in every storage format and compression. For lists in steps other than dispatches, Read may need
// more memory than CheckSize counts. An imported trace has no such lists.
func (t *Trace) CheckSize() error { return t.checkSize(usualBounds) }

func (t *Trace) checkSize(b bounds) error {
	d := &decoder{in: &source{file: &file{}, bounds: b}, t: t}
	part := func(what string, raw []byte, kept int64) error {
		d.used += kept
		d.in.text += int64(len(raw))
		switch n := estimate(raw); {
		case n > b.memory:
			return &SizeError{what, n, b.memory}
		case int64(len(raw)) > b.value:
			return &SizeError{what, int64(len(raw)), b.value}
		}
		return nil
	}
	head := *t
	head.Plans, head.Steps = nil, nil
	raw, err := encodeRecord(&head, t.Unknown)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	for name, field := range fields {
		if err := part(strconv.Quote(name), field, estimate(field)); err != nil {
			return err
		}
	}
	record := func(what string, i int, r Record, unknown *Unknown) error {
		raw, err := encodeRecord(r, unknown)
		if err != nil {
			return err
		}
		return part(fmt.Sprintf("%s %d", what, i), raw, d.kept(&r, unknown, raw))
	}
	for i := range t.Plans {
		if err := record("plan", i, Record{Plan: &t.Plans[i]}, t.Plans[i].Unknown); err != nil {
			return err
		}
	}
	for i := range t.Steps {
		s := t.Steps[i]
		s.Dispatches = slices.Clone(s.Dispatches) // with the capacity that Read gives it
		if err := record("step", s.Index, Record{Step: &s}, s.Unknown); err != nil {
			return err
		}
	}
	if text := d.in.text; d.used > b.memory || text > jsonRate*b.memory {
		return &SizeError{"the trace", max(d.used, text/jsonRate), b.memory}
	}
	return nil
}
