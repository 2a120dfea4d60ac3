package tokenizer

import "unicode/utf8"

// Stream decodes tokens as they come. A token may end inside a character: Stream holds such bytes back until
// the character is whole, so that what it gives can be printed at once. All that Push and Flush give, joined,
// is what Decode gives of the same ids.
type Stream struct {
	t    *Tokenizer
	held []byte // start of a character: at most three bytes
}

// Stream starts a stream.
func (t *Tokenizer) Stream() *Stream { return &Stream{t: t} }

// Push takes the next token and gives the text that it completes.
func (s *Stream) Push(id int) string {
	s.held = append(s.held, s.t.piece(id)...)
	whole := len(s.held) - unfinished(s.held)
	text := string(s.held[:whole])
	s.held = append(s.held[:0], s.held[whole:]...)
	return text
}

// Held is what is held back, an unfinished character.
func (s *Stream) Held() string { return string(s.held) }

// Flush gives what is held back, an unfinished character, and starts anew.
func (s *Stream) Flush() string {
	text := string(s.held)
	s.held = s.held[:0]
	return text
}

// Restart goes on from where that was held back.
func (s *Stream) Restart(held string) { s.held = append(s.held[:0], held...) }

// unfinished is the length of the character that b breaks off in, 0 where it ends with a whole one or with
// bytes that no character starts with.
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
