package tokenizer

import (
	"fmt"
	"strings"
)

// Step is a part of what happens to text before the merges: it writes a piece anew, or cuts it into pieces.
type Step struct {
	// rewrite gives the piece that takes the place of another.
	rewrite func(piece) (piece, error)
	// cut yields where the pieces are, and ends with the error of yield.
	cut func(text string, yield func(from, to int) error) error
	// grow is how many times as long a text may become; 0 where it does not grow.
	grow float64
	// alphabet marks the step that writes bytes as characters of the byte alphabet.
	alphabet bool
}

// piece is a part of a text.
type piece struct {
	text string
	// head is how many of its first bytes stand for the first character of the whole text. What is put before
	// that character belongs to it.
	head int
	// continues says that it follows text that has its tokens already: nothing is put before it.
	continues bool
}

// sub is text[from:to].
func (p piece) sub(from, to int) piece {
	return piece{p.text[from:to], min(max(0, p.head-from), to-from), p.continues && from == 0}
}

// Files may ask for no more steps than these, and for none that make a text so many times as long.
const (
	maxSteps  = 64
	maxGrowth = 1 << 14
)

// checkLength says whether a text that steps made is too long.
func checkLength(n int) error {
	if n > maxText {
		return fmt.Errorf("the text becomes longer than %d bytes before it is cut: give it in parts", maxText)
	}
	return nil
}

// countSteps says whether there are too many.
func countSteps(steps []Step) error {
	if len(steps) > maxSteps {
		return fmt.Errorf("text is to be changed and cut in %d steps, at most %d are possible", len(steps),
			maxSteps)
	}
	return nil
}

// checkSteps says whether steps, one after the other, stay within bounds.
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
			"text may become %.4g times as long before it is cut, at most %d times are possible", grow,
			maxGrowth)
	}
	return nil
}

// spaceSign is how SentencePiece vocabularies write a space: ▁ (U+2581).
const spaceSign = "\u2581"

// rewriting is a step that gives a text in the place of another, whose beginning becomes that of the new one.
func rewriting(grow float64, to func(string) string) Step {
	return Step{grow: grow, rewrite: func(p piece) (piece, error) {
		text := to(p.text)
		return piece{text, min(len(to(p.text[:p.head])), len(text)), p.continues}, nil
	}}
}

// Prepend puts a text before each text that is not empty.
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

// PrependMissing puts a prefix before texts that do not begin with it; with once only before what begins the
// whole text.
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

// Replace puts a text in the place of each occurrence of another, which is not empty.
func Replace(from, to string) Step { return replaceWhere(literal(from), len(from), to) }

// replaceWhere puts a text in the place of each match, of which none is shorter than least bytes.
func replaceWhere(find matcher, least int, to string) Step {
	grow := float64(1 + 2*len(to)) // before, between and after the bytes
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
			if p.head > 0 && at.to <= p.head { // a replacement stands for the last character of a match
				head += len(to)
			}
		}
		return piece{b.String(), head, p.continues}, nil
	}}
}

// Squeeze takes the spaces at both ends away, and all but one of those in a row.
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

// trimEnd takes a text away from the end, as often as it stands there.
func trimEnd(suffix string) Step {
	return rewriting(0, func(text string) string {
		for strings.HasSuffix(text, suffix) {
			text = text[:len(text)-len(suffix)]
		}
		return text
	})
}

// byteAlphabet writes each byte as the character that byte-level vocabularies have for it.
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

// apply rewrites a piece.
func (s Step) apply(p piece) (piece, error) {
	p, err := s.rewrite(p)
	if err == nil {
		err = checkLength(len(p.text))
	}
	return p, err
}

// rewriteAll is what steps that only rewrite make of a piece.
func rewriteAll(steps []Step, p piece) (_ piece, err error) {
	for _, s := range steps {
		if p, err = s.apply(p); err != nil {
			return p, err
		}
	}
	return p, nil
}

// walk takes a piece through steps and yields the words that come out.
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
