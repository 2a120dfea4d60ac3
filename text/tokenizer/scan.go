package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// scanner is a function that returns the length in bytes of the first word of a text. The text must not be
// empty. A scanner is a hand-written equivalent of a pattern in splits. It reads each character once or
// twice.
type scanner func(text string) int

// class is a kind of character that the rules distinguish.
type class uint8

const (
	end    class = iota // end of the text
	space               // \s
	letter              // \p{L}
	number              // \p{N}
	symbol              // all other characters, and invalid bytes
)

// first returns the class and the length in bytes of the first character of a text.
func first(text string) (class, int) {
	if text == "" {
		return end, 0
	}
	if c := text[0]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, n := utf8.DecodeRuneInString(text)
	return classOf(r), n
}

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsSpace(r):
		return space
	case unicode.IsNumber(r):
		return number
	}
	return symbol
}

var asciiClass = func() (table [utf8.RuneSelf]class) {
	for c := range table {
		table[c] = classOf(rune(c))
	}
	return table
}()

// run returns the length in bytes of the characters of class c at the start of text.
func run(text string, c class) int {
	n := 0
	for {
		got, width := first(text[n:])
		if got != c || width == 0 {
			return n
		}
		n += width
	}
}

// gpt2Word implements GPT-2's rule. A word is a contraction, white space, or a run of letters, numbers or
// symbols. Such a run may include one space before it.
func gpt2Word(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	c, _ := first(text)
	skip := 0
	if text[0] == ' ' {
		skip = 1
		c, _ = first(text[1:])
	}
	if c != space && c != end {
		return skip + run(text[skip:], c)
	}
	n := run(text, space)
	following, _ := first(text[n:])
	return spaces(text[:n], following)
}

// digit implements the rule in which each digit is a word, and so is each text between digits.
func digit(text string) int {
	if c, width := first(text); c == number {
		return width
	}
	n := 0
	for {
		c, width := first(text[n:])
		if c == number || c == end {
			return n
		}
		n += width
	}
}

// llama3Word implements the rules of Llama 3 and Qwen 2, which differ only in `digits`, the maximum number of
// digits in a word.
func llama3Word(text string, digits int) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	c, width := first(text)
	switch c {
	case letter:
		return run(text, letter)
	case number:
		n := width
		for range digits - 1 {
			c, width := first(text[n:])
			if c != number {
				break
			}
			n += width
		}
		return n
	}
	if text[0] != '\r' && text[0] != '\n' {
		if n := run(text[width:], letter); n > 0 {
			return width + n
		}
	}
	skip := 0
	if text[0] == ' ' {
		skip = 1
	}
	if n := run(text[skip:], symbol); n > 0 {
		n += skip
		return n + newlines(text[n:])
	}
	n := run(text, space)
	if last := strings.LastIndexAny(text[:n], "\r\n"); last >= 0 {
		return last + 1
	}
	following, _ := first(text[n:])
	return spaces(text[:n], following)
}

func newlines(text string) int {
	n := 0
	for n < len(text) && (text[n] == '\r' || text[n] == '\n') {
		n++
	}
	return n
}

// spaces returns the length in bytes of the word at the start of a run of white space. The word is the run
// without its last character, which belongs to the next word. At the end of the text, or if the run has a
// single character, the word is the whole run.
func spaces(white string, following class) int {
	if following == end {
		return len(white)
	}
	_, last := utf8.DecodeLastRuneInString(white)
	if last == len(white) {
		return last
	}
	return len(white) - last
}

// contraction returns the length of an English contraction ('s 't 're 've 'm 'll 'd) at the start of text, or
// 0. If `fold` is set, case is ignored. The long s (ſ) then counts as s, because Unicode folds it to s.
func contraction(text string, fold bool) int {
	if text[0] != '\'' {
		return 0
	}
	for _, c := range []string{"s", "t", "re", "ve", "m", "ll", "d"} {
		if strings.HasPrefix(text[1:], c) {
			return 1 + len(c)
		}
		if !fold {
			continue
		}
		if n := len(c); len(text) > n && strings.EqualFold(text[1:1+n], c) {
			return 1 + n
		}
	}
	if fold && strings.HasPrefix(text[1:], "ſ") {
		return 1 + len("ſ")
	}
	return 0
}
