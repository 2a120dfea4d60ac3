package chat

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

func sortedNames(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// jsonForm is how a value is written as JSON: as json.dumps does with ensure_ascii off, keys in their order.
type jsonForm struct {
	indent      string // "" for one line
	item, value string // separators
	sorted      bool
}

func tojson(s *state, v any, a args) any {
	form := jsonForm{item: ", ", value: ": ", sorted: truth(a.or(3, "sort_keys", false))}
	switch n := a.or(1, "indent", nil).(type) {
	case int64:
		form.indent, form.item = s.repeat(" ", n).(string), ","
	case string:
		form.indent, form.item = n, ","
	}
	if l, ok := a.or(2, "separators", nil).(*list); ok && len(l.items) == 2 {
		form.item, form.value = s.string(l.items[0]), s.string(l.items[1])
	}
	var b strings.Builder
	s.json(&b, &form, v, 0)
	return b.String()
}

func (s *state) json(b *strings.Builder, form *jsonForm, v any, depth int) {
	s.spend(8 + len(form.indent)*depth + len(form.item) + len(form.value))
	line := func(depth int) {
		if form.indent != "" {
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
	case string:
		s.spend(len(v))
		b.WriteString(jsonString(v))
	case *list:
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
			slices.SortStableFunc(pairs, func(x, y any) int { return s.order(x, y) })
		}
		b.WriteString("{")
		for i, pair := range pairs {
			if i > 0 {
				b.WriteString(form.item)
			}
			line(depth + 1)
			b.WriteString(jsonString(s.text(pair.(*list).items[0])) + form.value)
			s.json(b, form, pair.(*list).items[1], depth+1)
		}
		if len(pairs) > 0 {
			line(depth)
		}
		b.WriteString("}")
	default:
		fail(s.line, "tojson: %s is not for JSON", typeName(v))
	}
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

func jsonString(v string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range v {
		switch e, ok := jsonEscapes[r]; {
		case ok:
			b.WriteString(e)
		case r < 0x20:
			b.WriteString(`\u` + hex(r, 4))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
