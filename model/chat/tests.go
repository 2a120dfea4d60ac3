package chat

import (
	"reflect"
	"strings"
)

type test func(s *state, v any, a args) bool

// compared is a test that is a comparison.
func compared(op string) test {
	return func(s *state, v any, a args) bool { return s.compare(op, v, a.at(0)) }
}

// kindTest is a test of what a value is.
func kindTest(is func(v any) bool) test { return func(_ *state, v any, _ args) bool { return is(v) } }

// isA says whether a value is of a type.
func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func isInteger(v any) bool { return isA[int64](v) || isA[bool](v) }
func isNumber(v any) bool  { return isInteger(v) || isA[float64](v) }
func hasItems(v any) bool {
	return isA[*list](v) || isA[*dict](v) || isA[string](v) || isA[undefined](v)
}
func isCallable(v any) bool { return isA[callable](v) || isA[*recursion](v) }

// builtinTests are the tests by name.
var builtinTests = map[string]test{
	"defined":   kindTest(func(v any) bool { return !isA[undefined](v) }),
	"undefined": kindTest(isA[undefined]),
	"none":      kindTest(func(v any) bool { return v == nil }),
	"true":      kindTest(func(v any) bool { return v == true }),
	"false":     kindTest(func(v any) bool { return v == false }),
	"boolean":   kindTest(isA[bool]),
	"integer":   kindTest(isA[int64]),
	"float":     kindTest(isA[float64]),
	"number":    kindTest(isNumber),
	"string":    kindTest(isA[string]),
	"mapping":   kindTest(isA[*dict]),
	"sequence":  kindTest(hasItems),
	"iterable":  kindTest(hasItems),
	"callable":  kindTest(isCallable),
	"odd":       func(s *state, v any, _ args) bool { return s.whole(v)%2 != 0 },
	"even":      func(s *state, v any, _ args) bool { return s.whole(v)%2 == 0 },
	"divisibleby": func(s *state, v any, a args) bool {
		by := s.whole(a.at(0))
		if by == 0 {
			fail(s.line, "division by zero")
		}
		return s.whole(v)%by == 0
	},
	"lower": func(s *state, v any, _ args) bool { return cased(s.text(v), strings.ToLower) },
	"upper": func(s *state, v any, _ args) bool { return cased(s.text(v), strings.ToUpper) },
	"==":    compared("=="), "eq": compared("=="), "equalto": compared("=="),
	"sameas": func(s *state, v any, a args) bool { // 1 is not the same as true
		return reflect.TypeOf(v) == reflect.TypeOf(a.at(0)) && s.compare("==", v, a.at(0))
	},
	"!=": compared("!="), "ne": compared("!="),
	"<": compared("<"), "lt": compared("<"), "lessthan": compared("<"), "<=": compared("<="),
	"le": compared("<="),
	">":  compared(">"), "gt": compared(">"), "greaterthan": compared(">"), ">=": compared(">="),
	"ge": compared(">="),
	"in": compared("in"),
}

// whole is a value that must be a whole number.
func (s *state) whole(v any) int64 {
	n, ok := whole(v)
	if !ok {
		fail(s.line, "want a whole number, not %s", typeName(v))
	}
	return n
}
