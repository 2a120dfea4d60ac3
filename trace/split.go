package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// splitter cuts JSON into the values that it is made of, without looking into them: where one ends is said by
// its quotes and brackets. Whether what stands between them is JSON is found out by who decodes it.
type splitter struct {
	in   *source
	buf  []byte // that was read
	rest []byte // of it, and is to come
	read int64
	at   int64 // about where in the file the value stands that was begun last
}

// mostDepth is how deep lists and objects may stand within each other, as for encoding/json.
const mostDepth = 10_000

// peek is the first byte of the next value or mark; io.EOF if there is none.
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

// fill reads on, when all that was read is taken.
func (s *splitter) fill() error {
	if s.buf == nil {
		s.buf = make([]byte, 1<<16)
	}
	n, err := s.in.Read(s.buf)
	s.rest, s.read = s.buf[:n], s.read+int64(n)
	return err
}

// mark takes one byte, which must be the one that is wanted.
func (s *splitter) mark(want byte) error {
	c, err := s.peek()
	switch {
	case err != nil:
		return err
	case c != want:
		return fmt.Errorf("invalid character %q, want %q", c, want)
	}
	s.rest = s.rest[1:]
	return nil
}

// value appends the next value as it stands to a buffer. It is io.EOF if there is none, and
// io.ErrUnexpectedEOF where it has no end.
func (s *splitter) value(to []byte) ([]byte, error) {
	c, err := s.peek()
	switch {
	case err != nil:
		return to, err
	case c == ']' || c == '}' || c == ',' || c == ':':
		return to, fmt.Errorf("invalid character %q where a value should begin", c)
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
			return to, fmt.Errorf("lists and objects nested more than %d deep", mostDepth)
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

// fields goes through an object: the function takes the value of each field.
func (s *splitter) fields(field func(name string) error) error {
	var raw []byte
	return s.members('{', '}', func() (err error) {
		if raw, err = s.value(raw[:0]); err != nil {
			return err
		}
		if raw[0] != '"' {
			return fmt.Errorf("invalid character %q, want the name of a field in quotes", raw[0])
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

// members goes through what stands between two brackets.
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

// another reports whether there is another member before a closing bracket, after the n that were there.
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

// extent finds the end of a value, in pieces.
type extent struct {
	quotes
	depth int
	bare  bool // it has neither quotes nor brackets: what follows it ends it
}

// continued is how much of p belongs to the value, and whether it is whole then.
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

// quotes is where a text of JSON is: within a string, after a backslash.
type quotes struct{ quoted, escaped bool }

// end is how much of p belongs to the string that p continues.
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
