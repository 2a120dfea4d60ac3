package tokenizer

import (
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Step is a part of what happens to text before the merges: it writes a text anew, or cuts it into pieces.
type Step struct {
	// rewrite gives the text in its place; start says that it begins the whole text.
	rewrite func(text string, start bool) string
	// cut yields the pieces, none of them empty, and ends with the error of yield.
	cut func(text string, yield func(piece string) error) error
	// grow is how many times as long a text may become; 0 where it does not grow.
	grow float64
}

// Files may ask for no more steps than these, and for none that make a text so many times as long.
const (
	maxSteps  = 64
	maxGrowth = 256
)

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

// Prepend puts a text before each text that is not empty.
func Prepend(prefix string) Step {
	return Step{grow: float64(1 + len(prefix)), rewrite: func(text string, _ bool) string {
		if text == "" {
			return text
		}
		return prefix + text
	}}
}

// PrependMissing puts a prefix before texts that do not begin with it; with once only before what begins the
// whole text.
func PrependMissing(prefix string, once bool) Step {
	return Step{grow: float64(1 + len(prefix)), rewrite: func(text string, start bool) string {
		if text == "" || strings.HasPrefix(text, prefix) || once && !start {
			return text
		}
		return prefix + text
	}}
}

// Replace puts a text in the place of each occurrence of another.
func Replace(from, to string) Step {
	return Step{
		grow:    float64(len(to)) / float64(max(1, len(from))),
		rewrite: func(text string, _ bool) string { return strings.ReplaceAll(text, from, to) },
	}
}

// Squeeze takes the spaces at both ends away, and all but one of those in a row.
func Squeeze() Step {
	return Step{rewrite: func(text string, _ bool) string {
		words := strings.Split(text, " ")
		kept := words[:0]
		for _, w := range words {
			if w != "" {
				kept = append(kept, w)
			}
		}
		return strings.Join(kept, " ")
	}}
}

// trimEnd takes a text away from the end, as often as it stands there.
func trimEnd(suffix string) Step {
	return Step{rewrite: func(text string, _ bool) string {
		for strings.HasSuffix(text, suffix) {
			text = text[:len(text)-len(suffix)]
		}
		return text
	}}
}

// forms are the normalisation forms of Unicode by their names.
var forms = map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}

// normalize writes text in a form. (From 30 combining marks in a row on it puts U+034F between them, which
// the Stream-Safe form of UAX #15 wants and reference tokenizers do not do.)
func normalize(f norm.Form) Step {
	const most = 18 // U+FDFA, in compatibility forms: 33 bytes of 3, and marks put in between
	return Step{grow: most, rewrite: func(text string, _ bool) string { return f.String(text) }}
}

// rewriteAll is what steps that only rewrite make of a text.
func rewriteAll(steps []Step, text string, start bool) string {
	for _, s := range steps {
		text = s.rewrite(text, start)
	}
	return text
}

// walk takes a text through steps and yields the words that come out.
func walk(steps []Step, text string, start bool, word func(string) error) error {
	for i, s := range steps {
		if s.rewrite != nil {
			text = s.rewrite(text, start)
			continue
		}
		return s.cut(text, func(piece string) error {
			first := start
			start = false
			return walk(steps[i+1:], piece, first, word)
		})
	}
	if text == "" {
		return nil
	}
	return word(text)
}
