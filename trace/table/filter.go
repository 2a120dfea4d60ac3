package table

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
)

// Filter picks rows of a table. The zero Filter picks all.
type Filter struct{ terms []term }

// term is one word of a filter.
type term struct {
	invert  bool
	col     int // -1: any
	text    string
	whole   bool // the text is all that the field has
	re      *regexp.Regexp
	compare string // <, <=, >, >=, =; "" for a text term
	number  float64
}

// ParseFilter reads a filter of words, all of which must hold:
//
//	norm         some field has this text, or the name of a row that it stands in, in letters of any case
//	!norm        none has
//	re:^fd_      some field matches the regular expression
//	kernel:mul   the column has this text
//	op:=k        the column of names is this text and nothing more, in letters of any case
//	us:>10       the column's number is over 10; also <, >=, <=, =, and with a unit: us:>0.1ms
//	#37          the number of the column # is 37
func (t *Table) ParseFilter(s string) (Filter, error) {
	var f Filter
	for _, word := range strings.Fields(s) {
		parsed, err := t.parseTerm(word)
		if err != nil {
			return Filter{}, wrongTerm(word, err)
		}
		f.terms = append(f.terms, parsed)
	}
	return f, nil
}

// CheckFilter says what is wrong with a filter whatever columns there are: an expression in it, or what a
// number is compared with.
func CheckFilter(s string) error {
	for _, word := range strings.Fields(s) {
		bare := strings.TrimPrefix(word, "!")
		re, err := expression(bare)
		if _, rest, ok := strings.Cut(bare, ":"); ok && re == nil && err == nil {
			if op, value := comparison(rest); op != "" && op != "=" { // which may be of a name
				_, _, err = quantity(value)
			}
		}
		if err != nil {
			return wrongTerm(word, err)
		}
	}
	return nil
}

func wrongTerm(word string, err error) error {
	return fmt.Errorf("filter %s: %w", printable.Short(word, 40), err)
}

// expression is the regular expression of a word of a filter, nil where it is none.
func expression(word string) (*regexp.Regexp, error) {
	pattern, ok := strings.CutPrefix(word, "re:")
	if !ok {
		return nil, nil
	}
	return regexp.Compile("(?i)" + pattern)
}

func (t *Table) parseTerm(word string) (term, error) {
	r := term{col: -1}
	word, r.invert = strings.CutPrefix(word, "!")
	var err error
	if r.re, err = expression(word); r.re != nil || err != nil {
		return r, err
	}
	if id, ok := strings.CutPrefix(word, "#"); ok && t.Column("#") >= 0 {
		if _, err := strconv.ParseUint(id, 10, 31); err == nil {
			word = "#:=" + id
		}
	}
	name, rest, ok := strings.Cut(word, ":")
	if !ok {
		r.text = strings.ToLower(word)
		return r, nil
	}
	if r.col = t.Column(name); r.col < 0 {
		return r, t.noColumn(name)
	}
	if text, ok := strings.CutPrefix(rest, "="); ok && t.Columns[r.col].Unit == "" {
		r.text, r.whole = strings.ToLower(text), true
		return r, nil
	}
	op, value := comparison(rest)
	if op == "" {
		r.text = strings.ToLower(rest)
		return r, nil
	}
	r.compare = op
	r.number, err = parseQuantity(value, t.Columns[r.col].Unit)
	return r, err
}

// comparison is how a number is compared, "" where it is not, and with what.
func comparison(s string) (op, value string) {
	for _, op := range []string{">=", "<=", ">", "<", "="} {
		if value, ok := strings.CutPrefix(s, op); ok {
			return op, value
		}
	}
	return "", s
}

// nsPer are the units of time.
var nsPer = map[string]float64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}

// quantity reads a number with an optional unit.
func quantity(s string) (n float64, unit string, err error) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ/%")
	if n, err = strconv.ParseFloat(digits, 64); err != nil {
		return 0, "", fmt.Errorf("%q is not a number", printable.Short(s, 40))
	}
	return n, s[len(digits):], nil
}

// parseQuantity reads a number with an optional unit into the unit of a column.
func parseQuantity(s, unit string) (float64, error) {
	n, given, err := quantity(s)
	if err != nil {
		return 0, err
	}
	if given == "" || given == unit {
		return n, nil
	}
	from, to := nsPer[given], nsPer[unit]
	if from == 0 || to == 0 {
		return 0, fmt.Errorf("the column is in %q, not %q", unit, printable.Short(given, 40))
	}
	return n * from / to, nil
}

// Match reports whether a row is one that the filter picks by itself.
func (f Filter) Match(t *Table, row int) bool {
	for _, m := range f.terms {
		if t.Rows[row].Group && (m.compare != "" || m.invert) {
			return false // a heading is there for its rows: numbers and exclusions are about them
		}
		if m.match(t, row) == m.invert {
			return false
		}
	}
	return true
}

// Equal is the number that a filter wants a column to have, and whether it wants that and nothing else.
func (f Filter) Equal(col int) (float64, bool) {
	if len(f.terms) != 1 {
		return 0, false
	}
	m := &f.terms[0]
	return m.number, m.col == col && m.compare == "=" && !m.invert
}

// excludes reports whether an exclusion takes a row out.
func (f Filter) excludes(t *Table, row int) bool {
	return slices.ContainsFunc(f.terms, func(m term) bool { return m.invert && m.match(t, row) })
}

func (m *term) match(t *Table, row int) bool {
	if m.compare != "" {
		c := t.Cell(row, m.col)
		if !c.Has || c.Mark == Unknown {
			return false
		}
		switch m.compare {
		case ">":
			return c.Number > m.number
		case "<":
			return c.Number < m.number
		case ">=":
			return c.Number >= m.number
		case "<=":
			return c.Number <= m.number
		}
		return c.Number == m.number
	}
	for col := range t.Columns {
		if m.col >= 0 && col != m.col {
			continue
		}
		if m.matchText(t.Cell(row, col).Text) {
			return true
		}
		for p := t.Rows[row].Parent; t.Columns[col].Tree && p >= 0; p = t.Rows[p].Parent {
			if m.matchText(t.Cell(p, col).Text) {
				return true
			}
		}
	}
	return false
}

func (m *term) matchText(s string) bool {
	if m.re != nil {
		return m.re.MatchString(s)
	}
	if m.whole {
		return strings.ToLower(s) == m.text
	}
	return strings.Contains(strings.ToLower(s), m.text)
}
