package tokenizer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// charset is a set of characters, stored as sorted ranges that do not touch.
type charset []charRange

type charRange struct{ first, last rune }

var everything = charset{{0, unicode.MaxRune}}

// chars returns the set of the characters in the given ranges.
func chars(ranges ...charRange) charset {
	slices.SortFunc(ranges, func(a, b charRange) int { return cmp.Compare(a.first, b.first) })
	var s charset
	for _, r := range ranges {
		if n := len(s); n > 0 && r.first <= s[n-1].last+1 {
			s[n-1].last = max(s[n-1].last, r.last)
		} else {
			s = append(s, r)
		}
	}
	return s
}

// `only` returns the set that consists of the given characters.
func only(list ...rune) charset {
	ranges := make([]charRange, len(list))
	for i, r := range list {
		ranges[i] = charRange{r, r}
	}
	return chars(ranges...)
}

// inTables returns the set of the characters in tables of package unicode.
func inTables(tables ...*unicode.RangeTable) charset {
	var ranges []charRange
	add := func(first, last, stride rune) {
		if stride == 1 {
			ranges = append(ranges, charRange{first, last})
			return
		}
		for r := first; r <= last; r += stride {
			ranges = append(ranges, charRange{r, r})
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return chars(ranges...)
}

// search returns the index of the range that begins with r, or the index at which such a range would be
// inserted.
func (s charset) search(r rune) (i int, found bool) {
	return slices.BinarySearchFunc(s, r, func(c charRange, r rune) int { return cmp.Compare(c.first, r) })
}

func (s charset) has(r rune) bool {
	i, found := s.search(r)
	return found || i > 0 && r <= s[i-1].last
}

func (s charset) or(others ...charset) charset { return chars(slices.Concat(append(others, s)...)...) }

func (s charset) not() charset {
	var out charset
	next := rune(0)
	for _, r := range s {
		if next < r.first {
			out = append(out, charRange{next, r.first - 1})
		}
		next = r.last + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, charRange{next, unicode.MaxRune})
	}
	return out
}

func (s charset) and(other charset) charset { return s.not().or(other.not()).not() }

// holds reports whether the set contains all characters of another set.
func (s charset) holds(other charset) bool {
	for _, r := range other {
		i, found := s.search(r.first)
		if !found {
			i--
		}
		if i < 0 || s[i].last < r.last {
			return false
		}
	}
	return true
}

// folding returns all characters that also exist in another case.
var folding = sync.OnceValue(func() (list []rune) {
	for r := rune(0); r <= 0x1ffff; r++ {
		if unicode.SimpleFold(r) != r {
			list = append(list, r)
		}
	}
	return list
})

// folded returns the characters of the set in all of their cases.
func (s charset) folded() charset {
	var more []rune
	for _, r := range folding() {
		if s.has(r) {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				more = append(more, f)
			}
		}
	}
	return s.or(only(more...))
}

// namedSet is a set for which the regular-expression engine has a name.
type namedSet struct {
	name string
	set  charset
}

// engineSets returns the named sets that a class may use: first whole categories, then their parts, then
// scripts.
var engineSets = sync.OnceValue(func() (list []namedSet) {
	add := func(tables map[string]*unicode.RangeTable, want func(string) bool) {
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			if want(name) {
				list = append(list, namedSet{`\p{` + name + `}`, inTables(tables[name])})
			}
		}
	}
	for n := 1; n <= 2; n++ {
		add(unicode.Categories, func(name string) bool { return len(name) == n })
	}
	add(unicode.Scripts, func(string) bool { return true })
	return list
})

// class returns the set as a character class for the regular-expression engine. The class has as few items as
// possible, because the engine compares a character with one item after the other.
func (s charset) class() string {
	plain, n := s.items()
	negated, m := s.not().items()
	if len(s) > 0 && n <= m {
		return "[" + plain + "]"
	}
	if negated == "" {
		return `[\s\S]`
	}
	return "[^" + negated + "]"
}

// items returns the set as a text of named sets and ranges, and the number of these sets and ranges.
func (s charset) items() (text string, count int) {
	const few = 6 // write a set with at most this many ranges without named sets
	var b strings.Builder
	rest := s
	if len(rest) > few {
		for _, named := range engineSets() {
			if len(rest) <= few {
				break
			}
			if s.holds(named.set) && rest.overlaps(named.set) {
				b.WriteString(named.name)
				rest = rest.and(named.set.not())
				count++
			}
		}
	}
	for _, r := range rest {
		b.WriteString(escapeRune(r.first))
		if r.last > r.first {
			b.WriteString("-" + escapeRune(r.last))
		}
	}
	return b.String(), count + len(rest)
}

func (s charset) overlaps(other charset) bool {
	for i, j := 0, 0; i < len(s) && j < len(other); {
		switch {
		case s[i].last < other[j].first:
			i++
		case other[j].last < s[i].first:
			j++
		default:
			return true
		}
	}
	return false
}

// escapeRune escapes a character so that the engine reads it literally, inside and outside of classes.
func escapeRune(r rune) string {
	switch {
	case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9':
		return string(r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}

// The characters in Oniguruma's classes, from Go's tables for Unicode 15.
var (
	alphabetic = sync.OnceValue(func() charset {
		return inTables(unicode.L, unicode.Nl, unicode.Other_Alphabetic)
	})
	alphanumeric = sync.OnceValue(func() charset { return alphabetic().or(inTables(unicode.Nd)) })
	wordChars    = sync.OnceValue(func() charset {
		return alphanumeric().or(inTables(unicode.M, unicode.Pc))
	})
	// \w also contains the superscripts and fractions of Latin-1; [[:word:]] does not.
	escapeW    = sync.OnceValue(func() charset { return wordChars().or(only('²', '³', '¹', '¼', '½', '¾')) })
	whiteSpace = sync.OnceValue(func() charset { return inTables(unicode.White_Space) })
	digits     = sync.OnceValue(func() charset { return inTables(unicode.Nd) })
	hexDigits  = sync.OnceValue(func() charset { return inTables(unicode.ASCII_Hex_Digit) })
	lower      = sync.OnceValue(func() charset { return inTables(unicode.Ll, unicode.Other_Lowercase) })
	upper      = sync.OnceValue(func() charset { return inTables(unicode.Lu, unicode.Other_Uppercase) })
	blank      = sync.OnceValue(func() charset { return inTables(unicode.Zs).or(only('\t')) })
	control    = sync.OnceValue(func() charset { return inTables(unicode.Cc) })
	ascii      = sync.OnceValue(func() charset { return chars(charRange{0, 0x7f}) })
	graph      = sync.OnceValue(func() charset {
		return whiteSpace().or(inTables(unicode.Cc, unicode.Cs, unicode.Cn)).not()
	})
	printing = sync.OnceValue(func() charset { return graph().or(inTables(unicode.Zs)) })
	marks    = sync.OnceValue(func() charset { return inTables(unicode.P, unicode.S) })
	assigned = sync.OnceValue(func() charset { return inTables(unicode.Cn).not() })
	anything = func() charset { return everything }
)

// brackets maps names to the classes [[:name:]].
var brackets = map[string]func() charset{
	"alnum": alphanumeric, "alpha": alphabetic, "ascii": ascii, "blank": blank, "cntrl": control,
	"digit": digits,
	"graph": graph, "lower": lower, "print": printing, "punct": marks, "space": whiteSpace, "upper": upper,
	"word": wordChars, "xdigit": hexDigits,
}

// properties maps names to the sets \p{name}, except categories and scripts. The names are normalized by
// propertyName.
var properties = map[string]func() charset{
	"alnum": alphanumeric, "alpha": alphabetic, "alphabetic": alphabetic, "any": anything, "ascii": ascii,
	"assigned": assigned, "blank": blank, "cntrl": control, "digit": digits, "graph": graph, "lower": lower,
	"lowercase": lower, "posixpunct": marks, "print": printing, "space": whiteSpace, "upper": upper,
	"uppercase": upper, "whitespace": whiteSpace, "word": escapeW, "xdigit": hexDigits,
	"extendedpictographic": func() charset { return pictographic },
}

// propertyTables maps names, normalized by propertyName, to categories and scripts.
var propertyTables = sync.OnceValue(func() map[string]*unicode.RangeTable {
	tables := map[string]*unicode.RangeTable{}
	for name, table := range unicode.Scripts {
		tables[propertyName(name)] = table
	}
	for name, table := range unicode.Categories {
		tables[propertyName(name)] = table
	}
	for long, name := range unicode.CategoryAliases {
		tables[propertyName(long)] = unicode.Categories[name]
	}
	return tables
})

// propertyName normalizes the name of a property: it removes spaces, hyphens, underscores and case.
func propertyName(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(name))
}

// property returns the set \p{name}.
func property(name string) (charset, bool) {
	name = propertyName(name)
	if set := properties[name]; set != nil {
		return set(), true
	}
	if table := propertyTables()[name]; table != nil {
		return inTables(table), true
	}
	return nil, false
}
