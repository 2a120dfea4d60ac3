package tui

import (
	"slices"

	"gpuscope/trace/table"
)

// placed is a column of the table with its width on the screen.
type placed struct {
	col, width int
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
func (p *tablePane) lay(w int) {
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
func (p *tablePane) dismiss(over int) int {
	wide, guests := 0, 0
	guest := func(c placed) bool {
		col := &p.table.Columns[c.col]
		return p.guest != nil && p.guest(col.Name, p.screen) && !p.sorts(col)
	}
	for _, c := range p.columns {
		if guest(c) {
			guests += c.width + 1
		} else if col := &p.table.Columns[c.col]; col.Width > sideWidth && !p.sorts(col) {
			wide += c.width + 1
		}
	}
	if over <= wide || guests == 0 {
		return over
	}
	p.columns = slices.DeleteFunc(p.columns, guest)
	return over - guests
}

// fill takes all columns of the screen at their full widths, and returns how many cells that is too much.
func (p *tablePane) fill(w int, widths []int) int {
	p.columns = p.columns[:0]
	screen := max(w, p.screen, mainWidth)
	used := 1 // the mark of the selected row
	for c, col := range p.table.Columns {
		spared := p.spare != nil && p.spare(col.Name, screen)
		missing := (col.Width > screen || spared) && !p.sorts(&p.table.Columns[c])
		if missing || col.Width == table.Unseen || slices.Contains(p.uniform, c) {
			continue
		}
		n := 0
		if widths != nil {
			n = widths[c]
		} else {
			for _, r := range p.rows[p.top:min(len(p.rows), p.top+p.page)] {
				n = max(n, width(p.text(r, c)))
			}
		}
		if n == 0 && !p.plainColumns {
			continue // nothing in it
		}
		if p.bars(c) {
			if n = narrowBar; screen >= sideWidth {
				n = wideBar
			}
		}
		n = max(n, width(p.heading(c)))
		p.columns = append(p.columns, placed{col: c, width: n, full: n})
		used += n + 1
	}
	return used - w
}

// sorts says that rows stand in order by a column: it has room on any screen.
func (p *tablePane) sorts(c *table.Column) bool { return c.Name == p.choice.Sort }

// bars says whether a column is drawn as bars.
func (p *tablePane) bars(col int) bool {
	return p.most != nil && p.most[col] > 0 && p.table.Columns[col].Bar
}

// heading is the title of a column, with the order that rows stand in by it.
func (p *tablePane) heading(col int) string {
	c := &p.table.Columns[col]
	if !p.sorts(c) {
		return c.Title
	}
	return c.Title + map[bool]string{true: "↓", false: "↑"}[p.choice.Reverse]
}

// squeeze takes cells from the widest text columns, as long as they have more than least, and what must not
// be lost of them has room.
func (p *tablePane) squeeze(over int, least func(*table.Column) int) int {
	for over > 0 {
		widest := -1
		for i, c := range p.columns {
			col := &p.table.Columns[c.col]
			floor := least(col)
			if p.least != nil && p.least[c.col] > 0 {
				need := min(c.full, max(p.least[c.col], width(p.heading(c.col))))
				if floor = need; col.Tree {
					floor = max(need, least(col))
				}
			}
			if col.Right || c.width <= floor || p.bars(c.col) {
				continue
			}
			if widest < 0 || p.table.Columns[p.columns[widest].col].Tree || // names of rows are cut last
				!col.Tree && c.width > p.columns[widest].width {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		p.columns[widest].width--
		over--
	}
	return over
}

// relax gives cells that are left back: to the names of rows first, and last to what gave way first.
func (p *tablePane) relax(left int) {
	turn := func(c int) int {
		switch col := &p.table.Columns[c]; {
		case col.Tree:
			return 0
		case col.Name == p.soft || p.bars(c):
			return 2
		}
		return 1
	}
	for n := range 3 {
		for i := range p.columns {
			c := &p.columns[i]
			if more := min(left, c.full-c.width); turn(c.col) == n && more > 0 {
				c.width += more
				left -= more
			}
		}
	}
}

// shrink takes cells away until the columns fit: from bars and the widest text columns, then the columns that
// only wide screens have, from the right, then more from text, those of a screen that has room beside the
// list, and at last others, the names of rows and what these stand in order by after all else.
func (p *tablePane) shrink(over int) {
	to := func(n, soft int) func(*table.Column) int {
		return func(c *table.Column) int {
			if c.Name == p.soft {
				return soft
			}
			return n
		}
	}
	drop := func(goes func(*table.Column) bool) { // from the right
		for i := len(p.columns) - 1; i >= 0 && over > 0 && len(p.columns) > 1; i-- {
			if goes(&p.table.Columns[p.columns[i].col]) {
				over -= p.columns[i].width + 1
				p.columns = slices.Delete(p.columns, i, i+1)
			}
		}
	}
	for i := range p.columns {
		if c := &p.columns[i]; over > 0 && p.bars(c.col) {
			less := min(over, max(0, c.width-narrowBar))
			c.width, over = c.width-less, over-less
		}
	}
	over = p.squeeze(over, to(elasticGood, elasticGood))
	drop(func(c *table.Column) bool {
		return c.Width > sideWidth && !slices.Contains(p.keep, c.Name) && !p.sorts(c)
	})
	for _, name := range slices.Backward(p.keep) {
		drop(func(c *table.Column) bool { return c.Width > sideWidth && c.Name == name && !p.sorts(c) })
	}
	over = p.squeeze(over, to(elasticMin, elasticMin))
	wide := func(c *table.Column) bool { return c.Width > mainWidth && !p.sorts(c) }
	if slices.ContainsFunc(p.columns, func(c placed) bool { return wide(&p.table.Columns[c.col]) }) {
		over = p.squeeze(over, to(elasticHint, elasticSoft))
	}
	drop(wide)
	for _, name := range p.giveUp {
		stays := p.stays != nil && p.stays(name)
		drop(func(c *table.Column) bool { return c.Name == name && !stays && !p.sorts(c) })
	}
	drop(func(c *table.Column) bool { return !c.Tree && !p.sorts(c) })
	drop(func(*table.Column) bool { return true })
	p.relax(-over)
}

// columnAt is the name of the column at a cell of the header, "" for none.
func (p *tablePane) columnAt(x int) string {
	at := 1
	for _, c := range p.columns {
		if x >= at && x <= at+c.width {
			return p.table.Columns[c.col].Name
		}
		at += c.width + 1
	}
	return ""
}
