package chat

import (
	"cmp"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"gpuscope/text/chat/internal/pytext"
	"gpuscope/text/chat/internal/raise"
)

// real returns a number or a bool as a float.
func real(v any) (float64, bool) {
	if n, ok := whole(v); ok {
		return float64(n), true
	}
	x, ok := v.(float64)
	return x, ok
}

// whole returns an integer or a bool as an integer. A float is not accepted, even without a fraction.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

func isWhole(v any) bool {
	_, ok := whole(v)
	return ok
}

func isNumber(v any) bool { return isWhole(v) || isA[float64](v) }

// whole returns v as an integer. Any other type is an error.
func (s *state) whole(v any) int64 {
	n, ok := whole(v)
	if !ok {
		raise.At(s.line, "expected a whole number, but got %s", typeName(v))
	}
	return n
}

// real returns v as a float. A value that is not a number is an error.
func (s *state) real(v any) float64 {
	x, ok := real(v)
	if !ok {
		raise.At(s.line, "want a number, not %s", typeName(v))
	}
	return x
}

// unordered is the result of compareNumbers if one of the numbers is NaN.
const unordered = 2

func compareNumbers(a, b any) int {
	x, ok := whole(a)
	if y, also := whole(b); ok && also {
		return cmp.Compare(x, y)
	}
	p, _ := real(a)
	q, _ := real(b)
	if math.IsNaN(p) || math.IsNaN(q) {
		return unordered
	}
	return cmp.Compare(p, q)
}

func (s *state) negative(v any) any {
	if x, ok := v.(float64); ok {
		return -x
	}
	return s.wholes("-", 0, s.whole(v))
}

func (s *state) positive(v any) any {
	if x, ok := v.(float64); ok {
		return x
	}
	return s.whole(v)
}

// wholes computes x op y for integers. A result that does not fit into 64 bits is an error, unlike in
// Python.
func (s *state) wholes(op string, x, y int64) any {
	v, fits := int64(0), true
	switch op {
	case "+":
		v = x + y
		fits = (v > x) == (y > 0)
	case "-":
		v = x - y
		fits = (v < x) == (y > 0)
	case "*":
		v, fits = product(x, y)
	case "//", "%":
		if y == 0 {
			raise.At(s.line, "division by zero")
		}
		quotient, rest := x/y, x%y
		if rest != 0 && (rest < 0) != (y < 0) {
			quotient, rest = quotient-1, rest+y
		}
		if op == "%" {
			return rest
		}
		v, fits = quotient, x != math.MinInt64 || y != -1
	case "**":
		if y < 0 {
			return s.reals(op, float64(x), float64(y))
		}
		v, fits = power(x, y)
	default:
		return s.reals(op, float64(x), float64(y))
	}
	if !fits {
		raise.At(s.line, "the result of %d %s %d does not fit into 64 bits", x, op, y)
	}
	return v
}

func product(x, y int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	if (x < 0) != (y < 0) {
		return -int64(low), high == 0 && low <= 1<<63
	}
	return int64(low), high == 0 && low < 1<<63
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func power(x, y int64) (v int64, fits bool) {
	if x == 0 || x == 1 || x == -1 { // the result depends only on whether y is odd or 0
		y = min(y, 2+y%2)
	}
	for v, fits = 1, true; y > 0 && fits; y-- {
		v, fits = product(v, x)
	}
	return v, fits
}

// reals computes x op y for floats.
func (s *state) reals(op string, x, y float64) any {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		switch v := math.Pow(x, y); {
		case x == 0 && y < 0:
			raise.At(s.line, "division by zero")
		case x < 0 && !math.IsInf(x, 0) && y != math.Trunc(y):
			raise.At(s.line, "%s ** %s is a complex number", float(x), float(y))
		case math.IsInf(v, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0):
			raise.At(s.line, "%s ** %s is too large", float(x), float(y))
		default:
			return v
		}
	}
	if y == 0 {
		raise.At(s.line, "division by zero")
	}
	if op == "/" {
		return x / y
	}
	rest := math.Mod(x, y)
	quotient := (x - rest) / y
	if rest == 0 {
		rest = math.Copysign(0, y)
	} else if (rest < 0) != (y < 0) {
		rest, quotient = rest+y, quotient-1
	}
	if op == "%" {
		return rest
	}
	if quotient == 0 {
		return math.Copysign(0, x/y)
	}
	if floor := math.Floor(quotient); quotient-floor <= 0.5 {
		return floor
	}
	return math.Ceil(quotient)
}

// truncated returns x without its fraction. It is an error if the result is outside of the range of int64.
func (s *state) truncated(x float64) int64 {
	if math.IsNaN(x) || x < -(1<<63) || x >= 1<<63 {
		raise.At(s.line, "%s cannot be converted to a 64-bit whole number", float(x))
	}
	return int64(x)
}

// parseWhole parses an integer as Python's int does. A base prefix such as 0x is accepted if `base` is 0 or
// matches the prefix. An integer that does not fit into 64 bits is an error.
func (s *state) parseWhole(text string, base int) (int64, bool) {
	digits, negative := strings.Trim(text, pytext.Space), false
	if rest, ok := strings.CutPrefix(digits, "-"); ok {
		digits, negative = rest, true
	} else {
		digits = strings.TrimPrefix(digits, "+")
	}
	for prefix, of := range map[string]int{"0b": 2, "0o": 8, "0x": 16} {
		if len(digits) > 2 && strings.EqualFold(digits[:2], prefix) && (base == of || base == 0) {
			digits, base = strings.TrimPrefix(digits[2:], "_"), of
		}
	}
	if base == 0 && strings.Trim(digits, "0_") != "" && strings.HasPrefix(digits, "0") {
		return 0, false
	}
	plain, ok := withoutUnderscores(digits)
	if !ok {
		return 0, false
	}
	if negative {
		plain = "-" + plain
	}
	n, err := strconv.ParseInt(plain, cmp.Or(base, 10), 64)
	if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
		raise.At(s.line, "the number %s does not fit into 64 bits", text)
	}
	return n, err == nil
}

// parseReal parses a float as Python's float does.
func parseReal(text string) (float64, bool) {
	plain, ok := withoutUnderscores(strings.Trim(text, pytext.Space))
	if !ok || strings.ContainsAny(plain, "xXpP") {
		return 0, false
	}
	x, err := strconv.ParseFloat(plain, 64)
	if err != nil && math.IsInf(x, 0) && !strings.ContainsAny(plain, "nN") {
		return x, true
	}
	return x, err == nil
}

// withoutUnderscores removes the underscores between digits. The bool is false if there are underscores
// elsewhere.
func withoutUnderscores(text string) (string, bool) {
	if strings.HasPrefix(text, "_") || strings.HasSuffix(text, "_") || strings.Contains(text, "__") ||
		strings.HasPrefix(text, "-") && strings.HasPrefix(text[1:], "_") || text == "" {
		return "", false
	}
	return strings.ReplaceAll(text, "_", ""), true
}
