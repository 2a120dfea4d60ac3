package widget

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gpuscope/trace/table"
)

// Listing is a table as a person chose to see it. Whatever takes longer the longer the table is stands in it:
// jobs make listings, and they do not change.
type Listing struct {
	of     any // what the table is of
	At     any // what the screen showed when it was made
	Table  *table.Table
	Choice Choice
	Rows   []int // indices into table.Rows that are shown
	Err    error // of the filter: the rows are those of good, the last one that meant something
	good   string
	Found  string
	First  int // index into rows of the first that the filter finds, -1 where there is none
	// Shown are the leaves of a row that are shown, where a filter hides some, partial that there are such.
	Shown, Leaves []int
	partial       bool
	all           int      // rows of the table in which none stand
	unfolded      []bool   // rows in which others are shown, where there is a filter
	Notes         []string // of the table, about what is shown
	// uniform are the columns that say the same in all rows of the table, shown or not: the title has them.
	uniform []int
	most    []float64 // by column, the largest number of those that are drawn as bars
	// least is by column how wide what must not be lost of its cells is; 0 where they are cut.
	least []int
	// widths are by column those of the cells of all rows, narrow those of the rows that are shown; nil where
	// they are taken from the rows in sight.
	widths, narrow []int
}

// Choice is which rows a person wants to see, in which order.
type Choice struct {
	table.Selection
	Typed string // as it was typed
}

// with is a choice in which a row is open or closed. The choice itself stays as it is: a job may read it.
func (c Choice) with(key string, open bool) Choice {
	if c.Open = maps.Clone(c.Open); c.Open == nil {
		c.Open = map[string]bool{}
	}
	c.Open[key] = open
	return c
}

// What the widths of columns are measured on: rows from the top. A table may have a million.
const measuredRows = 2000

// Listed applies a choice to a table; where its filter means nothing, good does, the last that did. Plain
// columns are measured when they are drawn.
func Listed(ctx context.Context, t *table.Table, c Choice, good string, plainColumns bool) (Listing, error) {
	l := Listing{Table: t, Choice: c, good: c.Typed}
	if l.Choice.Filter, l.Err = t.ParseFilter(c.Typed); l.Err != nil {
		l.good = good
		l.Choice.Filter, _ = t.ParseFilter(good) // of another table it may mean nothing: then all rows show
	}
	if !t.Sortable(c.Sort) { // another table has not that column, or nothing in it
		l.Choice.Sort, l.Choice.Reverse = "", c.Reverse && c.Sort == ""
	} else {
		t = t.Apart()
		l.Table = t
	}
	var err error
	if l.Rows, err = t.Select(ctx, l.Choice.Selection); err != nil {
		return l, err
	}
	l.Found, l.First = l.count(), l.firstFound()
	l.Notes = l.noted()
	if plainColumns {
		return l, nil
	}
	// Columns are those of all rows that pass the filter, open or not: opening one moves none of them.
	every, err := t.Select(ctx, table.Selection{All: true, Filter: l.Choice.Filter})
	if err != nil {
		return l, err
	}
	if len(l.Rows) == 0 {
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
	measured := map[int][]int{}
	if l.widths, err = l.measure(ctx, every, measured); err != nil {
		return l, err
	}
	l.narrow, err = l.measure(ctx, l.Rows, measured)
	return l, err
}

// measure finds how wide the cells of each column are. Rows that were measured are kept: a cell is costly.
func (l *Listing) measure(ctx context.Context, rows []int, measured map[int][]int) ([]int, error) {
	widths := make([]int, len(l.Table.Columns))
	for i, r := range rows[:min(len(rows), measuredRows)] {
		if i%100 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		cells, known := measured[r]
		if !known {
			cells = l.measureRow(r)
			measured[r] = cells
		}
		for c, n := range cells {
			widths[c] = max(widths[c], n)
		}
	}
	return widths, nil
}

// measureRow finds how wide the cells of a row are, and what must not be lost of them.
func (l *Listing) measureRow(r int) []int {
	cells := make([]int, len(l.Table.Columns))
	for c := range cells {
		cell := l.Table.Cell(r, c)
		cells[c] = Width(l.placed(cell.Text, r, c))
		if cell.Short != "" {
			l.least[c] = max(l.least[c], Width(l.placed(cell.Short, r, c)))
		}
	}
	return cells
}

// longest finds the largest number of each column that is drawn as bars: that is what a whole bar is.
func (l *Listing) longest(ctx context.Context, rows []int) ([]float64, error) {
	t := l.Table
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
func (l *Listing) count() string {
	rows := l.Table.Rows
	for r := range rows {
		if !rows[r].Children && !rows[r].Joint {
			l.all++
		}
	}
	if l.good == "" {
		return ""
	}
	l.Leaves, l.Shown = make([]int, len(rows)), make([]int, len(rows)) // itself, where none stand in it
	for r := len(rows) - 1; r >= 0; r-- {                              // children come after their parents
		if !rows[r].Children {
			l.Leaves[r] = 1
		}
		if up := rows[r].Parent; up >= 0 {
			l.Leaves[up] += l.Leaves[r]
		}
	}
	l.unfolded = make([]bool, len(rows))
	for _, r := range l.Rows {
		if up := rows[r].Parent; up >= 0 {
			l.unfolded[up] = true
		}
	}
	passed := 0
	for _, r := range l.Rows {
		if l.unfolded[r] {
			continue
		}
		passed += l.Leaves[r] // closed, it stands for all that is in it
		for up := r; up >= 0; up = rows[up].Parent {
			l.Shown[up] += l.Leaves[r]
		}
	}
	for _, r := range l.Rows {
		l.partial = l.partial || l.Shown[r] < l.Leaves[r]
	}
	return fmt.Sprintf("filter %s: %s of %s rows", l.good, Count(passed), Count(l.all))
}

// noted are the notes of the table; where a filter hides rows, those about rows of which all is shown, if the
// table knows which these are.
func (l *Listing) noted() []string {
	of, ok := l.Table.From.(interface{ NotesOf(rows ...int) []string })
	if !ok || l.good == "" {
		return l.Table.Notes
	}
	var all []int
	for _, r := range l.Rows {
		if l.Shown[r] == l.Leaves[r] {
			all = append(all, r)
		}
	}
	return of.NotesOf(all...)
}

// firstFound is where the first row stands that the filter finds, as whole; of rows with its name the one
// that stands for most: k of 14 layers alike and not of the first.
func (l *Listing) firstFound() int {
	if l.good == "" {
		return -1
	}
	first := -1
	for _, r := range l.Rows {
		row := l.whole(r)
		if first >= 0 && (l.Leaves[row] <= l.Leaves[first] || l.nameOf(row) != l.nameOf(first)) {
			continue
		}
		if l.Choice.Filter.Match(l.Table, r) {
			first = row
		}
	}
	return slices.Index(l.Rows, first)
}

// whole is the row that a row stands in, where the filter finds all that it stands for, or the row itself.
func (l *Listing) whole(row int) int {
	for up := l.Table.Rows[row].Parent; up >= 0; up = l.Table.Rows[up].Parent {
		if l.Table.Rows[up].Group || l.Shown[up] < l.Leaves[up] {
			break
		}
		row = up
	}
	return row
}

// nameOf is the tree's column of a row.
func (l *Listing) nameOf(row int) string {
	i := slices.IndexFunc(l.Table.Columns, func(c table.Column) bool { return c.Tree })
	if i < 0 {
		return ""
	}
	return l.Table.Cell(row, i).Text
}

// text is what a cell shows, the tree's column with its indentation.
func (l *Listing) text(row, col int) string { return l.placed(l.Table.Cell(row, col).Text, row, col) }

// placed is what a cell says, in the tree's column after the indentation.
func (l *Listing) placed(s string, row, col int) string {
	if l.Table.Columns[col].Tree {
		return l.branch(row) + l.named(s, row)
	}
	return s
}

// named is the name of a row; where a filter hides some of what its sums are of, it says so.
func (l *Listing) named(name string, row int) string {
	if l.Shown == nil || l.Shown[row] == l.Leaves[row] {
		return name
	}
	return fmt.Sprintf("%s %d/%d", name, l.Shown[row], l.Leaves[row])
}

// branch is what stands before the name of a row: how deep it is, and whether it is open.
func (l *Listing) branch(row int) string {
	r := l.Table.Rows[row]
	switch {
	case !r.Children:
		return Blank(2 * r.Depth)
	case l.IsOpen(row):
		return Blank(2*r.Depth) + markOpen + " "
	}
	return Blank(2*r.Depth) + MarkClosed + " "
}

func (l *Listing) IsOpen(r int) bool {
	if l.unfolded != nil && l.unfolded[r] {
		return true
	}
	row := &l.Table.Rows[r]
	if open, ok := l.Choice.Open[row.Key]; ok {
		return open
	}
	return row.Open
}

// order says in words how rows are sorted.
func (l *Listing) order() string {
	name := "graph"
	if l.Choice.Sort != "" {
		name = l.Table.Columns[l.Table.Column(l.Choice.Sort)].Title
		if l.Choice.Reverse {
			name += "↓"
		} else {
			name += "↑"
		}
	} else if l.Choice.Reverse {
		name += "↓"
	}
	return name
}

// Exported is the table as a file has it: with the column that its rows stand in order by, as on any screen,
// and one that a filter leaves a part of says in a column which rows have sums of more than is there. On the
// screen the rows' names say it.
func (l *Listing) Exported() *table.Table {
	columns := slices.Clone(l.Table.Columns)
	if by := l.Table.Column(l.Choice.Sort); by >= 0 {
		columns[by].Width = 0 // on any screen, and the last that goes for want of room
	}
	if l.partial {
		columns = append(columns, table.Column{
			Name: "sums_of", Title: "sums of",
			Doc: "number of rows that the sums cover, if the filter hides some of them",
			Of: func(r int) table.Cell {
				if l.Shown[r] == l.Leaves[r] {
					return table.Cell{}
				}
				all, here := Plural(l.Leaves[r], "row"), Count(l.Shown[r])
				return table.Text(fmt.Sprintf("all %s, %s here", all, here))
			},
		})
	}
	t := l.Table.WithColumns(columns)
	t.Notes = l.Notes
	return t
}
