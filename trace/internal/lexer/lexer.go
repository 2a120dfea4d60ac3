// Package lexer divides JSON that arrives piece by piece into values, without decoding them. It does not
// check whether the values are valid JSON.
package lexer

// MostDepth is the maximum depth to which lists and objects may be nested. It is the same as in
// encoding/json.
const MostDepth = 10_000

// Value finds the end of a JSON value. The zero Value is at the beginning of a value.
type Value struct {
	String
	depth int
	Bare  bool // the value has no quotes or brackets; it ends before the next delimiter
}

// TooDeep reports whether lists and objects are nested deeper than MostDepth.
func (v *Value) TooDeep() bool { return v.depth > MostDepth }

// Next returns how many of the bytes p belong to the value, and whether the value ends there.
func (v *Value) Next(p []byte) (n int, whole bool) {
	for i := 0; i < len(p); i++ {
		if v.Quoted {
			i += v.End(p[i:]) - 1
			if !v.Quoted && v.depth == 0 {
				return i + 1, true
			}
			continue
		}
		switch p[i] {
		case '"':
			v.Quoted = true
		case '{', '[':
			if v.depth++; v.depth > MostDepth {
				return i, false
			}
		case '}', ']':
			if v.Bare {
				return i, true
			}
			if v.depth--; v.depth == 0 {
				return i + 1, true
			}
		case ' ', '\n', ',', ':':
			if v.depth == 0 {
				return i, true
			}
		default:
			v.Bare = v.depth == 0
		}
	}
	return len(p), false
}

// String finds the end of a JSON string.
type String struct {
	Quoted  bool // inside a string
	escaped bool // directly after a backslash
}

// End returns how many of the bytes p belong to the current string.
func (q *String) End(p []byte) int {
	for i := 0; i < len(p); i++ {
		switch {
		case q.escaped:
			q.escaped = false
		case p[i] == '\\':
			q.escaped = true
		case p[i] == '"':
			q.Quoted = false
			return i + 1
		}
	}
	return len(p)
}
