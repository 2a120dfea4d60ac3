package lexer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Source is the text that a Splitter reads. Between values, its white space consists of spaces and newlines.
type Source interface {
	io.Reader
	Next()                 // a new value begins
	Offset(at int64) int64 // converts an offset in the text to an offset in the file
}

// Splitter divides JSON into values without decoding them. It finds the end of a value by counting brackets
// outside of strings. It does not check whether the value is valid JSON, because the decoder does this later.
type Splitter struct {
	In   Source
	buf  []byte // read buffer
	rest []byte // unread part of buf
	read int64
	At   int64 // approximate offset of the current value in the file
	Line int   // line of the current value, from 1; blank lines do not count
	Ends int   // number of newlines that were read, without those at the end of the file
}

// InvalidError is the error for a character that is not valid JSON at its place.
type InvalidError struct {
	char byte
	want string
}

func (e InvalidError) Error() string {
	return fmt.Sprintf("invalid character %q; expected %s", e.char, e.want)
}

var newline = []byte("\n")

// Peek returns the first byte of the next value or punctuation mark. It returns io.EOF at the end of the
// input.
func (s *Splitter) Peek() (byte, error) {
	s.In.Next()
	for ends := 0; ; {
		for i, c := range s.rest {
			switch c {
			case '\n':
				ends++
			case ' ':
			default:
				s.rest, s.Ends = s.rest[i:], s.Ends+ends
				s.At, s.Line = s.In.Offset(s.read-int64(len(s.rest))), s.Ends+1
				return c, nil
			}
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// fill reads more input. It is called when rest is empty.
func (s *Splitter) fill() error {
	if s.buf == nil {
		s.buf = make([]byte, 1<<16)
	}
	n, err := s.In.Read(s.buf)
	s.rest, s.read = s.buf[:n], s.read+int64(n)
	return err
}

// Mark skips one byte. It returns an error if this byte is not `want`.
func (s *Splitter) Mark(want byte) error {
	c, err := s.Peek()
	switch {
	case err != nil:
		return err
	case c != want:
		return InvalidError{c, strconv.QuoteRune(rune(want))}
	}
	s.rest = s.rest[1:]
	return nil
}

// LinesLeft reads the rest of the text, and returns the number of its lines without the current line.
func (s *Splitter) LinesLeft() (n int) {
	begins := false
	for {
		for _, c := range s.rest {
			if c == '\n' {
				begins = true
			} else if begins && c != ' ' {
				n, begins = n+1, false
			}
		}
		s.In.Next()
		if s.fill() != nil {
			return n
		}
	}
}

// Value appends the bytes of the next value to a buffer, without changes. The error is io.EOF if there is no
// value, and io.ErrUnexpectedEOF if the value is incomplete.
func (s *Splitter) Value(to []byte) ([]byte, error) {
	c, err := s.Peek()
	switch {
	case err != nil:
		return to, err
	case c == ']' || c == '}' || c == ',' || c == ':':
		return to, InvalidError{c, "a value"}
	}
	var v Value
	for {
		n, whole := v.Next(s.rest)
		to = append(to, s.rest[:n]...)
		s.Ends += bytes.Count(s.rest[:n], newline)
		s.rest = s.rest[n:]
		if whole {
			return to, nil
		}
		if v.TooDeep() {
			return to, fmt.Errorf("lists and objects are nested deeper than %d", MostDepth)
		}
		if err := s.fill(); errors.Is(err, io.EOF) {
			if v.Bare {
				return to, nil
			}
			return to, io.ErrUnexpectedEOF
		} else if err != nil {
			return to, err
		}
	}
}

// Fields reads an object. For each field it calls a function with the field's name. This function must read
// the value.
func (s *Splitter) Fields(field func(name string) error) error {
	var raw []byte
	return s.members('{', '}', func() (err error) {
		if raw, err = s.Value(raw[:0]); err != nil {
			return err
		}
		if raw[0] != '"' {
			return InvalidError{raw[0], "a quoted field name"}
		}
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return err
		}
		if err := s.Mark(':'); err != nil {
			return err
		}
		return field(name)
	})
}

// members reads the members of an object or a list, and its two brackets. It calls a function for each
// member.
func (s *Splitter) members(open, shut byte, member func() error) error {
	if err := s.Mark(open); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := s.Another(n, shut)
		if err != nil || !more {
			return err
		}
		if err := member(); err != nil {
			return err
		}
	}
}

// Another reports whether there is one more member before the closing bracket. n is the number of members
// that were read.
func (s *Splitter) Another(n int, shut byte) (bool, error) {
	c, err := s.Peek()
	switch {
	case err != nil:
		return false, err
	case c == shut:
		return false, s.Mark(shut)
	case n > 0:
		return true, s.Mark(',')
	}
	return true, nil
}
