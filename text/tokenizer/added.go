package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Added is a token that is found by its text before the text is split into words.
type Added struct {
	ID int
	// Text is the text of the token. If Normalized is true, the token is searched for in the prompt after
	// Config.Normal has been applied. Otherwise it is searched for in the original prompt.
	Text       string
	Normalized bool
	// Special marks control tokens, which are found only if Options.Special is set.
	Special bool
	// StripLeft and StripRight mean that the token includes adjacent white space on its left or on its right.
	StripLeft, StripRight bool
	// Word means that the token is not found next to a letter, mark, digit or underscore.
	Word bool
	// Outside means that the token is not part of the vocabulary from which merges produce tokens.
	Outside bool
}

// addedByKind returns the control, unknown and user-defined tokens as added tokens, for files without a list
// of added tokens.
func addedByKind(tokens []string, kinds []Kind) (list []Added) {
	for id, kind := range kinds {
		if kind == Control || kind == Unknown || kind == UserDefined {
			list = append(list, Added{ID: id, Text: tokens[id], Special: kind != UserDefined})
		}
	}
	return list
}

// finder finds added tokens in a text. It finds them from left to right. If several tokens begin at the same
// position, it finds the longest one. The tokens are sorted by text, so that tokens with a common prefix are
// adjacent.
type finder struct {
	tokens []Added
	from   [257]int32 // tokens[from[b]:from[b+1]] are the tokens that begin with byte b
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

// longest returns the longest token with which text starts, or nil. While n grows, it narrows the range of
// tokens that share the first n bytes of text.
func (f *finder) longest(text string) (best *Added) {
	low, high := f.from[text[0]], f.from[int(text[0])+1]
	for n := 1; low < high; n++ {
		if len(f.tokens[low].Text) == n {
			best = &f.tokens[low]
			for low < high && len(f.tokens[low].Text) == n { // use the first of several equal texts
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

// each calls `token` for each token in the text, and `rest` for each piece of text between tokens, in text
// order. A token may include the white space next to it. If this white space contains another token, the next
// piece of text starts after that token.
func (f *finder) each(p piece, special bool, token func(*Added), rest func(piece) error) error {
	text := p.text
	done := 0  // end of the text that was passed to token or rest
	white := 0 // end of the white space that the last token included
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
		if from >= to { // the previous token already includes this text
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

// inWord reports whether a character is part of a word: \w of UTS #18.
func inWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic,
		unicode.Join_Control)
}
