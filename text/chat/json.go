package chat

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"

	"gpuscope/text/chat/internal/raise"
)

// jsonForm is the layout of JSON text. Its fields are the arguments of Python's json.dumps.
type jsonForm struct {
	lines       bool   // each item is on a separate line
	indent      string // indentation per level
	item, value string // separators
	sorted      bool
	ascii       bool
}

func tojson(s *state, a []any) any {
	form := jsonForm{item: ", ", value: ": ", ascii: truth(a[1]), sorted: truth(a[4])}
	if a[2] != nil {
		form.lines, form.item = true, ","
		if indent, ok := isText(a[2]); ok {
			form.indent = indent
		} else {
			form.indent = s.repeat(" ", s.whole(a[2])).(string)
		}
	}
	if a[3] != nil {
		both := s.items(a[3])
		if len(both) != 2 {
			raise.At(s.line, "tojson: %d separators, want 2", len(both))
		}
		form.item, form.value = s.string(both[0]), s.string(both[1])
	}
	var b strings.Builder
	s.json(&b, &form, a[0], 0)
	return b.String()
}

func (s *state) json(b *strings.Builder, form *jsonForm, v any, depth int) {
	s.spend(8 + len(form.indent)*depth + len(form.item) + len(form.value))
	line := func(depth int) {
		if form.lines {
			b.WriteString("\n" + strings.Repeat(form.indent, depth))
		}
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(jsonFloat(v))
	case string, markup:
		b.WriteString(jsonString(s.text(v), form.ascii))
	case *list:
		if sequences[v.Kind].like > aTuple {
			raise.At(s.line, "tojson: %s cannot be converted to JSON", typeName(v))
		}
		defer s.nest(deepValues)()
		b.WriteString("[")
		for i, item := range v.items {
			if i > 0 {
				b.WriteString(form.item)
			}
			line(depth + 1)
			s.json(b, form, item, depth+1)
		}
		if len(v.items) > 0 {
			line(depth)
		}
		b.WriteString("]")
	case *dict:
		defer s.nest(deepValues)()
		pairs := v.pairs()
		if form.sorted {
			pairs = s.sorted(pairs, false, func(v any) any { return v.(*list).items[0] }).items
		}
		b.WriteString("{")
		for i, pair := range pairs {
			if i > 0 {
				b.WriteString(form.item)
			}
			line(depth + 1)
			b.WriteString(jsonString(s.jsonKey(pair.(*list).items[0]), form.ascii) + form.value)
			s.json(b, form, pair.(*list).items[1], depth+1)
		}
		if len(pairs) > 0 {
			line(depth)
		}
		b.WriteString("}")
	default:
		raise.At(s.line, "tojson: %s cannot be converted to JSON", typeName(v))
	}
}

// jsonKey converts the key of a dict to text.
func (s *state) jsonKey(v any) string {
	switch v := v.(type) {
	case string, markup:
		return s.text(v)
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return jsonFloat(v)
	}
	raise.At(s.line, "tojson: %s cannot be a JSON key", typeName(v))
	return ""
}

func jsonFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return float(v)
}

var jsonEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`,
}

func jsonString(v string, ascii bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range v {
		switch e, ok := jsonEscapes[r]; {
		case ok:
			b.WriteString(e)
		case r < 0x20, ascii && r >= 0x7f && r < 0x10000:
			b.WriteString(`\u` + hex(r, 4))
		case ascii && r >= 0x7f:
			high, low := utf16.EncodeRune(r)
			b.WriteString(`\u` + hex(high, 4) + `\u` + hex(low, 4))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
