package table

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
)

// Filter selects rows of a table. The zero Filter selects every row.
type Filter struct{ terms []term }

// term is one word of a filter.
type term struct {
	invert  bool
	col     int // column index, or -1 for any column
	text    string
	whole   bool // the whole field must equal text, not only contain it
	re      *regexp.Regexp
	compare string // <, <=, >, >= or =; "" for a text term
	number  float64
}

// ParseFilter parses a filter. A row must satisfy every word of the filter:
//
//	norm         a field of the row, or the name of an enclosing row, contains this text (case-insensitive)
//	!norm        no such field or name contains this text
//	re:^fd_      a field matches the regular expression
//	kernel:mul   the field in this column contains this text
//	op:=k        the field in this text column equals this text (case-insensitive)
//	us:>10       the number in this column is over 10; also <, >=, <=, =; with a unit: us:>0.1ms
//	#37          the number in the column # is 37
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

// CheckFilter reports errors of a filter that do not depend on the columns of a table: an invalid regular
// expression or an invalid number.
func CheckFilter(s string) error {
	for _, word := range strings.Fields(s) {
		bare := strings.TrimPrefix(word, "!")
		re, err := expression(bare)
		if _, rest, ok := strings.Cut(bare, ":"); ok && re == nil && err == nil {
			if op, value := comparison(rest); op != "" && op != "=" { // "=" may also compare text
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

// expression returns the regular expression of a filter word, or nil if the word is not one.
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

// comparison splits a comparison into its operator and its value. The operator is "" if there is no
// comparison.
func comparison(s string) (op, value string) {
	for _, op := range []string{">=", "<=", ">", "<", "="} {
		if value, ok := strings.CutPrefix(s, op); ok {
			return op, value
		}
	}
	return "", s
}

// nsPer holds the length of each time unit in nanoseconds.
var nsPer = map[string]float64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}

// quantity parses a number with an optional unit.
func quantity(s string) (n float64, unit string, err error) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ/%")
	if n, err = strconv.ParseFloat(digits, 64); err != nil {
		return 0, "", fmt.Errorf("%q is not a number", printable.Short(s, 40))
	}
	return n, s[len(digits):], nil
}

// parseQuantity parses a number with an optional unit and converts it to the unit of a column.
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
		return 0, fmt.Errorf("the unit of the column is %q, not %q", unit, printable.Short(given, 40))
	}
	return n * from / to, nil
}

// Match reports whether the row itself satisfies the filter.
func (f Filter) Match(t *Table, row int) bool {
	for _, m := range f.terms {
		if t.Rows[row].Group && (m.compare != "" || m.invert) {
			return false // numbers and exclusions apply only to the rows under a heading
		}
		if m.match(t, row) == m.invert {
			return false
		}
	}
	return true
}

// Equal returns the number that the filter requires in the column col. The bool reports whether the filter
// consists of this comparison alone.
func (f Filter) Equal(col int) (float64, bool) {
	if len(f.terms) != 1 {
		return 0, false
	}
	m := &f.terms[0]
	return m.number, m.col == col && m.compare == "=" && !m.invert
}

// excludes reports whether an exclusion (!word) of the filter removes the row.
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
