// Package pytext implements the string functions of Python that chat templates call.
package pytext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Python and Go classify some characters differently as white space, digits or numbers.

const Space = " \t\n\r\v\f\x1c\x1d\x1e\x1f\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006" +
	"\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

// lineEnds holds the characters at which splitlines splits.
const lineEnds = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

// digits holds the characters that are digits but not decimal digits, such as ².
var digits = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0xb2, Hi: 0xb3, Stride: 1},
		{Lo: 0xb9, Hi: 0xb9, Stride: 1},
		{Lo: 0x1369, Hi: 0x1371, Stride: 1},
		{Lo: 0x19da, Hi: 0x19da, Stride: 1},
		{Lo: 0x2070, Hi: 0x2070, Stride: 1},
		{Lo: 0x2074, Hi: 0x2079, Stride: 1},
		{Lo: 0x2080, Hi: 0x2089, Stride: 1},
		{Lo: 0x2460, Hi: 0x2468, Stride: 1},
		{Lo: 0x2474, Hi: 0x247c, Stride: 1},
		{Lo: 0x2488, Hi: 0x2490, Stride: 1},
		{Lo: 0x24ea, Hi: 0x24ea, Stride: 1},
		{Lo: 0x24f5, Hi: 0x24fd, Stride: 1},
		{Lo: 0x24ff, Hi: 0x24ff, Stride: 1},
		{Lo: 0x2776, Hi: 0x277e, Stride: 1},
		{Lo: 0x2780, Hi: 0x2788, Stride: 1},
		{Lo: 0x278a, Hi: 0x2792, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10a40, Hi: 0x10a43, Stride: 1}, {Lo: 0x10e60, Hi: 0x10e68, Stride: 1}, {
			Lo: 0x11052,
			Hi: 0x1105a, Stride: 1,
		}, {Lo: 0x1f100, Hi: 0x1f10a, Stride: 1},
	},
}

// numerals holds the letters that also represent numbers.
const numerals = "㐅㒃㠪㭍一七万三九二五亖亿什仟仨伍佰億兆兩八六十千卄卅卌叁参參叄四壱壹幺廾廿弌弍弎弐拾捌柒漆玖" +
	"百肆萬貮貳贰阡陆陌陸零\uf96b\uf973\uf978\uf9b2\uf9d1\uf9d3\uf9fd\U00020001\U00020064\U000200e2" +
	"\U00020121\U0002092a\U00020983\U0002098c\U0002099c\U00020aea\U00020afd\U00020b19\U00022390" +
	"\U00022998\U00023b1b\U0002626d\U0002f890"

func IsSpace(r rune) bool   { return strings.ContainsRune(Space, r) }
func IsDecimal(r rune) bool { return unicode.Is(unicode.Nd, r) }
func IsDigit(r rune) bool   { return IsDecimal(r) || unicode.Is(digits, r) }
func IsNumeric(r rune) bool { return unicode.IsNumber(r) || strings.ContainsRune(numerals, r) }
func IsAlnum(r rune) bool   { return unicode.IsLetter(r) || IsNumeric(r) }

// hasCase reports whether a character has an upper, lower or title case.
func hasCase(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func Lower(v string) string { return cases.Lower(language.Und).String(v) }
func Fold(v string) string  { return cases.Fold().String(v) }
func Upper(v string) string { return cases.Upper(language.Und).String(v) }

// capital converts a character to title case.
func capital(r rune) string { return cases.Title(language.Und, cases.NoLower).String(string(r)) }

func Capitalize(v string) string {
	r, n := utf8.DecodeRuneInString(v)
	if n == 0 {
		return ""
	}
	return capital(r) + Lower(v[n:])
}

func SwapCase(v string) string {
	var b strings.Builder
	for _, r := range v {
		switch text := string(r); {
		case unicode.IsTitle(r):
			b.WriteString(text)
		case Lower(text) != text:
			b.WriteString(Lower(text))
		default:
			b.WriteString(Upper(text))
		}
	}
	return b.String()
}

// Title converts the first letter of each word to title case. A character without case ends a word.
func Title(v string) string {
	word := false
	var b strings.Builder
	for _, r := range v {
		if word {
			b.WriteString(Lower(string(r)))
		} else {
			b.WriteString(capital(r))
		}
		word = hasCase(r)
	}
	return b.String()
}

// IsTitle reports whether every word starts with a capital and has no other capitals.
func IsTitle(v string) bool {
	word, any := false, false
	for _, r := range v {
		if capitalLetter := unicode.IsUpper(r) || unicode.IsTitle(r); hasCase(r) && capitalLetter == word {
			return false
		}
		word = hasCase(r)
		any = any || word
	}
	return any
}

// IsIdentifier reports whether a string is a valid identifier in Python.
func IsIdentifier(v string) bool {
	for i, r := range v {
		continues := unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc)
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !continues) {
			return false
		}
	}
	return v != ""
}

// Lines splits a string into lines. If `ends` is true, each line includes its line end.
func Lines(v string, ends bool) (out []any) {
	for v != "" {
		i := strings.IndexAny(v, lineEnds)
		if i < 0 {
			return append(out, v)
		}
		_, n := utf8.DecodeRuneInString(v[i:])
		if strings.HasPrefix(v[i:], "\r\n") {
			n = 2
		}
		if ends {
			out = append(out, v[:i+n])
		} else {
			out = append(out, v[:i])
		}
		v = v[i+n:]
	}
	return out
}

// Runes returns the number of code points of a string.
func Runes(v string) int { return utf8.RuneCountInString(v) }
