package tokenizer

import (
	"cmp"
	"slices"
	"strings"
)

// specials finds tokens that are written out in a text. The leftmost comes first, of several at one place the
// longest.
type specials struct {
	byFirst [256][]mark // by first byte, longest first
	any     bool
}

type mark struct {
	text string
	id   int
}

func (t *Tokenizer) findSpecials(kinds ...Kind) specials {
	var s specials
	for id, text := range t.config.Tokens {
		if text != "" && slices.Contains(kinds, t.Kind(id)) {
			s.byFirst[text[0]] = append(s.byFirst[text[0]], mark{text, id})
			s.any = true
		}
	}
	for _, marks := range s.byFirst {
		slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
	return s
}

// next finds the first special token at or after byte at: it takes text[from:to]. Without one, from and to
// are the end of the text and id is None.
func (s *specials) next(text string, at int) (from, to, id int) {
	if s.any {
		for from = at; from < len(text); from++ {
			for _, m := range s.byFirst[text[from]] {
				if strings.HasPrefix(text[from:], m.text) {
					return from, from + len(m.text), m.id
				}
			}
		}
	}
	return len(text), len(text), None
}
