package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gpuscope/internal/printable"
)

// splitter gives the length of the word that text starts with. Text is not empty; the length is at least 1.
type splitter func(text string) int

// splitRule cuts text into words before the merges. Tokenizers write such rules as regular expressions with
// look-ahead, which Go's regexp does not have; here they are scanners that read each character once or twice.
type splitRule struct {
	names      []string // tokenizer.ggml.pre, llama.cpp's names; the first is the rule's own
	next       splitter
	pattern    string // the regular expression that next does: what the tests compare it with
	isolate    bool   // pattern applies to the stretches between numbers; each number is a word of its own
	wholeWords bool   // default of Config.WholeWords for files that do not say
	addBOS     bool   // default of Config.AddBOS for files that do not say
}

// splits has every known rule.
var splits = []splitRule{
	{
		names:   []string{"gpt-2", "phi-2"},
		next:    func(text string) int { return gpt2Word(text, number) },
		pattern: gpt2Pattern,
	},
	{
		names:   []string{"smollm", "starcoder", "refact", "codeshell"},
		next:    func(text string) int { return gpt2Word(text, end) },
		pattern: gpt2Pattern, isolate: true,
	},
	{
		names:      []string{"llama-bpe", "llama3", "llama-v3"},
		next:       func(text string) int { return llama3Word(text, 3) },
		pattern:    fmt.Sprintf(llama3Pattern, `{1,3}`),
		wholeWords: true, addBOS: true,
	},
	{
		names:   []string{"qwen2", "deepseek-r1-qwen"},
		next:    func(text string) int { return llama3Word(text, 1) },
		pattern: fmt.Sprintf(llama3Pattern, ``),
	},
}

const (
	gpt2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

func findSplit(name string) (splitRule, error) {
	var known []string
	for _, rule := range splits {
		if slices.Contains(rule.names, name) {
			return rule, nil
		}
		known = append(known, rule.names[0])
	}
	return splitRule{},
		fmt.Errorf("split rule %q is not supported yet (%s are): %w", printable.Short(name, 80),
			strings.Join(known, ", "), ErrUnsupported)
}

// class is what the rules tell characters apart by.
type class uint8

const (
	end    class = iota // of the text
	space               // \s
	letter              // \p{L}
	number              // \p{N}
	symbol              // all else, invalid bytes included
)

// first classifies the character that text starts with and gives its length.
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

// run is the length of the longest start of text that is all of class c.
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

// gpt2Word is GPT-2's rule. What numbers count as is a parameter: with end a number ends the text before it
// and is a word of its own.
func gpt2Word(text string, numbers class) int {
	classify := func(text string) (class, int) {
		c, width := first(text)
		if c == number {
			c = numbers
		}
		return c, width
	}
	if n := contraction(text, false); n > 0 {
		return n
	}
	c, width := classify(text)
	if c == end { // a number by itself
		return width
	}
	skip := 0
	if text[0] == ' ' {
		skip = 1
		c, _ = classify(text[1:])
	}
	if c != space && c != end {
		return skip + run(text[skip:], c)
	}
	n := run(text, space)
	following, _ := classify(text[n:])
	return spaces(text[:n], following)
}

// llama3Word is the rule of Llama 3, and of Qwen 2 but for how many digits make a word.
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

// spaces is the length of the word at the start of a run of white space: the run but for its last character,
// which goes with what follows, unless nothing follows or it is the only one.
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

// contraction is the length of an English contraction ('s 't 're 've 'm 'll 'd) that text starts with, or 0.
// With fold any case counts, the long s (ſ) included: Unicode folds it to s.
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
