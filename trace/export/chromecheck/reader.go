package chromecheck

import (
	"fmt"
	"io"
	"unicode/utf8"
)

// reader passes on the bytes of a file and checks that they are UTF-8. It returns ErrTooLarge when `left`
// bytes were read. The checker resets `left` before each event.
type reader struct {
	in        io.Reader
	left      int64
	err       error // first error of in
	at        int64 // number of bytes passed on
	invalid   bool
	invalidAt int64
	partial   []byte // beginning of a character whose rest is not yet read
}

func (r *reader) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("%w: an event is larger than %d bytes", ErrTooLarge, maxEvent)
	}
	n, err := r.in.Read(b)
	if err != nil {
		r.err = err
	}
	r.left -= int64(n)
	if !r.invalid {
		r.check(b[:n], err != nil)
	}
	r.at += int64(n)
	return n, err
}

// check looks for bytes that are not UTF-8. last reports that no more bytes follow.
func (r *reader) check(b []byte, last bool) {
	start := r.at - int64(len(r.partial))
	if len(r.partial) > 0 {
		b = append(r.partial, b...)
		r.partial = nil
	}
	if utf8.Valid(b) {
		return
	}
	for i := 0; i < len(b); {
		c, size := utf8.DecodeRune(b[i:])
		if c == utf8.RuneError && size == 1 {
			if !last && !utf8.FullRune(b[i:]) {
				r.partial = append([]byte(nil), b[i:]...)
				return
			}
			r.invalid, r.invalidAt = true, start+int64(i)
			return
		}
		i += size
	}
}
