package tokenizer

import (
	"fmt"
	"strings"
)

// Step is an operation on text before the merges. It either rewrites a piece or splits it into pieces.
type Step struct {
	rewrite func(piece) (piece, error)
	// cut calls yield with the range of each piece. If yield fails, cut stops and returns the error.
	cut func(text string, yield func(from, to int) error) error
	// grow is the maximum factor by which the step can lengthen a text, or 0 if it never does.
	grow float64
	// alphabet marks the step that writes bytes as characters of the byte alphabet.
	alphabet bool
}

// piece is a part of a text.
type piece struct {
	text string
	// head is the number of bytes at the start of the piece that represent the first character of the whole
	// text, including an inserted prefix. It is 0 in later pieces.
	head int
	// continues means that the piece follows text that is already encoded, so that no prefix is inserted.
	continues bool
}

// sub returns the piece text[from:to].
func (p piece) sub(from, to int) piece {
	return piece{p.text[from:to], min(max(0, p.head-from), to-from), p.continues && from == 0}
}

// Limits for the steps of a file. maxSteps is the number of steps. maxGrowth is the factor by which all steps
// together can make a text longer.
const (
	maxSteps  = 64
	maxGrowth = 1 << 14
)

// checkLength returns an error if a rewritten text is too long.
func checkLength(n int) error {
	if n > maxText {
		return fmt.Errorf("the steps before the split into words make the text longer than %d bytes. Use a shorter text", maxText)
	}
	return nil
}

// countSteps returns an error if there are too many steps.
func countSteps(steps []Step) error {
	if len(steps) > maxSteps {
		return fmt.Errorf("the tokenizer has %d steps that change or split text, but the maximum is %d",
			len(steps), maxSteps)
	}
	return nil
}

// checkSteps returns an error if a sequence of steps exceeds the limits.
func checkSteps(steps []Step) error {
	if err := countSteps(steps); err != nil {
		return err
	}
	grow := 1.0
	for _, s := range steps {
		grow *= max(1, s.grow)
	}
	if grow > maxGrowth {
		return fmt.Errorf(
			"the tokenizer may make a text %.4g times as long, but the maximum is %d times", grow,
			maxGrowth)
	}
	return nil
}

// spaceSign is the character with which SentencePiece vocabularies write a space: ▁ (U+2581).
const spaceSign = "\u2581"

// rewriting returns the step that replaces a text by to(text). To find the new length of the first character,
// the step also rewrites this character separately.
func rewriting(grow float64, to func(string) string) Step {
	return Step{grow: grow, rewrite: func(p piece) (piece, error) {
		text := to(p.text)
		return piece{text, min(len(to(p.text[:p.head])), len(text)), p.continues}, nil
	}}
}

// Prepend returns the step that inserts a prefix before each text that is not empty.
func Prepend(prefix string) Step {
	put := rewriting(float64(1+len(prefix)), func(text string) string {
		if text == "" {
			return text
		}
		return prefix + text
	})
	return Step{grow: put.grow, rewrite: func(p piece) (piece, error) {
		if p.continues {
			return p, nil
		}
		return put.rewrite(p)
	}}
}

// PrependMissing returns the step that inserts a prefix before texts that do not start with the prefix. If
// `once` is set, the step does so only at the beginning of the whole text.
func PrependMissing(prefix string, once bool) Step {
	return Step{grow: float64(1 + len(prefix)), rewrite: func(p piece) (piece, error) {
		if p.text == "" || p.continues || strings.HasPrefix(p.text, prefix) || once && p.head == 0 {
			return p, nil
		}
		p.text = prefix + p.text
		if p.head > 0 {
			p.head += len(prefix)
		}
		return p, nil
	}}
}

// Replace returns the step that replaces each occurrence of `from`, a text that is not empty.
func Replace(from, to string) Step { return replaceWhere(literal(from), len(from), to) }

// replaceWhere returns the step that replaces each match of `find` by `to`. No match is shorter than `least`
// bytes.
func replaceWhere(find matcher, least int, to string) Step {
	grow := float64(1 + 2*len(to)) // an empty match can occur before each byte and at the end
	if least > 0 {
		grow = float64(len(to)) / float64(least)
	}
	return Step{grow: grow, rewrite: func(p piece) (piece, error) {
		parts, err := find(p.text)
		if err != nil || len(parts) == 1 && !parts[0].match {
			return p, err
		}
		if err := checkLength(len(p.text) + len(parts)*len(to)); err != nil {
			return p, err
		}
		var b strings.Builder
		head := 0
		for _, at := range parts {
			if !at.match {
				b.WriteString(p.text[at.from:at.to])
				head += p.sub(at.from, at.to).head
				continue
			}
			b.WriteString(to)
			if p.head > 0 && at.to <= p.head { // the replacement counts as the match's last character
				head += len(to)
			}
		}
		return piece{b.String(), head, p.continues}, nil
	}}
}

// Squeeze returns the step that removes the spaces at both ends and replaces every run of spaces by one
// space.
func Squeeze() Step {
	return rewriting(0, func(text string) string {
		words := strings.Split(text, " ")
		kept := words[:0]
		for _, w := range words {
			if w != "" {
				kept = append(kept, w)
			}
		}
		return strings.Join(kept, " ")
	})
}

// trimEnd returns the step that removes every occurrence of a suffix at the end of a text.
func trimEnd(suffix string) Step {
	return rewriting(0, func(text string) string {
		for strings.HasSuffix(text, suffix) {
			text = text[:len(text)-len(suffix)]
		}
		return text
	})
}

// byteAlphabet is the step that writes each byte as its character in the byte alphabet.
var byteAlphabet = func() Step {
	s := rewriting(2, func(text string) string {
		var b strings.Builder
		b.Grow(len(text))
		for i := range len(text) {
			b.WriteRune(byteRunes[text[i]])
		}
		return b.String()
	})
	s.alphabet = true
	return s
}()

// apply rewrites a piece and checks the length of the result.
func (s Step) apply(p piece) (piece, error) {
	p, err := s.rewrite(p)
	if err == nil {
		err = checkLength(len(p.text))
	}
	return p, err
}

// rewriteAll applies steps to a piece. None of these steps may split the piece.
func rewriteAll(steps []Step, p piece) (_ piece, err error) {
	for _, s := range steps {
		if p, err = s.apply(p); err != nil {
			return p, err
		}
	}
	return p, nil
}

// walk applies steps to a piece and calls `word` for each resulting word.
func walk(steps []Step, p piece, word func(string) error) (err error) {
	for i, s := range steps {
		if s.rewrite == nil {
			return s.cut(p.text, func(from, to int) error {
				return walk(steps[i+1:], p.sub(from, to), word)
			})
		}
		if p, err = s.apply(p); err != nil {
			return err
		}
	}
	if p.text == "" {
		return nil
	}
	return word(p.text)
}
