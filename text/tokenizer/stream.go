package tokenizer

import "unicode/utf8"

// Stream decodes tokens one by one. A token may end inside of a character. Stream holds back the bytes of
// such a character until it is complete, so that every returned text can be printed. The texts that Push
// and Flush return, joined together, equal the result of Decode for the same ids.
type Stream struct {
	t    *Tokenizer
	held []byte // start of an incomplete character, at most three bytes
}

// Stream returns a new Stream.
func (t *Tokenizer) Stream() *Stream { return &Stream{t: t} }

// Push adds a token and returns the characters that the token completes.
func (s *Stream) Push(id int) string {
	s.held = append(s.held, s.t.piece(id)...)
	whole := len(s.held) - unfinished(s.held)
	text := string(s.held[:whole])
	s.held = append(s.held[:0], s.held[whole:]...)
	return text
}

// Held returns the bytes of the incomplete character.
func (s *Stream) Held() string { return string(s.held) }

// Flush returns the bytes of the incomplete character and resets the stream.
func (s *Stream) Flush() string {
	text := string(s.held)
	s.held = s.held[:0]
	return text
}

// Restart sets the bytes of the incomplete character to an earlier result of Held.
func (s *Stream) Restart(held string) { s.held = append(s.held[:0], held...) }

// unfinished returns how many bytes at the end of b belong to an incomplete character. It returns 0 if the
// last character is complete, or if the last bytes cannot start a character.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
