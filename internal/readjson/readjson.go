// Package readjson decodes JSON from external sources. Its errors name the place and the expected type in
// words. The errors of encoding/json instead name Go types, and give offsets that editors do not show.
//
//	invalid JSON at line 7: "NaN"
//	model.vocab: a string where an integer is wanted
package readjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"gpuscope/internal/printable"
)

// Unmarshal decodes like json.Unmarshal but returns readable errors.
func Unmarshal(data []byte, into any) error { return Error(json.Unmarshal(data, into), data) }

// Check returns an error unless data is exactly one JSON value.
func Check(data []byte) error { return Unmarshal(data, new(ignored)) }

// ignored accepts any JSON value and discards it.
type ignored struct{}

func (*ignored) UnmarshalJSON([]byte) error { return nil }

// Error converts an error of encoding/json about data to a readable error. It returns other errors
// unchanged.
func Error(err error, data []byte) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return notJSON(e, data)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text := fmt.Sprintf("%s where %s is wanted", found(e.Value), wanted(e.Type))
		if e.Field != "" {
			text = e.Field + ": " + text
		}
		return errors.New(text)
	}
	return err
}

// notJSON returns an error with the position at which the JSON becomes invalid. The position is a line
// number. For an error in the first line, it is a byte offset instead, counted from 0.
func notJSON(e *json.SyntaxError, data []byte) error {
	at := min(max(int(e.Offset)-1, 0), len(data)) // offset of the first invalid byte
	rest := data[at:]
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return errors.New("the input is empty, not JSON")
	case strings.HasPrefix(e.Error(), "unexpected end"):
		return fmt.Errorf("the JSON ends unexpectedly at byte %d", len(data))
	case strings.HasSuffix(e.Error(), "exceeded max depth"):
		return errors.New("lists and objects of the JSON are nested too deep")
	}
	start := bytes.LastIndexFunc(data[:at], apart) + 1
	end := bytes.IndexFunc(rest, apart)
	switch {
	case end < 0:
		end = len(rest)
	case end == 0: // the invalid text is not a word
		_, end = utf8.DecodeRune(rest)
		start = at
	}
	place := fmt.Sprintf("byte %d", start)
	if lines := bytes.Count(data[:at], []byte("\n")); lines > 0 {
		place = fmt.Sprintf("line %d", lines+1)
	}
	return fmt.Errorf("invalid JSON at %s: %q", place, printable.Short(string(data[start:at+end]), 20))
}

// apart reports whether a rune ends a JSON word: a number, a word such as true, or a misspelled word.
func apart(r rune) bool {
	return r <= ' ' || r >= utf8.RuneSelf || strings.ContainsRune(`{}[]:,"'\`, r)
}

// found describes a JSON value in words, given the name that encoding/json uses.
func found(value string) string {
	switch number, is := strings.CutPrefix(value, "number "); {
	case is:
		return printable.Short(number, 40)
	case value == "array":
		return "a list"
	case value == "object":
		return "an object"
	case value == "bool":
		return "true or false"
	}
	return "a " + printable.Short(value, 40)
}

// wanted describes in words the JSON values that a Go type accepts.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer of at least 0"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}

// Python makes the output of Python's json module valid JSON. For numbers that are not finite, that module
// writes the words NaN, Infinity and -Infinity, which are not valid JSON. The function replaces these words
// by JSON strings. A field that requires a number rejects the strings.
func Python(data []byte) []byte {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	quoted := false
	for at := 0; at < len(data); {
		n := 1
		switch {
		case quoted && data[at] == '\\':
			n = min(2, len(data)-at)
		case data[at] == '"':
			quoted = !quoted
		case !quoted:
			if word := notFinite(data[at:]); word != "" {
				out = append(out, '"')
				out = append(out, word...)
				out = append(out, '"')
				at += len(word)
				continue
			}
		}
		out = append(out, data[at:at+n]...)
		at += n
	}
	return out
}

// notFinite returns the word NaN, Infinity or -Infinity if data begins with it, else "".
func notFinite(data []byte) string {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(data, []byte(word)) {
			return word
		}
	}
	return ""
}
