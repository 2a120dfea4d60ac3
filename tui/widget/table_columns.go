package widget

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace/table"
)

// placed is a column of the table and the width at which it is drawn.
type placed struct {
	Col, Width int
	full       int  // width of the widest cell, also in earlier listings
	idle       bool // the column is empty, or the same in all rows, and only keeps its place
}

// columnPlaces keeps columns in their places while their content changes, for example in the next step. It
// holds the full width of each column that was drawn. It starts anew if the width of the list changes, if the
// table has other columns, or if the user looks at it in another way: by Form, order or filter.
type columnPlaces struct {
	of     string
	form   any
	widths map[string]int
}

// keepPlaces forgets the places of columns that belong to another table, width or form.
func (p *TablePane) keepPlaces(w int) {
	var of strings.Builder
	fmt.Fprintf(&of, "%d %d %s %s %v %q", w, p.Screen, p.Table.Name, p.Choice.Sort, p.Choice.Reverse, p.good)
	for i := range p.Table.Columns {
		fmt.Fprintf(&of, " %s %d", p.Table.Columns[i].Name, p.Table.Columns[i].Width)
	}
	if of.String() != p.places.of || p.form != p.places.form {
		p.places = columnPlaces{of.String(), p.form, map[string]int{}}
	}
}

// Minimum widths of text columns, in cells. A list that is too narrow makes its text columns narrower in
// three stages. First, row names shrink to elasticName and other text columns to elasticGood. Then the list
// drops columns for wide screens, and text columns shrink to elasticMin. Last, the column TablePane.Soft
// shrinks to elasticSoft and other text columns to elasticHint; this happens only if a column that needs a
// screen wider than MainWidth would be dropped otherwise.
const elasticSoft, elasticHint, elasticMin, elasticGood, elasticName = 8, 10, 12, 20, 48

// Widths, in cells, of a bar together with the number after it: narrowBar on a narrow screen, wideBar on a
// screen with room for a detail pane. The number takes barNumber of these cells.
const narrowBar, wideBar, barNumber = 7, 12, 5

// lay chooses the columns that fit in a list of w cells, and computes their widths. The width of a column
// is that of the widest cell among all rows of the table, so that opening a row moves no column. If the
// columns are then too wide, lay measures only the rows of the listing.
func (p *TablePane) lay(w int) {
	if p.laidOut == w {
		return
	}
	p.laidOut = w
	p.keepPlaces(w)
	over := p.fill(w, p.widths)
	if over > 0 && p.narrow != nil {
		over = p.fill(w, p.narrow)
	}
	p.shrink(p.dismiss(over))
	for _, c := range p.Columns {
		p.places.widths[p.Table.Columns[c.Col].Name] = c.full
	}
}

// dropIdle drops columns that only keep their place, from the right, until the others fit. It returns the
// number of cells by which the remaining columns are too wide.
func (p *TablePane) dropIdle(over int) int {
	for i := len(p.Columns) - 1; i >= 0 && over > 0; i-- {
		if c := p.Columns[i]; c.idle {
			over -= c.Width + 1
			p.Columns = slices.Delete(p.Columns, i, i+1)
		}
	}
	return over
}

// dismiss drops the Guest columns if the list would still be too wide without all other columns that are for
// wide screens. `over` is the number of cells by which the columns are too wide; dismiss returns this number
// for the columns that it keeps.
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

// fill selects all columns for this screen at their full widths. It returns the number of cells by which
// these columns are too wide.
func (p *TablePane) fill(w int, widths []int) int {
	p.Columns = p.Columns[:0]
	screen := max(w, p.Screen, MainWidth)
	used := 1 // marker of the selected row
	for c, col := range p.Table.Columns {
		spared := p.Spare != nil && p.Spare(col.Name, screen)
		missing := (col.Width > screen || spared) && !p.sorts(&p.Table.Columns[c])
		kept := p.places.widths[col.Name]
		idle := slices.Contains(p.uniform, c)
		if missing || col.Width == table.Unseen || idle && kept == 0 {
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
			if idle = true; kept == 0 {
				continue // the column is empty
			}
		}
		if p.heated(c) {
			n++ // the sign of heat
		}
		if p.bars(c) {
			if n = narrowBar; screen >= SideWidth {
				n = wideBar
			}
		}
		n = max(n, Width(p.heading(c)), kept)
		p.Columns = append(p.Columns, placed{Col: c, Width: n, full: n, idle: idle})
		used += n + 1
	}
	return used - w
}

// sorts reports whether the rows are sorted by the column. Such a column is shown on any screen.
func (p *TablePane) sorts(c *table.Column) bool { return c.Name == p.Choice.Sort }

// bars reports whether a column is drawn as bars.
func (p *TablePane) bars(col int) bool {
	return p.most != nil && p.most[col] > 0 && p.Table.Columns[col].Bar
}

// heated reports whether a column has a sign of heat before each number. Bars show heat by their length.
func (p *TablePane) heated(col int) bool { return p.Table.Columns[col].Part != nil && !p.bars(col) }

// heading returns the title of a column. The column that the rows are sorted by has an arrow for the
// direction.
func (p *TablePane) heading(col int) string {
	c := &p.Table.Columns[col]
	if !p.sorts(c) {
		return c.Title
	}
	return c.Title + map[bool]string{true: "↓", false: "↑"}[p.Choice.Reverse]
}

// squeeze makes the widest text columns narrower until all columns fit. A column keeps at least the width
// that `least` returns, and the room for its essential content. squeeze returns the number of cells by which
// the columns are still too wide.
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
			if widest < 0 || p.Table.Columns[p.Columns[widest].Col].Tree || // row names are cut last
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

// relax distributes `left` free cells to columns that are narrower than their content. Row names get cells
// first. Bars and the column TablePane.Soft get cells last.
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

// shrink makes the columns fit; together they are `over` cells too wide. It stops as soon as they fit.
// First it makes bars and the widest text columns narrower. Then it drops columns for wide screens, from
// the right, and makes text columns still narrower. Then it drops columns that need a screen wider than
// MainWidth, and after these the columns of GiveUp and any others. It drops row names and the column that
// the rows are sorted by last.
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
	over = p.squeeze(over, func(c *table.Column) int {
		if c.Tree {
			return elasticName
		}
		return elasticGood
	})
	over = p.dropIdle(over)
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
	drop(func(c *table.Column) bool { return !c.Tree && !p.sorts(c) && c.Width != table.Kept })
	drop(func(c *table.Column) bool { return !c.Tree && !p.sorts(c) })
	drop(func(*table.Column) bool { return true })
	p.relax(-over)
}

// ColumnAt returns the name of the column at a cell of the header, or "" if there is none.
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
