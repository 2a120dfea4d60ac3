package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Added is a token that is found where a text writes it out, before the text is cut into words.
type Added struct {
	ID int
	// Text is what is looked for; Normalized says that it is looked for in what Config.Normal made of the
	// text, else in the text as it came.
	Text       string
	Normalized bool
	// Special tokens are found only where Options.Special is set: they steer the model.
	Special bool
	// StripLeft and StripRight take the white space beside the token away with it.
	StripLeft, StripRight bool
	// Word says that it is found only where no letter, mark, digit or underscore stands beside it.
	Word bool
	// Outside says that the vocabulary of the merges does not have it.
	Outside bool
}

// addedByKind are the tokens that the kinds of a vocabulary mark, where nothing more is said of them.
func addedByKind(tokens []string, kinds []Kind) (list []Added) {
	for id, kind := range kinds {
		if kind == Control || kind == Unknown || kind == UserDefined {
			list = append(list, Added{ID: id, Text: tokens[id], Special: kind != UserDefined})
		}
	}
	return list
}

// finder finds added tokens. The leftmost comes first, of several at one place the longest. Tokens stand in
// the order of their texts, so that those with a common beginning are neighbours.
type finder struct {
	tokens []Added
	from   [257]int32 // those whose text begins with byte b are tokens[from[b]:from[b+1]]
}

func newFinder(tokens []Added) *finder {
	f := &finder{tokens: slices.DeleteFunc(slices.Clone(tokens), func(a Added) bool { return a.Text == "" })}
	slices.SortStableFunc(f.tokens, func(a, b Added) int { return cmp.Compare(a.Text, b.Text) })
	for _, a := range f.tokens {
		f.from[int(a.Text[0])+1]++
	}
	for b := range 256 {
		f.from[b+1] += f.from[b]
	}
	return f
}

// longest is the longest token that text starts with, or nil: the tokens that share its first n bytes become
// fewer as n grows.
func (f *finder) longest(text string) (best *Added) {
	low, high := f.from[text[0]], f.from[int(text[0])+1]
	for n := 1; low < high; n++ {
		if len(f.tokens[low].Text) == n {
			best = &f.tokens[low]
			for low < high && len(f.tokens[low].Text) == n { // the first of those with one text
				low++
			}
		}
		if n == len(text) || low == high {
			break
		}
		among := f.tokens[low:high]
		at := func(a Added, c byte) int { return cmp.Compare(a.Text[n], c) }
		first, _ := slices.BinarySearchFunc(among, text[n], at)
		end := first
		if c := text[n]; c < 255 {
			end, _ = slices.BinarySearchFunc(among, c+1, at)
		} else {
			end = len(among)
		}
		low, high = low+int32(first), low+int32(end)
	}
	return best
}

// each goes through a text: it gives the tokens found and the pieces around them, in their order. Tokens
// are looked for in all of the text, also in white space that went with a token before: what follows on
// such a token is what follows on its own text.
func (f *finder) each(p piece, special bool, token func(*Added), rest func(piece) error) error {
	text := p.text
	done := 0  // up to which the text is given
	white := 0 // the end of the last white space that went with a token
	give := func(to int) error {
		if done >= to {
			return nil
		}
		return rest(p.sub(done, to))
	}
	for at := 0; at < len(text) && len(f.tokens) > 0; {
		a := f.longest(text[at:])
		if a == nil {
			at++
			continue
		}
		from, to := at, at+len(a.Text)
		at = to
		if a.Special && !special || a.Word && (wordBefore(text[:from]) || wordAfter(text[to:])) {
			continue
		}
		if a.StripLeft {
			from = max(from, done)
			from = done + len(strings.TrimRightFunc(text[done:from], unicode.IsSpace))
		}
		if a.StripRight {
			if white <= to {
				white = len(text) - len(strings.TrimLeftFunc(text[to:], unicode.IsSpace))
			}
			to = white
		}
		if from >= to { // it went with the token before
			continue
		}
		if err := give(from); err != nil {
			return err
		}
		token(a)
		done = to
	}
	return give(len(text))
}

func wordBefore(text string) bool {
	r, n := utf8.DecodeLastRuneInString(text)
	return n > 0 && inWord(r)
}

func wordAfter(text string) bool {
	r, n := utf8.DecodeRuneInString(text)
	return n > 0 && inWord(r)
}

// inWord says whether a character is part of a word: \w of UTS #18.
func inWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic,
		unicode.Join_Control)
}
