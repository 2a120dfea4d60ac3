package chat

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type filter func(s *state, v any, a args) any

// builtinFilters are the filters by name. A filter that has the name of a method of Python is that method.
var builtinFilters map[string]filter

func init() { // some of them look others up
	builtinFilters = map[string]filter{
		"trim": func(s *state, v any, a args) any {
			text := s.text(v)
			return strings.Trim(text, s.cutset(text, a.or(0, "chars", nil)))
		},
		"upper":      func(s *state, v any, _ args) any { return strings.ToUpper(s.text(v)) },
		"lower":      func(s *state, v any, _ args) any { return strings.ToLower(s.text(v)) },
		"title":      func(s *state, v any, _ args) any { return headline(s.text(v)) },
		"capitalize": func(s *state, v any, _ args) any { return capitalize(s.text(v)) },
		"string":     func(s *state, v any, _ args) any { return s.text(v) },
		"safe":       func(s *state, v any, _ args) any { return s.text(v) },
		"escape":     escape, "e": escape,
		"length": length, "count": length,
		"int": toInt, "float": toFloat, "abs": absolute, "round": round,
		"list": func(s *state, v any, _ args) any { return s.copied(s.items(v)) },
		"first": func(s *state, v any, _ args) any {
			return s.item(&list{items: s.items(v)}, int64(0))
		},
		"last": func(s *state, v any, _ args) any {
			return s.item(&list{items: s.items(v)}, int64(-1))
		},
		"join": join, "replace": func(s *state, v any, a args) any { return s.replace(s.text(v), a) },
		"default": otherwise, "d": otherwise, "indent": indent, "reverse": reverse, "sort": sorted,
		"unique": unique, "sum": sum, "format": format, "tojson": tojson, "items": items,
		"dictsort": dictsort,
		"min":      func(s *state, v any, a args) any { return s.extreme(v, a, -1) },
		"max":      func(s *state, v any, a args) any { return s.extreme(v, a, 1) },
		"attr":     func(s *state, v any, a args) any { return s.attribute(v, s.string(a.at(0))) },
		"map":      mapped,
		"select":   chosen(false, true), "reject": chosen(false, false),
		"selectattr": chosen(true, true), "rejectattr": chosen(true, false),
	}
}

// headline has each word begin with a capital, as the filter title does: words end at space and brackets.
func headline(v string) string {
	starts := true
	return strings.Map(func(r rune) rune {
		was := starts
		if starts = strings.ContainsRune(space+"-({[<", r); was {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, v)
}

// copied is a list of items of its own.
func (s *state) copied(items []any) *list {
	s.spend(16 * len(items))
	return &list{items: slices.Clone(items)}
}

func escape(s *state, v any, _ args) any {
	text := s.text(v)
	s.spend(5 * len(text))
	return htmlEscapes.Replace(text)
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func length(s *state, v any, _ args) any {
	if text, ok := v.(string); ok {
		s.spend(len(text))
		return int64(utf8.RuneCountInString(text))
	}
	return int64(len(s.items(v)))
}

func toInt(s *state, v any, a args) any {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case string:
		s.spend(len(v))
		if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
			return n
		}
		if x, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return int64(x)
		}
	}
	if n, ok := whole(v); ok {
		return n
	}
	return a.or(0, "default", int64(0))
}

func toFloat(s *state, v any, a args) any {
	if text, ok := v.(string); ok {
		s.spend(len(text))
		if x, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			return x
		}
	}
	if x, ok := real(v); ok {
		return x
	}
	return a.or(0, "default", 0.0)
}

func absolute(s *state, v any, _ args) any {
	if n, ok := whole(v); ok {
		return max(n, -n)
	}
	return math.Abs(s.real(v))
}

// real is a value that must be a number.
func (s *state) real(v any) float64 {
	x, ok := real(v)
	if !ok {
		fail(s.line, "want a number, not %s", typeName(v))
	}
	return x
}

func round(s *state, v any, a args) any {
	method := a.or(1, "method", "common")
	if n, ok := whole(v); ok && method == "common" {
		return n
	}
	digits, _ := whole(a.or(0, "precision", int64(0)))
	scale := math.Pow(10, float64(digits))
	x := s.real(v) * scale
	switch method {
	case "ceil":
		return math.Ceil(x) / scale
	case "floor":
		return math.Floor(x) / scale
	}
	return math.RoundToEven(x) / scale
}

// of is what an item has under a dotted name, the item itself where there is none.
func (s *state) of(item any, name any) any {
	if name == nil {
		return item
	}
	if n, ok := whole(name); ok {
		return s.item(item, n)
	}
	for part := range strings.SplitSeq(s.string(name), ".") {
		item = s.item(item, part)
	}
	return item
}

func join(s *state, v any, a args) any {
	between := s.text(a.or(0, "d", ""))
	var b strings.Builder
	for i, item := range s.items(v) {
		if i > 0 {
			b.WriteString(between)
		}
		text := s.text(s.of(item, a.or(1, "attribute", nil)))
		s.spend(len(between))
		b.WriteString(text)
	}
	return b.String()
}

func otherwise(_ *state, v any, a args) any {
	_, missing := v.(undefined)
	if missing || truth(a.or(1, "boolean", false)) && !truth(v) {
		return a.or(0, "default_value", "")
	}
	return v
}

func indent(s *state, v any, a args) any {
	by := strings.Repeat(" ", 4)
	switch w := a.or(0, "width", int64(4)).(type) {
	case string:
		by = w
	case int64:
		by = s.repeat(" ", w).(string)
	}
	first, blank := truth(a.or(1, "first", false)), truth(a.or(2, "blank", false))
	lines := strings.Split(s.text(v), "\n")
	for i, line := range lines {
		if (i > 0 || first) && (line != "" || blank || i == 0) {
			s.spend(len(by) + len(line))
			lines[i] = by + line
		}
	}
	return strings.Join(lines, "\n")
}

func reverse(s *state, v any, _ args) any { return s.slice(v, nil, nil, int64(-1)) }

// key is what a value is ordered by: where case does not count, as it is lower.
func (s *state) key(v any, a args, nth int) any {
	if text, ok := v.(string); ok && !truth(a.or(nth, "case_sensitive", false)) {
		s.spend(len(text))
		return strings.ToLower(text)
	}
	return v
}

func sorted(s *state, v any, a args) any {
	out := s.copied(s.items(v))
	slices.SortStableFunc(out.items, func(x, y any) int {
		name := a.or(2, "attribute", nil)
		s.spend(1)
		c := s.order(s.key(s.of(x, name), a, 1), s.key(s.of(y, name), a, 1))
		if truth(a.or(0, "reverse", false)) {
			return -c
		}
		return c
	})
	return out
}

func unique(s *state, v any, a args) any {
	seen, out := &list{}, &list{}
	for _, item := range s.items(v) {
		key := s.key(s.of(item, a.or(1, "attribute", nil)), a, 0)
		if !s.contains(seen, key) {
			seen.items, out.items = append(seen.items, key), append(out.items, item)
		}
	}
	return out
}

func sum(s *state, v any, a args) any {
	total := a.or(1, "start", int64(0))
	for _, item := range s.items(v) {
		total = s.calculate(token{opToken, "+", s.line}, total, s.of(item, a.or(0, "attribute", nil)))
	}
	return total
}

func format(s *state, v any, a args) any { return s.format(s.text(v), &list{a.list, true}) }

func items(s *state, v any, _ args) any {
	switch v := v.(type) {
	case undefined:
		return &list{}
	case *dict:
		s.spend(32 * len(v.keys))
		return &list{items: v.pairs()}
	}
	fail(s.line, "want a dict, not %s", typeName(v))
	return nil
}

func dictsort(s *state, v any, a args) any {
	out := items(s, v, a).(*list)
	by := 0
	if a.or(1, "by", "key") == "value" {
		by = 1
	}
	slices.SortStableFunc(out.items, func(x, y any) int {
		s.spend(1)
		return s.order(s.key(x.(*list).items[by], a, 0), s.key(y.(*list).items[by], a, 0))
	})
	return out
}

// extreme is the least or the most of the items, undefined where there are none.
func (s *state) extreme(v any, a args, sign int) any {
	items := s.items(v)
	if len(items) == 0 {
		return undefined{"the extreme of nothing"}
	}
	key := func(item any) any { return s.key(s.of(item, a.or(1, "attribute", nil)), a, 0) }
	return slices.MaxFunc(items, func(x, y any) int {
		s.spend(1)
		return sign * s.order(key(x), key(y))
	})
}

// several are the items for a filter that takes whatever is false for none.
func (s *state) several(v any) []any {
	if !truth(v) {
		return nil
	}
	return s.items(v)
}

// mapped is an attribute of each item, or what a filter makes of each.
func mapped(s *state, v any, a args) any {
	defer s.nest("filters call one another")()
	out := s.copied(s.several(v))
	name, byName := a.named["attribute"]
	f, ok := builtinFilters[s.text(a.or(0, "", ""))]
	if !byName && !ok {
		fail(s.line, "map: there is no filter %q", s.text(a.at(0)))
	}
	for i, item := range out.items {
		if !byName {
			out.items[i] = f(s, item, args{a.list[1:], a.named})
			continue
		}
		out.items[i] = s.of(item, name)
		if _, missing := out.items[i].(undefined); missing {
			out.items[i] = args{named: a.named}.or(0, "default", out.items[i])
		}
	}
	return out
}

// chosen are the items, or those with an attribute, for which a test holds or does not.
func chosen(byAttribute, want bool) filter {
	return func(s *state, v any, a args) any {
		out := &list{}
		rest := a.list
		var name any
		if byAttribute {
			name = a.at(0)
			rest = rest[min(1, len(rest)):]
		}
		holds := func(item any) bool { return truth(item) }
		if len(rest) > 0 {
			test, ok := builtinTests[s.text(rest[0])]
			if !ok {
				fail(s.line, "there is no test %q", s.text(rest[0]))
			}
			holds = func(item any) bool { return test(s, item, args{rest[1:], a.named}) }
		}
		for _, item := range s.several(v) {
			s.spend(8)
			if holds(s.of(item, name)) == want {
				out.items = append(out.items, item)
			}
		}
		return out
	}
}
