package tui

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gpuscope/trace/table"
)

// listing is a table as a person chose to see it. Whatever takes longer the longer the table is stands in it:
// jobs make listings, and they do not change.
type listing struct {
	of     any // what the table is of
	at     any // what the screen showed when it was made
	table  *table.Table
	choice choice
	rows   []int // indices into table.Rows that are shown
	err    error // of the filter: the rows are those of good, the last one that meant something
	good   string
	found  string
	first  int // index into rows of the first that the filter finds, -1 where there is none
	// shown are the leaves of a row that are shown, where a filter hides some, partial that there are such.
	shown, leaves []int
	partial       bool
	all           int      // rows of the table in which none stand
	unfolded      []bool   // rows in which others are shown, where there is a filter
	notes         []string // of the table, about what is shown
	// uniform are the columns that say the same in all rows of the table, shown or not: the title has them.
	uniform []int
	most    []float64 // by column, the largest number of those that are drawn as bars
	// least is by column how wide what must not be lost of its cells is; 0 where they are cut.
	least []int
	// widths are by column those of the cells of all rows, narrow those of the rows that are shown; nil where
	// they are taken from the rows in sight.
	widths, narrow []int
}

// choice is which rows a person wants to see, in which order.
type choice struct {
	table.Selection
	filter string // as it was typed
}

// with is a choice in which a row is open or closed. The choice itself stays as it is: a job may read it.
func (c choice) with(key string, open bool) choice {
	if c.Open = maps.Clone(c.Open); c.Open == nil {
		c.Open = map[string]bool{}
	}
	c.Open[key] = open
	return c
}

// What the widths of columns are measured on: rows from the top. A table may have a million.
const measuredRows = 2000

// list applies a choice to a table; where its filter means nothing, good does, the last that did. Plain
// columns are measured when they are drawn.
func list(ctx context.Context, t *table.Table, c choice, good string, plainColumns bool) (listing, error) {
	l := listing{table: t, choice: c, good: c.filter}
	if l.choice.Filter, l.err = t.ParseFilter(c.filter); l.err != nil {
		l.good = good
		l.choice.Filter, _ = t.ParseFilter(good) // of another table it may mean nothing: then all rows show
	}
	if !t.Sortable(c.Sort) { // another table has not that column, or nothing in it
		l.choice.Sort, l.choice.Reverse = "", c.Reverse && c.Sort == ""
	} else {
		t = t.Apart()
		l.table = t
	}
	var err error
	if l.rows, err = t.Select(ctx, l.choice.Selection); err != nil {
		return l, err
	}
	l.found, l.first = l.count(), l.firstFound()
	l.notes = l.noted()
	if plainColumns {
		return l, nil
	}
	// Columns are those of all rows that pass the filter, open or not: opening one moves none of them.
	every, err := t.Select(ctx, table.Selection{All: true, Filter: l.choice.Filter})
	if err != nil {
		return l, err
	}
	if len(l.rows) == 0 {
		return l, nil
	}
	of := every
	if l.good != "" { // a filter takes no column away, and a bar says as much with one as without
		if of, err = t.Select(ctx, table.Selection{All: true}); err != nil {
			return l, err
		}
	}
	if l.uniform, err = t.Uniform(ctx, of); err != nil {
		return l, err
	}
	if l.most, err = l.longest(ctx, of); err != nil {
		return l, err
	}
	l.least = make([]int, len(t.Columns))
	if l.widths, err = l.measure(ctx, every); err != nil {
		return l, err
	}
	l.narrow, err = l.measure(ctx, l.rows)
	return l, err
}

// measure finds how wide the cells of each column are.
func (l *listing) measure(ctx context.Context, rows []int) ([]int, error) {
	t := l.table
	widths := make([]int, len(t.Columns))
	for i, r := range rows[:min(len(rows), measuredRows)] {
		if i%100 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for c := range t.Columns {
			cell := t.Cell(r, c)
			widths[c] = max(widths[c], width(l.placed(cell.Text, r, c)))
			if cell.Short != "" {
				l.least[c] = max(l.least[c], width(l.placed(cell.Short, r, c)))
			}
		}
	}
	return widths, nil
}

// longest finds the largest number of each column that is drawn as bars: that is what a whole bar is.
func (l *listing) longest(ctx context.Context, rows []int) ([]float64, error) {
	t := l.table
	most := make([]float64, len(t.Columns))
	for i, r := range rows[:min(len(rows), measuredRows)] {
		if i%100 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for c := range t.Columns {
			if !t.Columns[c].Bar || t.Rows[r].Group {
				continue
			}
			if cell := t.Cell(r, c); cell.Has {
				most[c] = max(most[c], cell.Number)
			}
		}
	}
	return most, nil
}

// count counts the rows, and says how many pass the filter, "" without one, and what is hidden of each row.
func (l *listing) count() string {
	rows := l.table.Rows
	for r := range rows {
		if !rows[r].Children && !rows[r].Joint {
			l.all++
		}
	}
	if l.good == "" {
		return ""
	}
	l.leaves, l.shown = make([]int, len(rows)), make([]int, len(rows)) // itself, where none stand in it
	for r := len(rows) - 1; r >= 0; r-- {                              // children come after their parents
		if !rows[r].Children {
			l.leaves[r] = 1
		}
		if up := rows[r].Parent; up >= 0 {
			l.leaves[up] += l.leaves[r]
		}
	}
	l.unfolded = make([]bool, len(rows))
	for _, r := range l.rows {
		if up := rows[r].Parent; up >= 0 {
			l.unfolded[up] = true
		}
	}
	passed := 0
	for _, r := range l.rows {
		if l.unfolded[r] {
			continue
		}
		passed += l.leaves[r] // closed, it stands for all that is in it
		for up := r; up >= 0; up = rows[up].Parent {
			l.shown[up] += l.leaves[r]
		}
	}
	for _, r := range l.rows {
		l.partial = l.partial || l.shown[r] < l.leaves[r]
	}
	return fmt.Sprintf("filter %s: %s of %s rows", l.good, count(passed), count(l.all))
}

// noted are the notes of the table; where a filter hides rows, those about rows of which all is shown, if the
// table knows which these are.
func (l *listing) noted() []string {
	of, ok := l.table.From.(interface{ NotesOf(rows ...int) []string })
	if !ok || l.good == "" {
		return l.table.Notes
	}
	var all []int
	for _, r := range l.rows {
		if l.shown[r] == l.leaves[r] {
			all = append(all, r)
		}
	}
	return of.NotesOf(all...)
}

// firstFound is where the first row stands that the filter finds, as whole; of rows with its name the one
// that stands for most: k of 14 layers alike and not of the first.
func (l *listing) firstFound() int {
	if l.good == "" {
		return -1
	}
	first := -1
	for _, r := range l.rows {
		row := l.whole(r)
		if first >= 0 && (l.leaves[row] <= l.leaves[first] || l.nameOf(row) != l.nameOf(first)) {
			continue
		}
		if l.choice.Filter.Match(l.table, r) {
			first = row
		}
	}
	return slices.Index(l.rows, first)
}

// whole is the row that a row stands in, where the filter finds all that it stands for, or the row itself.
func (l *listing) whole(row int) int {
	for up := l.table.Rows[row].Parent; up >= 0; up = l.table.Rows[up].Parent {
		if l.table.Rows[up].Group || l.shown[up] < l.leaves[up] {
			break
		}
		row = up
	}
	return row
}

// nameOf is the tree's column of a row.
func (l *listing) nameOf(row int) string {
	i := slices.IndexFunc(l.table.Columns, func(c table.Column) bool { return c.Tree })
	if i < 0 {
		return ""
	}
	return l.table.Cell(row, i).Text
}

// text is what a cell shows, the tree's column with its indentation.
func (l *listing) text(row, col int) string { return l.placed(l.table.Cell(row, col).Text, row, col) }

// placed is what a cell says, in the tree's column behind the indentation.
func (l *listing) placed(s string, row, col int) string {
	if l.table.Columns[col].Tree {
		return l.branch(row) + l.named(s, row)
	}
	return s
}

// named is the name of a row; where a filter hides some of what its sums are of, it says so.
func (l *listing) named(name string, row int) string {
	if l.shown == nil || l.shown[row] == l.leaves[row] {
		return name
	}
	return fmt.Sprintf("%s %d/%d", name, l.shown[row], l.leaves[row])
}

// branch is what stands before the name of a row: how deep it is, and whether it is open.
func (l *listing) branch(row int) string {
	r := l.table.Rows[row]
	switch {
	case !r.Children:
		return blank(2 * r.Depth)
	case l.isOpen(row):
		return blank(2*r.Depth) + markOpen + " "
	}
	return blank(2*r.Depth) + markClosed + " "
}

func (l *listing) isOpen(r int) bool {
	if l.unfolded != nil && l.unfolded[r] {
		return true
	}
	row := &l.table.Rows[r]
	if open, ok := l.choice.Open[row.Key]; ok {
		return open
	}
	return row.Open
}

// order says in words how rows are sorted.
func (l *listing) order() string {
	name := "graph"
	if l.choice.Sort != "" {
		name = l.table.Columns[l.table.Column(l.choice.Sort)].Title
		if l.choice.Reverse {
			name += "↓"
		} else {
			name += "↑"
		}
	} else if l.choice.Reverse {
		name += "↓"
	}
	return name
}

// exported is the table as a file has it: with the column that its rows stand in order by, as on any screen,
// and one that a filter leaves a part of says in a column which rows have sums of more than is there. On the
// screen the rows' names say it.
func (l *listing) exported() *table.Table {
	columns := slices.Clone(l.table.Columns)
	if by := l.table.Column(l.choice.Sort); by >= 0 {
		columns[by].Width = 0 // on any screen, and the last that goes for want of room
	}
	if l.partial {
		columns = append(columns, table.Column{
			Name: "sums_of", Title: "sums of",
			Doc: "of how many rows its sums are, where not all of them are here",
			Of: func(r int) table.Cell {
				if l.shown[r] == l.leaves[r] {
					return table.Cell{}
				}
				all, here := plural(l.leaves[r], "row"), count(l.shown[r])
				return table.Text(fmt.Sprintf("all %s, %s here", all, here))
			},
		})
	}
	t := l.table.WithColumns(columns)
	t.Notes = l.notes
	return t
}
