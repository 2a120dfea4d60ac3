package readjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"gpuscope/internal/printable"
)

// JSON cannot contain bytes that are not UTF-8. Such a byte b is written as the lone surrogate firstEscape +
// b, which never occurs in valid text. Python's surrogateescape does the same.
const firstEscape = 0xdc00

// UnquoteBytes parses a JSON string. Bytes that are not UTF-8 are kept. A lone surrogate that represents a
// byte becomes this byte, and any other lone surrogate becomes U+FFFD.
func UnquoteBytes(quoted []byte) (string, error) {
	if len(bytes.TrimSpace(quoted)) == 0 {
		return "", errors.New("want a JSON string, not an empty line")
	}
	if !json.Valid(quoted) || quoted[firstOf(quoted)] != '"' {
		return "", fmt.Errorf("want a JSON string, got %s", printable.Short(string(quoted), 60))
	}
	in := quoted[firstOf(quoted)+1:]
	out := make([]byte, 0, len(in))
	for {
		switch c := in[0]; {
		case c == '"':
			return string(out), nil
		case c != '\\':
			out, in = append(out, c), in[1:]
		case in[1] == 'u':
			r, n := hexRune(in), 6
			if utf16.IsSurrogate(r) {
				if pair := utf16.DecodeRune(r, hexRune(in[6:])); pair != utf8.RuneError {
					r, n = pair, 12
				}
			}
			if r >= firstEscape+0x80 && r <= firstEscape+0xff {
				out = append(out, byte(r-firstEscape))
			} else {
				out = utf8.AppendRune(out, r)
			}
			in = in[n:]
		default:
			out, in = append(out, escapes[in[1]]), in[2:]
		}
	}
}

var escapes = map[byte]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// firstOf returns the index of the first byte that is not white space.
func firstOf(line []byte) int {
	for i, c := range line {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return i
		}
	}
	return 0
}

// hexRune returns the code of the \uXXXX escape at the start of a text, or 0 if there is none.
func hexRune(in []byte) rune {
	if len(in) < 6 || in[0] != '\\' || in[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(in[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// QuoteBytes returns text as a JSON string. It is the inverse of UnquoteBytes, so it keeps bytes that are not
// UTF-8.
func QuoteBytes(text string) []byte {
	out := []byte{'"'}
	for text != "" {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\u%04x`, firstEscape+rune(text[0]))
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, '\\', 'n')
		case r == '\t':
			out = append(out, '\\', 't')
		case r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return append(out, '"')
}
