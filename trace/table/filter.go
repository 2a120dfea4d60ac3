package table

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
)

// Filter selects rows of a table. The zero Filter selects every row.
type Filter struct {
	terms []term // all words
	// If the table has a Finder, `found` holds for each row whether it is found in the other table. It is
	// nil if no word applies to the other table. The field `own` holds the words that apply only to this
	// table.
	found []Finding
	own   []term
}

// term is one of the words of a filter, parsed.
type term struct {
	invert  bool
	col     int // index of the column to which the word applies; -1 for any, noColumn for none
	text    string
	whole   bool // a cell must be equal to `text`; if false, it must contain `text`
	re      *regexp.Regexp
	compare string // <, <=, >, >= or =; "" if the term compares no number
	number  float64
}

// noColumn is the column of a word that does not match any row.
const noColumn = -2

// ParseFilter parses a filter. A row must satisfy every word of the filter:
//
//	norm         a cell of the row, or the name of a row around it, contains "norm" in any case
//	!norm        no cell and no such name contains "norm"
//	re:^fd_      a cell matches the regular expression ^fd_
//	kernel:mul   the cell in the column kernel contains "mul"
//	op:=k        the cell in the text column op is "k" in any case
//	us:>10       the number in the column us is above 10; also <, >=, <= and =; with a unit: us:>0.1ms
//	#37          the number in the column # is 37
//
// If the table has a Finder, the Finder searches another table, and stops when ctx is cancelled.
func (t *Table) ParseFilter(ctx context.Context, s string) (Filter, error) {
	var f Filter
	words := strings.Fields(s)
	if t.Finder != nil && len(words) > 0 {
		return t.find(ctx, words)
	}
	for _, word := range words {
		parsed, err := t.parseTerm(word)
		if err != nil {
			return Filter{}, wrongTerm(word, err)
		}
		f.terms = append(f.terms, parsed)
	}
	return f, nil
}

// CheckFilter returns an error for a filter that no table accepts, because of an invalid regular expression
// or an invalid number.
func CheckFilter(s string) error {
	for _, word := range strings.Fields(s) {
		bare := strings.TrimPrefix(word, "!")
		re, err := expression(bare)
		if _, rest, ok := strings.Cut(bare, ":"); ok && re == nil && err == nil {
			if op, value := comparison(rest); op != "" && op != "=" { // "=" can also be followed by a text
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

// expression returns the regular expression in a word of a filter, or nil if the word has none.
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

// comparison returns the operator at the beginning of s and the value after it. If there is no operator, `op`
// is "" and `value` is s.
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

// quantity parses a number that a unit may follow.
func quantity(s string) (n float64, unit string, err error) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ/%")
	if n, err = strconv.ParseFloat(digits, 64); err != nil {
		return 0, "", fmt.Errorf("%q is not a number", printable.Short(s, 40))
	}
	return n, s[len(digits):], nil
}

// parseQuantity parses a number that a unit may follow, and converts it to the unit of the column.
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

// Match reports whether the filter selects this row itself, and not only a row above or below it in the tree.
func (f Filter) Match(t *Table, row int) bool {
	switch of := f.finding(row); {
	case of == Missed, of == FoundAround && len(f.own) == 0:
		return false
	}
	for _, m := range f.words(row) {
		if t.Rows[row].Group && (m.compare != "" || m.invert) {
			return false // a heading does not match a comparison or an exclusion, only its rows do
		}
		if m.match(t, row) == m.invert {
			return false
		}
	}
	return true
}

// Equal returns the number that the column `col` must have. The bool is false unless the filter is one
// comparison of this column with "=".
func (f Filter) Equal(col int) (float64, bool) {
	if len(f.terms) != 1 {
		return 0, false
	}
	m := &f.terms[0]
	return m.number, m.col == col && m.compare == "=" && !m.invert
}

// excludes reports whether the filter excludes the row by a word of the form !word.
func (f Filter) excludes(t *Table, row int) bool {
	return slices.ContainsFunc(f.words(row), func(m term) bool { return m.invert && m.match(t, row) })
}

func (m *term) match(t *Table, row int) bool {
	if m.col == noColumn {
		return false
	}
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
		if m.matchText(t.Cell(row, col).found()) {
			return true
		}
		for p := t.Rows[row].Parent; t.Columns[col].Tree && p >= 0; p = t.Rows[p].Parent {
			if m.matchText(t.Cell(p, col).found()) {
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
