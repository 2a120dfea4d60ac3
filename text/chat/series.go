package chat

import (
	"slices"
	"strings"
	"unicode/utf8"

	"gpuscope/text/chat/internal/pytext"
	"gpuscope/text/chat/internal/raise"
)

// seriesFilters returns the filters of lists, dicts and other values with items.
func seriesFilters() []row {
	return []row{
		{"length count", "obj, /", func(s *state, a []any) any {
			if text, ok := isText(a[0]); ok {
				s.spend(len(text))
				return int64(utf8.RuneCountInString(text))
			}
			return int64(len(s.sized(a[0])))
		}},
		{"list", "value", func(s *state, a []any) any { return s.copied(s.items(a[0])) }},
		{"first", "seq", func(s *state, a []any) any {
			if v, ok := s.iterate(a[0])(); ok {
				return v
			}
			return undefined{"the first item of an empty sequence"}
		}},
		{"last", "seq", func(s *state, a []any) any {
			if items := s.sized(a[0]); len(items) > 0 {
				if isA[markup](a[0]) {
					return marked(items[len(items)-1])
				}
				return items[len(items)-1]
			}
			return undefined{"the last item of an empty sequence"}
		}},
		{"join", "value, d='', attribute=None", func(s *state, a []any) any {
			items := a[0]
			if a[2] != nil {
				items = s.iterator(items, func(v any) (any, bool) { return s.of(v, a[2]), true })
			}
			return s.joined(s.text(a[1]), items)
		}},
		{"reverse", "value", func(s *state, a []any) any {
			if text, ok := isText(a[0]); ok {
				return s.sameKind(a[0], s.slice(text, nil, nil, int64(-1)).(string))
			}
			items := slices.Clone(s.items(a[0]))
			slices.Reverse(items)
			if isA[*iterator](a[0]) {
				return newList(items...)
			}
			return s.iterator(newList(items...), func(v any) (any, bool) { return v, true })
		}},
		{"sort", "value, reverse=False, case_sensitive=False, attribute=None", func(s *state, a []any) any {
			return s.sorted(s.items(a[0]), a[1], func(v any) any { return s.keys(v, a[3], a[2]) })
		}},
		{"dictsort", "value, case_sensitive=False, by='key', reverse=False", func(s *state, a []any) any {
			d, ok := a[0].(*dict)
			at := slices.Index([]any{"key", "value"}, a[2])
			if !ok || at < 0 {
				raise.At(s.line, "dictsort: cannot sort %s by %q; want key or value", typeName(a[0]),
					s.text(a[2]))
			}
			return s.sorted(d.pairs(), a[3], func(v any) any { return s.folded(v.(*list).items[at], a[1]) })
		}},
		{"unique", "value, case_sensitive=False, attribute=None", func(s *state, a []any) any {
			seen := &list{}
			return s.iterator(a[0], func(v any) (any, bool) {
				key := s.folded(s.of(v, a[2]), a[1])
				s.hashable(key)
				if s.contains(seen, key) {
					return nil, false
				}
				seen.items = append(seen.items, key)
				return v, true
			})
		}},
		{"groupby", "value, attribute, default=None, case_sensitive=False", groupBy},
		{"sum", "iterable, attribute=None, start=0", func(s *state, a []any) any {
			if _, ok := isText(a[2]); ok {
				raise.At(s.line, "sum: the start value must not be a string")
			}
			total := a[2]
			for _, item := range s.items(a[0]) {
				total = s.calculate("+", total, s.of(item, a[1]))
			}
			return total
		}},
		{"min", "value, case_sensitive=False, attribute=None", extreme(-1)},
		{"max", "value, case_sensitive=False, attribute=None", extreme(1)},
		{"items", "value", func(s *state, a []any) any {
			return s.generated(func() []any {
				switch v := a[0].(type) {
				case undefined:
					return nil
				case *dict:
					s.spend(32 * len(v.keys))
					return v.pairs()
				}
				raise.At(s.line, "items: the value must be a dict, not %s", typeName(a[0]))
				return nil
			})
		}},
		{"batch", "value, linecount, fill_with=None", func(s *state, a []any) any {
			return s.generated(func() []any { return s.batches(a) })
		}},
		{"slice", "value, slices, fill_with=None", func(s *state, a []any) any {
			return s.generated(func() []any { return s.slices(a) })
		}},
		{"map", "value, *args, **kwargs", mapped},
		{"select", "value, *args, **kwargs", chosen(false, true)},
		{"reject", "value, *args, **kwargs", chosen(false, false)},
		{"selectattr", "value, *args, **kwargs", chosen(true, true)},
		{"rejectattr", "value, *args, **kwargs", chosen(true, false)},
	}
}

// generated returns an iterator over the items that `generate` returns. It calls `generate` when the first
// item is requested.
func (s *state) generated(generate func() []any) *iterator {
	var items []any
	begun := false
	return &iterator{func() (any, bool) {
		if !begun {
			items, begun = generate(), true
		}
		if len(items) == 0 {
			return nil, false
		}
		item := items[0]
		items = items[1:]
		return item, true
	}}
}

// `of` returns an attribute of an item. `name` is the name of the attribute and may contain dots. If `name`
// is None, `of` returns the item itself.
func (s *state) of(item, name any) any { return s.ofOr(item, name, nil) }

// ofOr does the same as `of`, but replaces an undefined attribute by the default `otherwise`. If `otherwise`
// is None, there is no default.
func (s *state) ofOr(item, name, otherwise any) any {
	for _, part := range s.path(name) {
		if item = s.item(item, part); isA[undefined](item) && otherwise != nil {
			item = otherwise
		}
	}
	return item
}

// path splits a dotted name into keys.
func (s *state) path(name any) []any {
	text, ok := isText(name)
	switch {
	case name == nil:
		return nil
	case !ok:
		return []any{name}
	}
	var parts []any
	for part := range strings.SplitSeq(text, ".") {
		s.spend(8)
		if n, ok := s.parseWhole(part, 10); ok && every(pytext.IsDigit)(s, []any{part}).(bool) {
			parts = append(parts, n)
		} else {
			parts = append(parts, part)
		}
	}
	return parts
}

func (s *state) joined(between string, items any) string {
	var b strings.Builder
	for i, item := range s.items(items) {
		if i > 0 {
			b.WriteString(between)
		}
		text := s.text(item)
		s.spend(1 + len(between))
		b.WriteString(text)
	}
	return b.String()
}

// folded returns the value to use in comparisons: strings in lower case if the comparison ignores case.
func (s *state) folded(v, caseSensitive any) any {
	if text, ok := isText(v); ok && !truth(caseSensitive) {
		s.spend(len(text))
		return pytext.Lower(text)
	}
	return v
}

// keys returns the sort key of v. The string `names` lists the attributes of v that form the key, separated
// by commas. If `names` is None, the key is v itself.
func (s *state) keys(v, names, caseSensitive any) any {
	split := []any{names}
	if text, ok := isText(names); ok {
		split = nil
		for name := range strings.SplitSeq(text, ",") {
			split = append(split, name)
		}
	}
	out := make([]any, len(split))
	for i, name := range split {
		out[i] = s.folded(s.of(v, name), caseSensitive)
	}
	return newList(out...)
}

// sorted returns a list sorted by key. The sort is stable, also in reverse.
func (s *state) sorted(items []any, reverse any, key func(any) any) *list {
	s.spend(16 * len(items))
	type entry struct{ key, item any }
	entries := make([]entry, len(items))
	for i, item := range items {
		entries[i] = entry{key(item), item}
	}
	backwards := s.whole(reverse) != 0
	slices.SortStableFunc(entries, func(x, y entry) int {
		s.spend(1)
		if backwards {
			return s.order(y.key, x.key)
		}
		return s.order(x.key, y.key)
	})
	out := &list{items: make([]any, len(entries))}
	for i, e := range entries {
		out.items[i] = e.item
	}
	return out
}

func groupBy(s *state, a []any) any {
	of := func(v any) any { return s.ofOr(v, a[1], a[2]) }
	key := func(v any) any { return s.folded(of(v), a[3]) }
	out := &list{}
	for _, item := range s.sorted(s.items(a[0]), false, key).items {
		s.spend(16)
		if n := len(out.items); n > 0 {
			group := out.items[n-1].(*list).items[1].(*list)
			if s.equal(key(group.items[0]), key(item)) {
				group.items = append(group.items, item)
				continue
			}
		}
		out.items = append(out.items, &list{items: []any{of(item), newList(item)}, Kind: aGroup})
	}
	return out
}

// extreme returns the implementation of the filter min or max. If there are no items, the filter returns an
// undefined value.
func extreme(sign int) func(*state, []any) any {
	return func(s *state, a []any) any {
		var best, bestKey any = undefined{"the min or max of an empty sequence"}, nil
		for i, item := range s.items(a[0]) {
			key := s.folded(s.of(item, a[2]), a[1])
			s.spend(1)
			if i == 0 || s.order(key, bestKey) == sign {
				best, bestKey = item, key
			}
		}
		return best
	}
}

func (s *state) batches(a []any) (out []any) {
	size := s.whole(a[1])
	var batch []any
	items := s.items(a[0])
	for i, item := range items {
		if i > 0 && int64(len(batch)) == size {
			out, batch = append(out, newList(batch...)), nil
		}
		s.spend(16)
		batch = append(batch, item)
	}
	if len(items) == 0 {
		return nil
	}
	if a[2] != nil && int64(len(batch)) < size {
		s.spendWidth(size)
		batch = append(batch, slices.Repeat([]any{a[2]}, int(size)-len(batch))...)
	}
	return append(out, newList(batch...))
}

func (s *state) slices(a []any) (out []any) {
	items, n := s.items(a[0]), s.whole(a[1])
	if n == 0 {
		raise.At(s.line, "division by zero")
	}
	s.spendWidth(n)
	each, extra := int64(len(items))/max(n, 1), int64(len(items))%max(n, 1)
	at := int64(0)
	for i := range n {
		end := at + each
		if i < extra {
			end++
		}
		part := s.copied(items[at:end])
		if a[2] != nil && i >= extra {
			part.items = append(part.items, a[2])
		}
		out, at = append(out, part), end
	}
	return out
}

// mapped implements map, which returns an attribute of each item or applies a filter to each item.
func mapped(s *state, a []any) any {
	given := args{a[1].(*list).items, *a[2].(*dict)}
	if !truth(a[0]) {
		return s.generated(func() []any { return nil })
	}
	if name, ok := given.take("attribute"); ok && len(given.list) == 0 {
		otherwise, _ := given.take("default")
		return s.iterator(a[0], func(item any) (any, bool) {
			for _, name := range given.named.keys {
				raise.At(s.line, "map: unknown argument %s", name)
			}
			return s.ofOr(item, name, otherwise), true
		})
	}
	given = args{a[1].(*list).items, *a[2].(*dict)}
	return s.iterator(a[0], func(item any) (any, bool) {
		if len(given.list) == 0 {
			raise.At(s.line, "map: the argument that names a filter is missing")
		}
		return s.invoke(s.filter(s.text(given.list[0])), item, args{given.list[1:], given.named}), true
	})
}

// chosen implements select, reject, selectattr and rejectattr. These filters apply a test to each item, or to
// an attribute of the item. They keep the items for which the test returns `want`.
func chosen(byAttribute, want bool) func(*state, []any) any {
	return func(s *state, a []any) any {
		if !truth(a[0]) {
			return s.generated(func() []any { return nil })
		}
		rest := a[1].(*list).items
		return s.iterator(a[0], func(item any) (any, bool) {
			rest, v := rest, item
			if byAttribute {
				if len(rest) == 0 {
					raise.At(s.line, "the argument that names an attribute is missing")
				}
				v, rest = s.of(item, rest[0]), rest[1:]
			}
			if len(rest) == 0 {
				return item, truth(v) == want
			}
			holds := s.invoke(s.test(s.text(rest[0])), v, args{rest[1:], *a[2].(*dict)})
			return item, truth(holds) == want
		})
	}
}
