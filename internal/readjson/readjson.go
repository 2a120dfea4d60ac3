// Package readjson reads JSON that others wrote. Its errors say in words what stands where, and what was
// wanted there: those of encoding/json speak of Go's types, and of offsets that no editor shows.
//
//	line 7 is no JSON from "NaN" on
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

// Unmarshal is json.Unmarshal with errors in words.
func Unmarshal(data []byte, into any) error { return Error(json.Unmarshal(data, into), data) }

// Check says where data is not one JSON value, with nothing after it.
func Check(data []byte) error { return Unmarshal(data, new(ignored)) }

// ignored takes any value and keeps nothing.
type ignored struct{}

func (*ignored) UnmarshalJSON([]byte) error { return nil }

// Error is what encoding/json says of data, in words. An error of another kind stays as it is.
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

// notJSON says where data stops to be JSON: by the line, or where all is in the first by the byte, from 0.
func notJSON(e *json.SyntaxError, data []byte) error {
	at := min(max(int(e.Offset)-1, 0), len(data)) // of the first byte that does not fit
	rest := data[at:]
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return errors.New("it is empty, and no JSON")
	case strings.HasPrefix(e.Error(), "unexpected end"):
		return fmt.Errorf("its JSON breaks off at byte %d", len(data))
	case strings.HasSuffix(e.Error(), "exceeded max depth"):
		return errors.New("lists and objects of its JSON are nested too deep")
	}
	start := bytes.LastIndexFunc(data[:at], apart) + 1
	end := bytes.IndexFunc(rest, apart)
	switch {
	case end < 0:
		end = len(rest)
	case end == 0: // what does not fit is no word
		_, end = utf8.DecodeRune(rest)
		start = at
	}
	place := fmt.Sprintf("byte %d", start)
	if lines := bytes.Count(data[:at], []byte("\n")); lines > 0 {
		place = fmt.Sprintf("line %d", lines+1)
	}
	return fmt.Errorf("%s is no JSON from %q on", place, printable.Short(string(data[start:at+end]), 20))
}

// apart says that a rune is not of a word of JSON, such as a number, true, or what was meant to be one.
func apart(r rune) bool {
	return r <= ' ' || r >= utf8.RuneSelf || strings.ContainsRune(`{}[]:,"'\`, r)
}

// found is in words what encoding/json calls a value.
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

// wanted is in words what a Go type takes.
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

// Python is data with the numbers that Python's json module writes and JSON does not have (NaN, Infinity and
// -Infinity) as strings: they are read as what they are, and are no numbers to who wants one.
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

// notFinite is the number that data begins with, where it is one that JSON does not have.
func notFinite(data []byte) string {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(data, []byte(word)) {
			return word
		}
	}
	return ""
}
