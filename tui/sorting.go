package tui

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace/table"
)

// chord is a key of which the next says what is meant: that of a column to sort by.
type chord struct {
	label   string
	choices []choiceKey
	leave   func()
}

type choiceKey struct {
	key, name string
	take      func()
}

// struck takes the key that follows; another than those that mean something says which do.
func (a *App) struck(k key) {
	c := a.chord
	a.chord = nil
	if c.leave != nil {
		c.leave()
	}
	if k.name == "esc" {
		return
	}
	for _, choice := range c.choices {
		if choice.key == k.name {
			choice.take()
			return
		}
	}
	a.remark(c.label + ": " + printableKey(k) + " is none of its keys")
}

func printableKey(k key) string {
	if k.name == "" {
		return "pasted text"
	}
	return k.name
}

// sortKey is the letter of a column that people sort by most.
type sortKey struct{ letter, column string }

// askSort waits for the letter of a column. Columns that the screen has no room for have theirs too: the one
// that is chosen gets room.
func (a *App) askSort() {
	p := a.table()
	c := &chord{label: "sort by", leave: func() { p.letters = nil }}
	p.letters = p.columnLetters()
	for _, col := range p.sortable() {
		if letter := p.letters[col]; letter != "" {
			title, name := p.table.Columns[col].Title, p.table.Columns[col].Name
			c.choices = append(c.choices, choiceKey{letter, title, func() { p.sortBy(name) }})
		}
	}
	c.choices = append(c.choices, choiceKey{"space", "graph order", func() { p.sortBy("") }})
	a.chord = c
}

// sortable lists the columns that rows can be sorted by: those that people sort by most, those on the screen,
// and others that have something in them.
func (p *tablePane) sortable() []int {
	if p.table == nil {
		return nil
	}
	if p.laidOut == 0 {
		p.lay(mainWidth) // nothing was drawn since the rows changed
	}
	var list []int
	for c := range p.table.Columns {
		col := &p.table.Columns[c]
		says := (p.widths == nil || p.widths[c] > 0) && !slices.Contains(p.uniform, c)
		if p.drawn(col.Name) || says && col.Width != table.Unseen {
			list = append(list, c)
		}
	}
	rank := func(c int) int {
		name := p.table.Columns[c].Name
		first := slices.IndexFunc(p.sortKeys, func(k sortKey) bool { return k.column == name })
		switch {
		case first >= 0:
			return first
		case p.drawn(name):
			return len(p.sortKeys)
		}
		return len(p.sortKeys) + 1
	}
	slices.SortStableFunc(list, func(a, b int) int { return rank(a) - rank(b) })
	return list
}

// columnLetters gives every column of the table a key of its own, the same on any screen: a letter of its
// title, else of its name, else one that is free. The letters of columns that people sort by most are kept
// for them, whether the table has them or not.
func (p *tablePane) columnLetters() map[int]string {
	if p.table == nil {
		return nil
	}
	letters, taken := map[int]string{}, map[string]bool{}
	give := func(col int, from string) {
		for _, r := range strings.ToLower(from) {
			plain := r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '#' || r == '%'
			if s := string(r); plain && letters[col] == "" && !taken[s] {
				letters[col], taken[s] = s, true
			}
		}
	}
	for _, k := range p.sortKeys {
		if c := p.table.Column(k.column); c >= 0 {
			letters[c] = k.letter
		}
		taken[k.letter] = true
	}
	for _, from := range []func(*table.Column) string{
		func(c *table.Column) string { return c.Title },
		func(c *table.Column) string { return c.Name },
		func(*table.Column) string { return "abcdefghijklmnopqrstuvwxyz0123456789" },
	} {
		for c := range p.table.Columns {
			give(c, from(&p.table.Columns[c]))
		}
	}
	return letters
}

// render draws the keys, the first that fit, and says how many more there are.
func (c *chord) render(t *theme, w int) string {
	var b strings.Builder
	b.WriteString(t.put(accent, " "+c.label+": "))
	used := width(c.label) + 3
	more := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("… %d more", n)
	}
	for i, choice := range c.choices {
		left := len(c.choices) - i
		if used += width(choice.key) + width(choice.name) + 3; used+width(more(left-1)) > w {
			b.WriteString(t.put(dim, more(left)))
			break
		}
		b.WriteString(t.put(accent, choice.key) + " " + choice.name + "  ")
	}
	return strings.TrimRight(b.String(), " ")
}
