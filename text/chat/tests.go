package chat

import (
	"strings"

	"gpuscope/text/chat/internal/pytext"
)

// tests holds the Jinja tests by name.
var tests map[string]builtin

// kindTest returns a row for a test of the value's type.
func kindTest(names string, is func(v any) bool) row {
	return row{names, "value, /", func(_ *state, a []any) any { return is(a[0]) }}
}

// compared returns a row for a test that compares two values.
func compared(names, op string) row {
	return row{names, "a, b, /", func(s *state, a []any) any { return s.compare(op, a[0], a[1]) }}
}

func init() { // not in the declaration, because some tests refer to this variable
	tests = builtins([]row{
		kindTest("defined", func(v any) bool { return !isA[undefined](v) }),
		kindTest("undefined", isA[undefined]),
		kindTest("none", func(v any) bool { return v == nil }),
		kindTest("true", func(v any) bool { return v == true }),
		kindTest("false", func(v any) bool { return v == false }),
		kindTest("boolean", isA[bool]),
		kindTest("integer", isA[int64]),
		kindTest("float", isA[float64]),
		kindTest("number", isNumber),
		kindTest("string", func(v any) bool { return isA[string](v) || isA[markup](v) }),
		kindTest("escaped", isA[markup]),
		kindTest("mapping", isA[*dict]),
		kindTest("sequence", isSequence),
		kindTest("iterable", isIterable),
		kindTest("callable", isCallable),
		{"odd", "value", func(s *state, a []any) any {
			return s.compare("==", s.calculate("%", a[0], int64(2)), int64(1))
		}},
		{"even", "value", func(s *state, a []any) any {
			return s.compare("==", s.calculate("%", a[0], int64(2)), int64(0))
		}},
		{"divisibleby", "value, num", func(s *state, a []any) any {
			return s.compare("==", s.calculate("%", a[0], a[1]), int64(0))
		}},
		{"lower", "value", func(s *state, a []any) any { return cased(s.text(a[0]), pytext.Lower) }},
		{"upper", "value", func(s *state, a []any) any { return cased(s.text(a[0]), pytext.Upper) }},
		{"filter", "value", func(s *state, a []any) any { return isName(s, filters, a[0]) }},
		{"test", "value", func(s *state, a []any) any { return isName(s, tests, a[0]) }},
		{"sameas", "value, other", func(s *state, a []any) any { return s.same(a[0], a[1]) }},
		{"in", "value, seq", func(s *state, a []any) any { return s.contains(a[1], a[0]) }},
		compared("== eq equalto", "=="), compared("!= ne", "!="),
		compared("< lt lessthan", "<"), compared("<= le", "<="),
		compared("> gt greaterthan", ">"), compared(">= ge", ">="),
	})
}

func isName(s *state, table map[string]builtin, v any) bool {
	s.hashable(v)
	name, ok := isText(v)
	_, known := table[name]
	return ok && known
}

// isSequence reports whether a value has a length and can be indexed.
func isSequence(v any) bool {
	if l, ok := v.(*list); ok {
		return sequences[l.Kind].indexed
	}
	_, text := isText(v)
	return text || isA[*dict](v) || isA[undefined](v)
}

func isIterable(v any) bool { return isSequence(v) || isA[*list](v) || isA[*iterator](v) }

func isCallable(v any) bool {
	o, ok := v.(*object)
	return ok && o.call != nil || isA[*function](v) || isA[undefined](v)
}

// same reports whether two values are the same object in Python's sense. Equal integers and equal strings
// count as the same object.
func (s *state) same(a, b any) bool {
	switch a.(type) {
	case undefined, float64:
		return false
	case bool, nil:
		return a == b
	}
	_, text := isText(a)
	if text || isWhole(a) {
		return !isA[bool](b) && !isA[float64](b) && s.equal(a, b)
	}
	return a == b
}

// cased reports whether a string contains letters with a case and `fold` does not change the string.
func cased(v string, fold func(string) string) bool {
	return v == fold(v) && pytext.Lower(v) != pytext.Upper(v)
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")
