package table

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Finder lets a table use the filter of another table, so that the same words find the same things in both.
// If a word names a column that only this table has, the word applies to the rows of this table.
type Finder struct {
	// Other returns the other table. It must return the same table each time.
	Other func(context.Context) (*Table, error)
	// Find returns the finding for each row of this table. `kept` holds the innermost rows that the other
	// table shows with this filter. All rows inside the rows of `kept` count as selected too.
	Find func(other *Table, kept []int) []Finding
}

// Finding says what the filter of the other table means for a row.
type Finding byte

// These are the findings.
const (
	Unlisted    Finding = iota // the other table does not contain the row: all words apply to the row itself
	Missed                     // the other table contains the row, and the filter rejects it
	Found                      // the filter keeps the row
	FoundAround                // the filter keeps a row around this one; words about this table decide
)

func (f *Filter) finding(row int) Finding {
	if f.found == nil {
		return Unlisted
	}
	return f.found[row]
}

// words returns the words that apply to the row itself.
func (f *Filter) words(row int) []term {
	if f.finding(row) == Unlisted {
		return f.terms
	}
	return f.own
}

// find parses the words of a filter and applies them to the other table.
func (t *Table) find(ctx context.Context, words []string) (Filter, error) {
	other, err := t.Finder.Other(ctx)
	if err != nil {
		return Filter{}, err
	}
	var f Filter
	var theirs []string
	for _, word := range words {
		parsed, err := t.parseTerm(word)
		name, _, _ := strings.Cut(strings.TrimPrefix(word, "!"), ":")
		if err == nil && parsed.col >= 0 && other.Column(name) < 0 {
			title := name
			if name = t.Columns[parsed.col].Name; other.Column(name) < 0 {
				f.own, f.terms = append(f.own, parsed), append(f.terms, parsed)
				continue
			}
			word = strings.Replace(word, title, name, 1)
		}
		if err != nil {
			invert := strings.HasPrefix(word, "!")
			if _, wrong := other.parseTerm(word); errors.Is(wrong, errNoColumn) {
				return Filter{}, wrongTerm(word, t.noColumn(name, other.Columns...))
			}
			parsed = term{invert: invert, col: noColumn}
		}
		f.terms, theirs = append(f.terms, parsed), append(theirs, word)
	}
	if len(theirs) == 0 {
		return f, nil
	}
	of, err := other.ParseFilter(ctx, strings.Join(theirs, " "))
	if err != nil {
		return Filter{}, err
	}
	rows, err := other.Select(ctx, Selection{Filter: of})
	if err != nil {
		return Filter{}, err
	}
	f.found = t.Finder.Find(other, other.ends(rows))
	return f, nil
}

// ends returns the innermost shown rows: those inside which no other row is shown.
func (t *Table) ends(shown []int) []int {
	opened := map[int]bool{}
	for _, r := range shown {
		opened[t.Rows[r].Parent] = true
	}
	return slices.DeleteFunc(slices.Clone(shown), func(r int) bool { return opened[r] })
}
