package widget

import (
	"slices"

	"gpuscope/trace/table"
)

// placed is a column of the table with its width on the screen.
type placed struct {
	Col, Width int
	full       int // width that its cells have
}

// Columns of text give way when the list is narrow: to what most names fit in, before other columns go that a
// wide screen has more, and then to what tells names apart; before columns go that belong beside a detail,
// to a hint, since the detail has the names.
const elasticSoft, elasticHint, elasticMin, elasticGood = 8, 10, 12, 20

// Bars are as wide as this, on a narrow screen and on one that has room beside the list.
const narrowBar, wideBar = 6, 10

// lay finds the columns that a list of w cells has room for, and their widths: those of all rows, so that
// opening one moves none; of the rows that are shown where that is too wide.
func (p *TablePane) lay(w int) {
	if p.laidOut == w {
		return
	}
	p.laidOut = w
	over := p.fill(w, p.widths)
	if over > 0 && p.narrow != nil {
		over = p.fill(w, p.narrow)
	}
	p.shrink(p.dismiss(over))
}

// dismiss takes the guests away where it is not enough that the columns go that only wide screens have, and
// returns how many cells the others are then too much.
func (p *TablePane) dismiss(over int) int {
	wide, guests := 0, 0
	guest := func(c placed) bool {
		col := &p.Table.Columns[c.Col]
		return p.Guest != nil && p.Guest(col.Name, p.Screen) && !p.sorts(col)
	}
	for _, c := range p.Columns {
		if guest(c) {
			guests += c.Width + 1
		} else if col := &p.Table.Columns[c.Col]; col.Width > SideWidth && !p.sorts(col) {
			wide += c.Width + 1
		}
	}
	if over <= wide || guests == 0 {
		return over
	}
	p.Columns = slices.DeleteFunc(p.Columns, guest)
	return over - guests
}

// fill takes all columns of the screen at their full widths, and returns how many cells that is too much.
func (p *TablePane) fill(w int, widths []int) int {
	p.Columns = p.Columns[:0]
	screen := max(w, p.Screen, MainWidth)
	used := 1 // the mark of the selected row
	for c, col := range p.Table.Columns {
		spared := p.Spare != nil && p.Spare(col.Name, screen)
		missing := (col.Width > screen || spared) && !p.sorts(&p.Table.Columns[c])
		if missing || col.Width == table.Unseen || slices.Contains(p.uniform, c) {
			continue
		}
		n := 0
		if widths != nil {
			n = widths[c]
		} else {
			for _, r := range p.Rows[p.Top:min(len(p.Rows), p.Top+p.Page)] {
				n = max(n, Width(p.text(r, c)))
			}
		}
		if n == 0 && !p.PlainColumns {
			continue // nothing in it
		}
		if p.bars(c) {
			if n = narrowBar; screen >= SideWidth {
				n = wideBar
			}
		}
		n = max(n, Width(p.heading(c)))
		p.Columns = append(p.Columns, placed{Col: c, Width: n, full: n})
		used += n + 1
	}
	return used - w
}

// sorts says that rows stand in order by a column: it has room on any screen.
func (p *TablePane) sorts(c *table.Column) bool { return c.Name == p.Choice.Sort }

// bars says whether a column is drawn as bars.
func (p *TablePane) bars(col int) bool {
	return p.most != nil && p.most[col] > 0 && p.Table.Columns[col].Bar
}

// heading is the title of a column, with the order that rows stand in by it.
func (p *TablePane) heading(col int) string {
	c := &p.Table.Columns[col]
	if !p.sorts(c) {
		return c.Title
	}
	return c.Title + map[bool]string{true: "↓", false: "↑"}[p.Choice.Reverse]
}

// squeeze takes cells from the widest text columns, as long as they have more than least, and what must not
// be lost of them has room.
func (p *TablePane) squeeze(over int, least func(*table.Column) int) int {
	for over > 0 {
		widest := -1
		for i, c := range p.Columns {
			col := &p.Table.Columns[c.Col]
			floor := least(col)
			if p.least != nil && p.least[c.Col] > 0 {
				need := min(c.full, max(p.least[c.Col], Width(p.heading(c.Col))))
				if floor = need; col.Tree {
					floor = max(need, least(col))
				}
			}
			if col.Right || c.Width <= floor || p.bars(c.Col) {
				continue
			}
			if widest < 0 || p.Table.Columns[p.Columns[widest].Col].Tree || // names of rows are cut last
				!col.Tree && c.Width > p.Columns[widest].Width {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		p.Columns[widest].Width--
		over--
	}
	return over
}

// relax gives cells that are left back: to the names of rows first, and last to what gave way first.
func (p *TablePane) relax(left int) {
	turn := func(c int) int {
		switch col := &p.Table.Columns[c]; {
		case col.Tree:
			return 0
		case col.Name == p.Soft || p.bars(c):
			return 2
		}
		return 1
	}
	for n := range 3 {
		for i := range p.Columns {
			c := &p.Columns[i]
			if more := min(left, c.full-c.Width); turn(c.Col) == n && more > 0 {
				c.Width += more
				left -= more
			}
		}
	}
}

// shrink takes cells away until the columns fit: from bars and the widest text columns, then the columns that
// only wide screens have, from the right, then more from text, those of a screen that has room beside the
// list, and at last others, the names of rows and what these stand in order by after all else.
func (p *TablePane) shrink(over int) {
	to := func(n, soft int) func(*table.Column) int {
		return func(c *table.Column) int {
			if c.Name == p.Soft {
				return soft
			}
			return n
		}
	}
	drop := func(goes func(*table.Column) bool) { // from the right
		for i := len(p.Columns) - 1; i >= 0 && over > 0 && len(p.Columns) > 1; i-- {
			if goes(&p.Table.Columns[p.Columns[i].Col]) {
				over -= p.Columns[i].Width + 1
				p.Columns = slices.Delete(p.Columns, i, i+1)
			}
		}
	}
	for i := range p.Columns {
		if c := &p.Columns[i]; over > 0 && p.bars(c.Col) {
			less := min(over, max(0, c.Width-narrowBar))
			c.Width, over = c.Width-less, over-less
		}
	}
	over = p.squeeze(over, to(elasticGood, elasticGood))
	drop(func(c *table.Column) bool {
		return c.Width > SideWidth && !slices.Contains(p.Keep, c.Name) && !p.sorts(c)
	})
	for _, name := range slices.Backward(p.Keep) {
		drop(func(c *table.Column) bool { return c.Width > SideWidth && c.Name == name && !p.sorts(c) })
	}
	over = p.squeeze(over, to(elasticMin, elasticMin))
	wide := func(c *table.Column) bool { return c.Width > MainWidth && !p.sorts(c) }
	if slices.ContainsFunc(p.Columns, func(c placed) bool { return wide(&p.Table.Columns[c.Col]) }) {
		over = p.squeeze(over, to(elasticHint, elasticSoft))
	}
	drop(wide)
	for _, name := range p.GiveUp {
		stays := p.Stays != nil && p.Stays(name)
		drop(func(c *table.Column) bool { return c.Name == name && !stays && !p.sorts(c) })
	}
	drop(func(c *table.Column) bool { return !c.Tree && !p.sorts(c) })
	drop(func(*table.Column) bool { return true })
	p.relax(-over)
}

// ColumnAt is the name of the column at a cell of the header, "" for none.
func (p *TablePane) ColumnAt(x int) string {
	at := 1
	for _, c := range p.Columns {
		if x >= at && x <= at+c.Width {
			return p.Table.Columns[c.Col].Name
		}
		at += c.Width + 1
	}
	return ""
}
