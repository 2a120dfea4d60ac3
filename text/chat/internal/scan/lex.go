// Package scan splits the source of a chat template into tokens.
package scan

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"gpuscope/text/chat/internal/pytext"
	"gpuscope/text/chat/internal/raise"
)

// Kind is the kind of a token.
type Kind int

const (
	TextToken  Kind = iota // text of the template outside tags
	openToken              // {{ or {%
	CloseToken             // }} or %}
	NameToken
	StringToken // string literal with its escapes replaced
	IntToken
	FloatToken
	OpToken
	EndToken
)

type Token struct {
	Kind Kind
	Text string
	Line int
}

// ops lists the operators. Longer operators come first.
var ops = []string{
	"//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "(", ")", "[", "]", "{", "}", ">", "<",
	"=", ".", ":", "|", ",",
}

// lexer splits a template into tokens.
type lexer struct {
	source string
	at     int
	line   int
	tokens []Token
	begins bool // whether the next text starts at the beginning of a line
	strips bool // whether the previous tag removes the white space that follows
}

func Split(source string) []Token {
	l := &lexer{source: source, line: 1, begins: true}
	for l.at < len(l.source) {
		l.outside()
	}
	l.add(EndToken, "")
	return l.tokens
}

func (l *lexer) add(k Kind, text string) { l.tokens = append(l.tokens, Token{k, text, l.line}) }

// move advances by n bytes.
func (l *lexer) move(n int) {
	l.line += strings.Count(l.source[l.at:l.at+n], "\n")
	l.at += n
}

// outside reads the text up to the next tag, and then the tag.
func (l *lexer) outside() {
	rest := l.source[l.at:]
	end := 0
	for ; end < len(rest); end++ {
		i := strings.IndexByte(rest[end:], '{')
		if i < 0 || end+i+1 == len(rest) {
			end = len(rest)
			break
		}
		if end += i; strings.IndexByte("{%#", rest[end+1]) >= 0 {
			break
		}
	}
	l.text(rest[:end], rest[end:])
	l.move(end)
	if end == len(rest) {
		return
	}
	open := rest[end : end+2]
	n := 2
	if end+2 < len(rest) && (rest[end+2] == '-' || rest[end+2] == '+' && open != "{{") {
		n = 3
	}
	switch {
	case open == "{#":
		text, _, found := strings.Cut(l.source[l.at+n:], "#}")
		if !found {
			raise.At(l.line, "a comment is not closed")
		}
		sign := byte(0)
		if text != "" { // in {#-#}, the sign is part of the opening {#-
			sign = text[len(text)-1]
		}
		l.leave(sign, n+len(text)+2)
	case open == "{%" && l.raw():
	default:
		l.move(n)
		l.add(openToken, open)
		l.inside(map[string]string{"{{": "}}", "{%": "%}"}[open])
	}
}

// The method text adds the text before a tag. It omits the white space that the tags on both sides remove.
func (l *lexer) text(text, next string) {
	if l.strips {
		text = strings.TrimLeft(text, pytext.Space)
	}
	switch {
	case strings.HasPrefix(next, "{%-"), strings.HasPrefix(next, "{{-"), strings.HasPrefix(next, "{#-"):
		text = strings.TrimRight(text, pytext.Space)
	case strings.HasPrefix(next, "{%+"), strings.HasPrefix(next, "{#+"):
	case strings.HasPrefix(next, "{%"), strings.HasPrefix(next, "{#"):
		line := strings.LastIndexByte(text, '\n') + 1
		if (line > 0 || l.begins && !l.strips) && strings.Trim(text[line:], pytext.Space) == "" {
			text = text[:line]
		}
	}
	if text != "" {
		l.add(TextToken, text)
	}
	l.strips, l.begins = false, false
}

// leave moves past the last n bytes of a tag. `sign` is the last byte before the closing bracket. A sign of +
// or - controls the white space after the tag.
func (l *lexer) leave(sign byte, n int) {
	variable := strings.HasSuffix(l.source[:l.at+n], "}}")
	l.move(n)
	l.strips = sign == '-'
	if !variable && !l.strips && sign != '+' && strings.HasPrefix(l.source[l.at:], "\n") {
		l.move(1)
		l.begins = true
	}
}

// raw reads a raw block if one starts at the current position, and reports whether it did.
func (l *lexer) raw() bool {
	n := tagOf("raw", l.source[l.at:])
	if n == 0 {
		return false
	}
	l.move(n)
	l.strips = l.source[l.at-3] == '-' // unlike other tags, raw keeps the following line end
	for i := l.at; ; i += 2 {
		j := strings.Index(l.source[i:], "{%")
		if j < 0 {
			raise.At(l.line, "{%% raw %%} has no {%% endraw %%}")
		}
		i += j
		if n := tagOf("endraw", l.source[i:]); n > 0 {
			l.text(l.source[l.at:i], l.source[i:])
			l.move(i - l.at)
			l.leave(l.source[i+n-3], n)
			return true
		}
	}
}

// tagOf returns the length of the tag at the start of `source` if the tag contains only the given word.
// Otherwise it returns 0.
func tagOf(word, source string) int {
	const around = " \t\n\v\f-+"
	rest, ok := strings.CutPrefix(strings.TrimLeft(source[len("{%"):], around), word)
	rest = strings.TrimLeft(rest, around)
	if !ok || !strings.HasPrefix(rest, "%}") {
		return 0
	}
	return len(source) - len(rest) + len("%}")
}

// inside reads the tokens of a tag up to its end.
func (l *lexer) inside(end string) {
	deep := 0
	for {
		rest := l.source[l.at:]
		trimmed := strings.TrimLeft(rest, pytext.Space)
		l.move(len(rest) - len(trimmed))
		rest = trimmed
		if rest == "" {
			raise.At(l.line, "a tag has no closing %s", end)
		}
		signed := strings.HasPrefix(rest[1:], end) && strings.IndexByte("-+", rest[0]) >= 0
		if deep == 0 && (signed || strings.HasPrefix(rest, end)) {
			n, sign := 2, byte(0)
			if signed {
				n, sign = 3, rest[0]
			}
			l.add(CloseToken, end)
			l.leave(sign, n)
			return
		}
		n := l.word(rest)
		switch rest[0] {
		case '(', '[', '{':
			deep++
		case ')', ']', '}':
			deep--
		}
		l.move(n)
	}
}

// word adds the token at the start of `rest` and returns its length.
func (l *lexer) word(rest string) int {
	c, _ := utf8.DecodeRuneInString(rest)
	switch {
	case c == '_' || unicode.IsLetter(c):
		n := strings.IndexFunc(rest, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		if n < 0 {
			n = len(rest)
		}
		l.add(NameToken, rest[:n])
		return n
	case c >= '0' && c <= '9':
		return l.number(rest)
	case c == '"' || c == '\'':
		n := 1
		for n < len(rest) && rest[n] != byte(c) {
			if rest[n] == '\\' {
				n++
			}
			n++
		}
		if n >= len(rest) {
			raise.At(l.line, "a string is not closed")
		}
		l.add(StringToken, l.unescape(rest[1:n]))
		return n + 1
	}
	i := slices.IndexFunc(ops, func(op string) bool { return strings.HasPrefix(rest, op) })
	if i < 0 {
		raise.At(l.line, "unexpected %q", c)
	}
	l.add(OpToken, ops[i])
	return len(ops[i])
}

// wholeForm matches an integer literal in any base. floatForm matches a float literal.
var (
	wholeForm = regexp.MustCompile(`^(0[bB](_?[01])+|0[oO](_?[0-7])+|0[xX](_?[0-9a-fA-F])+|[1-9](_?[0-9])*|0(_?0)*)`)
	floatForm = regexp.MustCompile(`^([0-9]+_)*[0-9]+(\.([0-9]+_)*[0-9]+)?([eE][+-]?([0-9]+_)*[0-9]+)?`)
)

func (l *lexer) number(rest string) int {
	whole, real := wholeForm.FindString(rest), floatForm.FindString(rest)
	before, _ := utf8.DecodeLastRuneInString(l.source[:l.at])
	if before != '.' && strings.ContainsAny(real, ".eE") {
		l.add(FloatToken, strings.ReplaceAll(real, "_", ""))
		return len(real)
	}
	l.add(IntToken, whole)
	return len(whole)
}

// escapes maps the character after a backslash to the text that the escape represents.
var escapes = map[byte]string{
	'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'v': "\v", 'a': "\a", '\\': "\\", '\'': "'",
	'"': `"`, '\n': "",
}

// hexDigits is the number of hexadecimal digits that follow the letter of an escape.
var hexDigits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// unescape returns the value of a string literal. A backslash before an unknown character is kept.
func (l *lexer) unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		octal := len(s[i:min(i+3, len(s))]) - len(strings.TrimLeft(s[i:min(i+3, len(s))], "01234567"))
		digits, base := hexDigits[s[i]], 16
		switch e, ok := escapes[s[i]]; {
		case ok:
			b.WriteString(e)
			continue
		case octal > 0:
			digits, base = octal, 8
			i--
		case s[i] == 'N':
			raise.At(l.line, `\N in a string is not supported: write the character itself`)
		case digits == 0:
			b.WriteString(s[i-1 : i+1])
			continue
		}
		code, err := strconv.ParseUint(s[i+1:min(i+1+digits, len(s))], base, 32)
		if err != nil || i+digits >= len(s) || code > unicode.MaxRune || utf16.IsSurrogate(rune(code)) {
			raise.At(l.line, "a string has an escape that is not a valid character")
		}
		b.WriteRune(rune(code))
		i += digits
	}
	return b.String()
}
