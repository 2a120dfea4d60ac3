package widget

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"gpuscope/trace/table"
)

// Chord is a command that waits for its second key, which selects a column to sort by.
type Chord struct {
	label   string
	choices []choiceKey
	leave   func()
}

type choiceKey struct {
	key, name string
	take      func()
}

// Struck handles the second key. It returns an error message if the key selects no column.
func (c *Chord) Struck(k Key) (wrong string) {
	if c.leave != nil {
		c.leave()
	}
	if k.Name == "esc" {
		return ""
	}
	for _, choice := range c.choices {
		if choice.key == k.Name {
			choice.take()
			return ""
		}
	}
	return c.label + ": " + printableKey(k) + " does not select a column"
}

func printableKey(k Key) string {
	if k.Name == "" {
		return "pasted text"
	}
	return k.Name
}

// sortLetters are the keys, in order of preference, for columns whose title and name have no free letter.
const sortLetters = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// SortKey reserves a letter for a column that users often sort by.
type SortKey struct{ Letter, Column string }

// SortChord returns a chord that waits for the letter of a column and then sorts by this column. Columns that
// are hidden for lack of space have letters, too: sorting by such a column shows the column.
func (p *TablePane) SortChord() *Chord {
	c := &Chord{label: "sort by", leave: func() { p.letters = nil }}
	p.letters = p.columnLetters()
	for _, col := range p.sortable() {
		if letter := p.letters[col]; letter != "" {
			title, name := p.Table.Columns[col].Title, p.Table.Columns[col].Name
			if !strings.ContainsFunc(title, unicode.IsLetter) { // such as "…#"
				title = name
			}
			c.choices = append(c.choices, choiceKey{letter, title, func() { p.SortBy(name) }})
		}
	}
	c.choices = append(c.choices, choiceKey{"space", "graph order", func() { p.SortBy("") }})
	return c
}

// sortable lists the columns that rows can be sorted by. The columns that users sort by most come first,
// then other visible columns, then hidden columns that have content.
func (p *TablePane) sortable() []int {
	if p.Table == nil {
		return nil
	}
	if p.laidOut == 0 {
		p.lay(MainWidth) // the columns have not been laid out yet
	}
	var list []int
	for c := range p.Table.Columns {
		col := &p.Table.Columns[c]
		says := (p.widths == nil || p.widths[c] > 0) && !slices.Contains(p.uniform, c)
		if p.drawn(col.Name) || says && col.Width != table.Unseen {
			list = append(list, c)
		}
	}
	rank := func(c int) int {
		name := p.Table.Columns[c].Name
		first := slices.IndexFunc(p.SortKeys, func(k SortKey) bool { return k.Column == name })
		switch {
		case first >= 0:
			return first
		case p.drawn(name):
			return len(p.SortKeys)
		}
		return len(p.SortKeys) + 1
	}
	slices.SortStableFunc(list, func(a, b int) int { return rank(a) - rank(b) })
	return list
}

// columnLetters assigns a key to each column, the same on all screens: a letter of the column's title, else
// of its name, else any free letter. The letters of SortKeys are reserved, even if the table lacks these
// columns.
func (p *TablePane) columnLetters() map[int]string {
	if p.Table == nil {
		return nil
	}
	letters, taken := map[int]string{}, map[string]bool{}
	give := func(col int, from string) {
		for _, r := range from {
			plain := strings.ContainsRune(sortLetters+"#%", r)
			if s := string(r); plain && letters[col] == "" && !taken[s] {
				letters[col], taken[s] = s, true
			}
		}
	}
	for _, k := range p.SortKeys {
		if c := p.Table.Column(k.Column); c >= 0 {
			letters[c] = k.Letter
		}
		taken[k.Letter] = true
	}
	for _, from := range []func(*table.Column) string{
		func(c *table.Column) string { return strings.ToLower(c.Title) },
		func(c *table.Column) string { return strings.ToLower(c.Name) },
		func(*table.Column) string { return sortLetters },
	} {
		for c := range p.Table.Columns {
			give(c, from(&p.Table.Columns[c]))
		}
	}
	return letters
}

// Lines formats the keys and their meanings in at most h lines. The last line counts the keys that do not
// fit.
func (c *Chord) Lines(t *Theme, w, h int) []string {
	head := " " + c.label + ": "
	line, used := t.Put(Accent, head), Width(head)
	var lines []string
	for i, choice := range c.choices {
		need, left := Width(choice.key)+Width(choice.name)+3, len(c.choices)-i
		last, more := len(lines) == h-1, ""
		if last && left > 1 {
			more = fmt.Sprintf("… %d more", left-1)
		}
		if used+need+Width(more) > w {
			if last {
				line += t.Put(Dim, fmt.Sprintf("… %d more", left))
				break
			}
			lines, line, used = append(lines, line), Blank(Width(head)), Width(head)
		}
		line += t.Put(Accent, choice.key) + " " + choice.name + "  "
		used += need
	}
	lines = append(lines, line)
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return lines
}
