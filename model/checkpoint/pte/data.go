package pte

import (
	"encoding/binary"
	"fmt"

	"gpuscope/internal/mapfile"
)

// source is a file that bytes are in.
type source struct {
	name string
	from *mapfile.File
}

// Data is bytes of a file: a weight, a delegate, a test input. Two Data are equal where they are the same
// bytes of the same open file.
type Data struct {
	source *source
	at     int64
	size   int64
}

// all is a whole file.
func all(s *source) Data { return Data{s, 0, s.from.Size()} }

// Of is data that is in memory already, which must not change.
func Of(data []byte, name string) Data { return all(&source{name, mapfile.Of(data)}) }

// Size is the number of bytes.
func (d Data) Size() int64 { return d.size }

// Place is the file that the bytes are in, and where: "" where there are none.
func (d Data) Place() (file string, offset int64) {
	if d.source == nil {
		return "", 0
	}
	return d.source.name, d.at
}

// Bytes are the bytes. They may lie in the file's mapping: they must not be changed, nor used after the file
// is closed. To ask for them after it is an error.
func (d Data) Bytes() ([]byte, error) {
	if d.source == nil || d.size == 0 {
		return nil, nil
	}
	data, err := d.source.from.Bytes(d.at, int(d.size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.source.name, err)
	}
	return data, nil
}

// Slice is n bytes from a place on, and an error where they are not within.
func (d Data) Slice(at, n uint64) (Data, error) {
	if size := uint64(d.size); at > size || n > size-at {
		return Data{}, outside(at, n, size)
	}
	return Data{d.source, d.at + int64(at), int64(n)}, nil
}

func outside(at, n, size uint64) error {
	return fmt.Errorf("%d bytes at %d are not within %d bytes", n, at, size)
}

// header are the first n bytes of a header, which may not be all in the file.
func (d Data) header(n int) ([]byte, error) {
	head, err := d.Slice(0, uint64(min(int64(n), d.size)))
	if err != nil {
		return nil, err
	}
	return head.Bytes()
}

// Identifiers of the formats. The digits grow with incompatible changes.
const (
	programID = "ET12"
	dataID    = "FT01"
	bundleID  = "BP08"

	extendedID   = "eh00" // of the header in a program
	dataHeaderID = "FH01" // of the header in a data file
)

// Offsets in a program's extended header, from the start of the file.
const (
	headerID       = 8  // 4 bytes
	headerLength   = 12 // u32, counted from headerID
	headerSize     = 16 // u64: bytes of the FlatBuffer, this header included
	headerSegments = 24 // u64: where segments begin, 0 for none
	headerBytes    = 32 // u64: bytes of segments, where the header is so long
	headerEnd      = 40
)

// Offsets in a data file's header.
const (
	dataHeaderOffset   = 16 // u64: where the FlatBuffer begins; its root offset is at 0 all the same
	dataHeaderSize     = 24 // u64: its bytes from there on
	dataHeaderSegments = 32 // u64
	dataHeaderBytes    = 40 // u64
	dataHeaderEnd      = 48
)

// layout is where the parts of a file are.
type layout struct {
	buffer   Data // the FlatBuffer
	segments Data // nothing where there are none
	extended bool
}

// headerError is what is wrong with a header.
func headerError(table, field string, err error, format string, args ...any) error {
	return &Error{Table: table, Field: field, Problem: fmt.Sprintf(format, args...), Err: err}
}

// identified gives the identifier at bytes 4 to 7, where there is one.
func identified(head []byte) string {
	if len(head) < 8 {
		return ""
	}
	return string(head[4:8])
}

// programLayout reads the extended header of a program, if it has one.
func programLayout(d Data) (layout, error) {
	head, err := d.header(headerEnd)
	if err != nil {
		return layout{}, err
	}
	if id := identified(head); id != programID {
		return layout{}, headerError("header", "identifier", ErrFormat,
			"%q, want %q of an ExecuTorch program",
			id, programID)
	}
	if len(head) < headerLength || string(head[headerID:headerLength]) != extendedID {
		return layout{buffer: d}, nil
	}
	const table = "extended header"
	if len(head) < headerBytes {
		return layout{}, headerError(table, "length", nil, "the file ends after %d bytes", len(head))
	}
	length := binary.LittleEndian.Uint32(head[headerLength:])
	if length < headerBytes-headerID {
		return layout{}, headerError(table, "length", nil, "%d, want %d or more", length,
			headerBytes-headerID)
	}
	size := binary.LittleEndian.Uint64(head[headerSize:])
	base := binary.LittleEndian.Uint64(head[headerSegments:])
	l := layout{extended: true}
	if l.buffer, err = d.Slice(0, size); err != nil {
		return l, headerError(table, "program size", nil, "%v", err)
	}
	if base == 0 {
		return l, nil
	}
	n := uint64(d.size) - min(base, uint64(d.size))
	if length >= headerEnd-headerID && len(head) >= headerEnd {
		n = binary.LittleEndian.Uint64(head[headerBytes:])
	}
	if l.segments, err = d.Slice(base, n); err != nil {
		return l, headerError(table, "segments", nil, "%v", err)
	}
	if base < size {
		return l, headerError(table, "segments", nil, "they begin at %d, within the program's %d bytes",
			base, size)
	}
	return l, nil
}

// dataLayout reads the header of a data file.
func dataLayout(d Data) (layout, error) {
	head, err := d.header(dataHeaderEnd)
	if err != nil {
		return layout{}, err
	}
	const table = "data file header"
	switch id := identified(head); {
	case id != dataID:
		return layout{}, headerError("header", "identifier", ErrFormat, "%q, want %q of a data file", id,
			dataID)
	case len(head) < dataHeaderEnd:
		return layout{}, headerError(table, "length", nil, "the file ends after %d bytes", len(head))
	case string(head[headerID:headerLength]) != dataHeaderID:
		return layout{}, headerError(table, "identifier", ErrFormat, "%q, want %q",
			head[headerID:headerLength],
			dataHeaderID)
	}
	if length := binary.LittleEndian.Uint32(head[headerLength:]); length < dataHeaderEnd-headerID {
		return layout{}, headerError(table, "length", nil, "%d, want %d or more", length,
			dataHeaderEnd-headerID)
	}
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(head[at:]) }
	l := layout{extended: true}
	buffer, err := d.Slice(u64(dataHeaderOffset), u64(dataHeaderSize))
	if err != nil {
		return l, headerError(table, "FlatBuffer", nil, "%v", err)
	}
	l.buffer = Data{d.source, d.at, buffer.at - d.at + buffer.size}
	if l.segments, err = d.Slice(u64(dataHeaderSegments), u64(dataHeaderBytes)); err != nil {
		return l, headerError(table, "segments", nil, "%v", err)
	}
	return l, nil
}
