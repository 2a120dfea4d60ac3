package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// foldsTogether finds a single character that equals the last two or three characters of a text if case is
// ignored. For example, ß equals ss.
func foldsTogether(word []rune) (other string, found bool) {
	for n := 2; n <= min(3, len(word)); n++ {
		if other, found = longFolds()[string(word[len(word)-n:])]; found {
			return other, true
		}
	}
	return "", false
}

// longFolds maps several characters to the single character that equals them if case is ignored.
var longFolds = sync.OnceValue(func() map[string]string {
	folds := map[string]string{}
	fold := cases.Fold()
	blocks := pairs(0xdf, 0x1f0, 0x390, 0x3b0, 0x587, 0x587, 0x1e96, 0x1e9e, 0x1f50, 0x1ffc, 0xfb00, 0xfb17)
	for _, block := range blocks {
		for r := block.first; r <= block.last; r++ {
			if text := fold.String(string(r)); utf8.RuneCountInString(text) > 1 {
				folds[text] = string(r)
			}
		}
	}
	return folds
})

// class reads a character class after its opening bracket.
func (p *onigPattern) class(from int, o options) fragment {
	set, without := p.classSet(from, o)
	text := set.class()
	if without != "" && len(without) < len(text) {
		text = without
	}
	return fragment{text: text}
}

// classSet reads a character class. If the class can be written as a difference of two classes, as most
// intersections can, `without` is the class in the engine's syntax for differences. Otherwise `without` is
// empty.
func (p *onigPattern) classSet(from int, o options) (set charset, without string) {
	negated := p.take("^")
	operands := []charset{nil}
	add := func(s charset) { operands[len(operands)-1] = operands[len(operands)-1].or(s) }
	for first := true; ; first = false {
		at := p.at
		switch c := p.next(); {
		case c == ']' && !first:
			return p.closeClass(from, operands, negated, o)
		case c == '[':
			if s, ok := p.bracket(at); ok {
				add(s)
				p.noRange(at)
			} else {
				p.nested(at, func() fragment {
					s, _ := p.classSet(at, o)
					add(s)
					return fragment{}
				})
			}
		case c == '&' && p.take("&"):
			operands = append(operands, nil)
		default:
			var s charset
			isSet := false
			if c == '\\' {
				s, c, isSet = p.member(at)
			}
			if !isSet {
				s = chars(charRange{c, p.rangeEnd(at, c)})
			} else {
				p.noRange(at)
			}
			add(s)
		}
	}
}

func (p *onigPattern) closeClass(from int, operands []charset, negated bool, o options) (
	set charset, without string,
) {
	set = operands[0]
	for _, s := range operands[1:] {
		set = set.and(s)
	}
	if o.fold {
		set = set.folded()
		for text, other := range longFolds() {
			first, _ := utf8.DecodeRuneInString(text)
			if c, _ := utf8.DecodeRuneInString(other); !negated && set.has(c) && !set.has(first) {
				p.fail(from, fmt.Sprintf("not supported yet: if case is ignored, %s also matches %q",
					other, text))
			}
		}
	} else if len(operands) > 1 && !negated {
		rest := everything
		for _, s := range operands[1:] {
			rest = rest.and(s)
		}
		first, _ := operands[0].items()
		if first != "" {
			without = "[" + first + "-" + rest.not().class() + "]"
		}
	}
	if negated {
		set = set.not()
	}
	return set, without
}

// rangeEnd reads the end of a character range that begins with c. If c does not begin a range, rangeEnd
// returns c.
func (p *onigPattern) rangeEnd(from int, c rune) rune {
	rest := p.source[p.at:]
	if !strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "-]") || strings.HasPrefix(rest, "-&&") {
		return c
	}
	p.at++
	to := p.next()
	isSet := to == '['
	if to == '\\' {
		_, to, isSet = p.member(from)
	}
	if isSet || to < c {
		p.fail(from, "not a valid range of characters")
	}
	return to
}

// noRange fails if a range follows a set, because a range cannot begin with a set.
func (p *onigPattern) noRange(from int) {
	rest := p.source[p.at:]
	if strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "-]") && !strings.HasPrefix(rest, "-&&") {
		p.at++
		p.fail(from, "not a valid range of characters")
	}
}

// bracket reads the rest of [:name:] after its opening bracket inside a class. The bool is false if the
// bracket opens a nested class instead.
func (p *onigPattern) bracket(from int) (charset, bool) {
	inside, closed := strings.CutPrefix(p.source[p.at:], ":")
	name, _, ended := strings.Cut(inside, ":]")
	if !closed || !ended || strings.ContainsAny(name, `[]\`) {
		return nil, false
	}
	p.at += len(name) + len("::]")
	plain, negated := strings.CutPrefix(name, "^")
	set := brackets[plain]
	if set == nil {
		p.fail(from, "unknown character class")
	}
	if negated {
		return set().not(), true
	}
	return set(), true
}
