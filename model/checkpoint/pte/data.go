package pte

import (
	"encoding/binary"
	"fmt"

	"gpuscope/internal/mapfile"
)

// source is the open file that a Data refers to.
type source struct {
	name string
	from *mapfile.File
}

// Data is a range of bytes in a file, such as a weight, a delegate or a test input. Two Data are equal if
// they refer to the same range of the same open file.
type Data struct {
	source *source // nil for the zero Data, which has no bytes
	at     int64   // offset from the start of the file
	size   int64   // in bytes
}

// all returns a Data that covers the whole file.
func all(s *source) Data { return Data{s, 0, s.from.Size()} }

// Of makes a Data from bytes that are already in memory. The caller must not modify data. Error messages
// start with `name`.
func Of(data []byte, name string) Data { return all(&source{name, mapfile.Of(data)}) }

// Size returns the number of bytes.
func (d Data) Size() int64 { return d.size }

// Place returns the name of the file that contains the bytes, and the offset of the first byte in the file.
// The file is "" for the zero Data.
func (d Data) Place() (file string, offset int64) {
	if d.source == nil {
		return "", 0
	}
	return d.source.name, d.at
}

// Bytes returns the bytes. The slice may point into the memory-mapped file, so it must not be modified, and
// not be used after the file is closed. After the file is closed, Bytes returns an error.
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

// Slice returns n bytes of d, starting at the given offset. It returns an error if these bytes are not inside
// d.
func (d Data) Slice(at, n uint64) (Data, error) {
	if size := uint64(d.size); at > size || n > size-at {
		return Data{}, outside(at, n, size)
	}
	return Data{d.source, d.at + int64(at), int64(n)}, nil
}

func outside(at, n, size uint64) error {
	return fmt.Errorf("reading %d bytes at offset %d would go past the end of the data, which has %d bytes",
		n, at, size)
}

// header returns the first n bytes. It returns fewer bytes if the file is shorter.
func (d Data) header(n int) ([]byte, error) {
	head, err := d.Slice(0, uint64(min(int64(n), d.size)))
	if err != nil {
		return nil, err
	}
	return head.Bytes()
}

// Identifiers of the file formats. Each ends in two digits, which ExecuTorch increments when the format
// changes incompatibly.
const (
	programID = "ET12"
	dataID    = "FT01"
	bundleID  = "BP08"

	extendedID   = "eh00" // identifier of the extended header of a program
	dataHeaderID = "FH01" // identifier of the header of a data file
)

// Offsets in a program's extended header, from the start of the file.
const (
	headerID       = 8  // 4 bytes: identifier of the header
	headerLength   = 12 // u32: number of bytes from headerID to the end of the header
	headerSize     = 16 // u64: size in bytes of the FlatBuffer, which contains this header
	headerSegments = 24 // u64: offset of the segments; 0 if the file has none
	headerBytes    = 32 // u64: size of the segments in bytes; a short header lacks this field
	headerEnd      = 40
)

// Offsets in a data file's header, from the start of the file.
const (
	dataHeaderOffset   = 16 // u64: where the FlatBuffer continues; its first 8 bytes are at the file's start
	dataHeaderSize     = 24 // u64: number of bytes from that offset to the end of the FlatBuffer
	dataHeaderSegments = 32 // u64: offset of the segments
	dataHeaderBytes    = 40 // u64: size of the segments in bytes
	dataHeaderEnd      = 48
)

// layout states where the parts of a file are.
type layout struct {
	buffer   Data // the FlatBuffer
	segments Data // all segments; the zero Data if there are none
	extended bool // the file has an extended header; always true for a data file
}

func headerError(table, field string, err error, format string, args ...any) error {
	return &Error{Table: table, Field: field, Problem: fmt.Sprintf(format, args...), Err: err}
}

// identified returns the file identifier, which FlatBuffers stores in bytes 4 to 7. It returns "" if head is
// too short to contain one.
func identified(head []byte) string {
	if len(head) < 8 {
		return ""
	}
	return string(head[4:8])
}

// programLayout finds the parts of a program. It reads the extended header if the program has one.
func programLayout(d Data) (layout, error) {
	head, err := d.header(headerEnd)
	if err != nil {
		return layout{}, err
	}
	if id := identified(head); id != programID {
		return layout{}, headerError("header", "identifier", ErrFormat,
			"the identifier is %q; the identifier of an ExecuTorch program is %q",
			id, programID)
	}
	if len(head) < headerLength || string(head[headerID:headerLength]) != extendedID {
		return layout{buffer: d}, nil
	}
	const table = "extended header"
	if len(head) < headerBytes {
		return layout{}, headerError(table, "length", nil, "the file ends after %d bytes, inside the header",
			len(head))
	}
	length := binary.LittleEndian.Uint32(head[headerLength:])
	if length < headerBytes-headerID {
		return layout{}, headerError(table, "length", nil, "the header length is %d bytes, but the minimum is %d",
			length,
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
		return l, headerError(table, "segments", nil, "the segments start at byte %d, but the program before them ends at byte %d",
			base, size)
	}
	return l, nil
}

// dataLayout reads the header of a data file and returns where its parts are.
func dataLayout(d Data) (layout, error) {
	head, err := d.header(dataHeaderEnd)
	if err != nil {
		return layout{}, err
	}
	const table = "data file header"
	switch id := identified(head); {
	case id != dataID:
		return layout{}, headerError("header", "identifier", ErrFormat,
			"the identifier is %q; the identifier of a data file is %q", id, dataID)
	case len(head) < dataHeaderEnd:
		return layout{}, headerError(table, "length", nil, "the file ends after %d bytes, inside the header",
			len(head))
	case string(head[headerID:headerLength]) != dataHeaderID:
		return layout{}, headerError(table, "identifier", ErrFormat,
			"the identifier is %q; the identifier in the header of a data file is %q",
			head[headerID:headerLength], dataHeaderID)
	}
	if length := binary.LittleEndian.Uint32(head[headerLength:]); length < dataHeaderEnd-headerID {
		return layout{}, headerError(table, "length", nil, "the header length is %d bytes, but the minimum is %d",
			length,
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
