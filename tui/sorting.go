package tui

import (
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

// askSort waits for the letter of a column.
func (a *App) askSort() {
	p := a.table()
	c := &chord{label: "sort by", leave: func() { p.letters = nil }}
	p.letters = p.columnLetters()
	for _, col := range p.columns {
		if letter := p.letters[col.col]; letter != "" {
			title, name := p.table.Columns[col.col].Title, p.table.Columns[col.col].Name
			c.choices = append(c.choices, choiceKey{letter, title, func() { p.sortBy(name) }})
		}
	}
	c.choices = append(c.choices, choiceKey{"space", "graph order", func() { p.sortBy("") }})
	a.chord = c
}

// columnLetters gives every column on the screen a key of its own: a letter of its title, else of its name,
// else one that is free. The columns that people sort by most choose first.
func (p *tablePane) columnLetters() map[int]string {
	if p.table == nil {
		return nil
	}
	if p.laidOut == 0 {
		p.lay(mainWidth) // nothing was drawn since the rows changed
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
	for _, name := range p.sortFirst {
		if c := p.table.Column(name); c >= 0 && p.isShown(c) {
			give(c, p.table.Columns[c].Title)
		}
	}
	for _, from := range []func(*table.Column) string{
		func(c *table.Column) string { return c.Title },
		func(c *table.Column) string { return c.Name },
		func(*table.Column) string { return "abcdefghijklmnopqrstuvwxyz0123456789" },
	} {
		for _, c := range p.columns {
			give(c.col, from(&p.table.Columns[c.col]))
		}
	}
	return letters
}

func (p *tablePane) isShown(col int) bool {
	for _, c := range p.columns {
		if c.col == col {
			return true
		}
	}
	return false
}

// render draws the keys, the first that fit.
func (c *chord) render(t *theme, w int) string {
	var b strings.Builder
	b.WriteString(t.put(accent, " "+c.label+": "))
	used := width(c.label) + 3
	for _, choice := range c.choices {
		n := width(choice.key) + width(choice.name) + 3
		if used += n; used > w {
			break
		}
		b.WriteString(t.put(accent, choice.key) + " " + choice.name + "  ")
	}
	return strings.TrimRight(b.String(), " ")
}
