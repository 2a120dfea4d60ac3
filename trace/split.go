package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// splitter splits JSON into values without decoding them. It finds the end of a value by its quotes and
// brackets. The decoder of a value later checks whether the value is valid JSON.
type splitter struct {
	in   *source
	buf  []byte // read buffer
	rest []byte // unread part of buf
	read int64
	at   int64 // approximate offset in the file of the current value
}

// mostDepth is the maximum nesting depth of lists and objects. encoding/json has the same limit.
const mostDepth = 10_000

// peek returns the first byte of the next value or punctuation mark. It returns io.EOF at the end of the
// input.
func (s *splitter) peek() (byte, error) {
	s.in.next()
	for {
		for i, c := range s.rest {
			if c != ' ' {
				s.rest = s.rest[i:]
				s.at = s.in.offset(s.read - int64(len(s.rest)))
				return c, nil
			}
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// fill reads the next bytes of the input once rest is empty.
func (s *splitter) fill() error {
	if s.buf == nil {
		s.buf = make([]byte, 1<<16)
	}
	n, err := s.in.Read(s.buf)
	s.rest, s.read = s.buf[:n], s.read+int64(n)
	return err
}

// mark consumes one byte, which must equal want.
func (s *splitter) mark(want byte) error {
	c, err := s.peek()
	switch {
	case err != nil:
		return err
	case c != want:
		return fmt.Errorf("invalid character %q; expected %q", c, want)
	}
	s.rest = s.rest[1:]
	return nil
}

// value appends the unchanged bytes of the next value to a buffer. It returns io.EOF if there is no value,
// and io.ErrUnexpectedEOF if the value is incomplete.
func (s *splitter) value(to []byte) ([]byte, error) {
	c, err := s.peek()
	switch {
	case err != nil:
		return to, err
	case c == ']' || c == '}' || c == ',' || c == ':':
		return to, fmt.Errorf("invalid character %q; expected a value", c)
	}
	var v extent
	for {
		n, whole := v.continued(s.rest)
		to = append(to, s.rest[:n]...)
		s.rest = s.rest[n:]
		if whole {
			return to, nil
		}
		if v.depth > mostDepth {
			return to, fmt.Errorf("lists and objects are nested deeper than %d", mostDepth)
		}
		if err := s.fill(); errors.Is(err, io.EOF) {
			if v.bare {
				return to, nil
			}
			return to, io.ErrUnexpectedEOF
		} else if err != nil {
			return to, err
		}
	}
}

// fields reads an object and calls field for each field name. The callback must consume the value of the
// field.
func (s *splitter) fields(field func(name string) error) error {
	var raw []byte
	return s.members('{', '}', func() (err error) {
		if raw, err = s.value(raw[:0]); err != nil {
			return err
		}
		if raw[0] != '"' {
			return fmt.Errorf("invalid character %q; expected a quoted field name", raw[0])
		}
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return err
		}
		if err := s.mark(':'); err != nil {
			return err
		}
		return field(name)
	})
}

// members reads a list of members between two brackets and calls member for each of them.
func (s *splitter) members(open, shut byte, member func() error) error {
	if err := s.mark(open); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := s.another(n, shut)
		if err != nil || !more {
			return err
		}
		if err := member(); err != nil {
			return err
		}
	}
}

// another reports whether one more member follows before the closing bracket. The argument n is the number
// of members read so far.
func (s *splitter) another(n int, shut byte) (bool, error) {
	c, err := s.peek()
	switch {
	case err != nil:
		return false, err
	case c == shut:
		return false, s.mark(shut)
	case n > 0:
		return true, s.mark(',')
	}
	return true, nil
}

// extent finds the end of a JSON value that arrives in pieces.
type extent struct {
	quotes
	depth int
	bare  bool // a value without quotes or brackets, which ends before the next delimiter
}

// continued returns the number of bytes of p that belong to the value, and whether the value is complete.
func (v *extent) continued(p []byte) (n int, whole bool) {
	for i := 0; i < len(p); i++ {
		if v.quoted {
			i += v.end(p[i:]) - 1
			if !v.quoted && v.depth == 0 {
				return i + 1, true
			}
			continue
		}
		switch p[i] {
		case '"':
			v.quoted = true
		case '{', '[':
			if v.depth++; v.depth > mostDepth {
				return i, false
			}
		case '}', ']':
			if v.bare {
				return i, true
			}
			if v.depth--; v.depth == 0 {
				return i + 1, true
			}
		case ' ', ',', ':':
			if v.depth == 0 {
				return i, true
			}
		default:
			v.bare = v.depth == 0
		}
	}
	return len(p), false
}

// quotes is the lexer state within JSON: whether it is inside a string and directly after a backslash.
type quotes struct{ quoted, escaped bool }

// end returns the number of bytes of p that belong to the current string.
func (q *quotes) end(p []byte) int {
	for i := 0; i < len(p); i++ {
		switch {
		case q.escaped:
			q.escaped = false
		case p[i] == '\\':
			q.escaped = true
		case p[i] == '"':
			q.quoted = false
			return i + 1
		}
	}
	return len(p)
}
