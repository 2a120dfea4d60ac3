package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// forms maps names to the Unicode normalization forms.
var forms = map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}

// normalize returns the step that applies a Unicode normalization form. After 30 consecutive combining
// marks it inserts U+034F, as the Stream-Safe format of UAX #15 requires. Reference tokenizers do not
// insert it.
func normalize(f norm.Form) Step {
	most := 4. // for U+0390, which grows from 2 to 6 bytes, and for inserted marks
	if f == norm.NFKC || f == norm.NFKD {
		most = 18 // for U+FDFA, which grows from 3 to 33 bytes, and for inserted marks
	}
	return rewriting(most, f.String)
}

// drop means that a character is removed. A function that maps characters returns it in place of a character.
const drop = -1

// firstLength returns the length in bytes of the first character of a text.
func firstLength(text string) int {
	_, n := utf8.DecodeRuneInString(text)
	return n
}

// eachRune returns the step that replaces each character by another one, or removes it.
func eachRune(grow float64, to func(rune) rune) Step {
	return rewriting(grow, func(text string) string { return mapRunes(text, to) })
}

// mapRunes replaces each character by to(character), or removes it if the result is drop. Invalid bytes are
// kept.
func mapRunes(text string, to func(rune) rune) string {
	var b strings.Builder
	for i, r := range text {
		if r == utf8.RuneError && firstLength(text[i:]) == 1 {
			b.WriteByte(text[i])
		} else if r = to(r); r != drop {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// without returns the step that removes each character c for which is(c) returns true.
func without(is func(rune) bool) Step {
	return eachRune(0, func(r rune) rune {
		if is(r) {
			return drop
		}
		return r
	})
}

// lowercase converts each character to lower case independently of its neighbors. A sigma at the end of a
// word therefore gets no special form.
var lowercase = rewriting(1.5, func(text string) string {
	const dotted = "İ" // no other character has a lower case of two characters
	return mapRunes(strings.ReplaceAll(text, dotted, "i\u0307"), unicode.ToLower)
})

// trimSpace returns the step that removes white space at the ends.
func trimSpace(left, right bool) Step {
	return Step{rewrite: func(p piece) (piece, error) {
		from, to := 0, len(p.text)
		if left {
			from = to - len(strings.TrimLeftFunc(p.text, unicode.IsSpace))
		}
		if right {
			to = max(from, len(strings.TrimRightFunc(p.text, unicode.IsSpace)))
		}
		return p.sub(from, to), nil
	}}
}

// nmt is the normalizer Nmt: it removes control characters and replaces special white space, such as tabs and
// zero-width spaces, by a space.
var nmt = eachRune(0, func(r rune) rune {
	switch {
	case nmtControl.has(r):
		return drop
	case nmtSpace.has(r):
		return ' '
	}
	return r
})

var (
	nmtControl = pairs(0x1, 0x8, 0xb, 0xb, 0xe, 0x1f, 0x7f, 0x7f, 0x8f, 0x8f, 0x9f, 0x9f)
	nmtSpace   = pairs(0x9, 0xa, 0xc, 0xd, 0x1680, 0x1680, 0x200b, 0x200f, 0x2028, 0x2029, 0x2581, 0x2581,
		0xfeff, 0xfeff, 0xfffd, 0xfffd)
)

// bertSteps returns the steps of BERT's normalizer. If the file does not state whether to strip accents, they
// are stripped only if the text is converted to lower case.
func bertSteps(clean, spaced bool, accents *bool, lower bool) (steps []Step) {
	if clean {
		steps = append(steps, eachRune(0, func(r rune) rune {
			switch {
			case r == '\t' || r == '\n' || r == '\r':
				return ' '
			case r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
				return drop
			case unicode.IsSpace(r):
				return ' '
			}
			return r
		}))
	}
	if spaced {
		steps = append(steps, spacedHan)
	}
	if accents != nil && *accents || accents == nil && lower {
		accent := func(r rune) bool { return unicode.Is(unicode.Mn, r) }
		steps = append(steps, normalize(norm.NFD), without(accent))
	}
	if lower {
		steps = append(steps, lowercase)
	}
	return steps
}

// spacedHan inserts spaces around Chinese characters.
var spacedHan = rewriting(5./3, func(text string) string {
	var b strings.Builder
	at := 0
	for i, r := range text {
		if bertHan.has(r) {
			n := utf8.RuneLen(r)
			b.WriteString(text[at:i] + " " + text[i:i+n] + " ")
			at = i + n
		}
	}
	return b.String() + text[at:]
})

var bertHan = pairs(0x3400, 0x4dbf, 0x4e00, 0x9fff, 0xf900, 0xfaff, 0x20000, 0x2a6df, 0x2a700, 0x2b73f,
	0x2b740, 0x2b81f, 0x2b920, 0x2ceaf, 0x2f800, 0x2fa1f)
