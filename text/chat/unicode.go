package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// What Python says of characters where Go's tables differ: white space, digits, numbers, and cases of which
// one character becomes several.

const space = " \t\n\r\v\f\x1c\x1d\x1e\x1f\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006" +
	"\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

// lineEnds are the characters at which splitlines splits.
const lineEnds = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

// digits are those that are not decimal, as ².
var digits = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xb2, 0xb3, 1},
		{0xb9, 0xb9, 1},
		{0x1369, 0x1371, 1},
		{0x19da, 0x19da, 1},
		{0x2070, 0x2070, 1},
		{0x2074, 0x2079, 1},
		{0x2080, 0x2089, 1},
		{0x2460, 0x2468, 1},
		{0x2474, 0x247c, 1},
		{0x2488, 0x2490, 1},
		{0x24ea, 0x24ea, 1},
		{0x24f5, 0x24fd, 1},
		{0x24ff, 0x24ff, 1},
		{0x2776, 0x277e, 1},
		{0x2780, 0x2788, 1},
		{0x278a, 0x2792, 1},
	},
	R32: []unicode.Range32{
		{0x10a40, 0x10a43, 1}, {0x10e60, 0x10e68, 1}, {0x11052, 0x1105a, 1}, {0x1f100, 0x1f10a, 1},
	},
}

// numerals are the letters that are numbers.
const numerals = "㐅㒃㠪㭍一七万三九二五亖亿什仟仨伍佰億兆兩八六十千卄卅卌叁参參叄四壱壹幺廾廿弌弍弎弐拾捌柒漆玖" +
	"百肆萬貮貳贰阡陆陌陸零\uf96b\uf973\uf978\uf9b2\uf9d1\uf9d3\uf9fd\U00020001\U00020064\U000200e2" +
	"\U00020121\U0002092a\U00020983\U0002098c\U0002099c\U00020aea\U00020afd\U00020b19\U00022390" +
	"\U00022998\U00023b1b\U0002626d\U0002f890"

func isSpace(r rune) bool   { return strings.ContainsRune(space, r) }
func isDecimal(r rune) bool { return unicode.Is(unicode.Nd, r) }
func isDigit(r rune) bool   { return isDecimal(r) || unicode.Is(digits, r) }
func isNumeric(r rune) bool { return unicode.IsNumber(r) || strings.ContainsRune(numerals, r) }
func isAlnum(r rune) bool   { return unicode.IsLetter(r) || isNumeric(r) }

// hasCase says whether a character is a letter with a case.
func hasCase(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func lower(v string) string { return cases.Lower(language.Und).String(v) }
func fold(v string) string  { return cases.Fold().String(v) }
func upper(v string) string { return cases.Upper(language.Und).String(v) }

// capital is a character as it begins a word.
func capital(r rune) string { return cases.Title(language.Und, cases.NoLower).String(string(r)) }

func capitalize(v string) string {
	r, n := utf8.DecodeRuneInString(v)
	if n == 0 {
		return ""
	}
	return capital(r) + lower(v[n:])
}

func swapCase(v string) string {
	var b strings.Builder
	for _, r := range v {
		if unicode.IsUpper(r) {
			b.WriteString(lower(string(r)))
		} else {
			b.WriteString(upper(string(r)))
		}
	}
	return b.String()
}

// title begins each word with a capital; what has no case ends a word.
func title(v string) string {
	word := false
	var b strings.Builder
	for _, r := range v {
		if word {
			b.WriteString(lower(string(r)))
		} else {
			b.WriteString(capital(r))
		}
		word = hasCase(r)
	}
	return b.String()
}

// isTitle says whether capitals begin all words, and nothing else is one.
func isTitle(v string) bool {
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

// isIdentifier says whether a string could be a name in Python.
func isIdentifier(v string) bool {
	for i, r := range v {
		continues := unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc)
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !continues) {
			return false
		}
	}
	return v != ""
}

// lines are the lines of a string, with their ends where that is wanted.
func lines(v string, ends bool) (out []any) {
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

// runes is how many characters a string has.
func runes(v string) int { return utf8.RuneCountInString(v) }
