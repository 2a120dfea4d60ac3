package widget

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gpuscope/trace/table"
)

// Listing is a table with the user's choice of rows, order and filter applied. A background job computes a
// listing, which never changes afterwards.
type Listing struct {
	of     any // identifies the data of the table
	At     any // identifies what the screen showed when the listing was requested
	form   any // value of TablePane.Form when the listing was requested
	Table  *table.Table
	headed *table.Table // Table with group headings, which a sorted Table lacks
	Choice Choice
	Rows   []int // indices into Table.Rows of the rows in the listing
	Err    error // error in the filter; Rows was then computed with the last valid filter
	good   string
	Found  string
	First  int // index into Rows of the first row that matches the filter; -1 if none does
	// Leaves is, for each row, the number of leaf rows below the row, and Shown the number of these
	// leaves that pass the filter. Both are nil without a filter. partial reports that the filter hides
	// some leaves of a row of the listing.
	Shown, Leaves []int
	partial       bool
	all           int      // number of leaf rows in the table
	unfolded      []bool   // for each row, whether it has visible children; nil without a filter
	Notes         []string // notes of the table about the visible rows
	// uniform lists the columns in which all rows of the table, also hidden rows, have the same value.
	// The list hides these columns, and the title shows their values.
	uniform []int
	most    []float64 // largest number of each column that is drawn as bars
	// least is, for each column, the minimum width in cells; 0 if the cells may be cut to any width.
	least []int
	// widths is, for each column, the width of the widest cell among all rows of the table. narrow is the
	// same among the rows of the listing. Both are nil if columns are measured on the visible rows
	// instead.
	widths, narrow []int
}

// Choice is the user's choice of rows and their order.
type Choice struct {
	table.Selection
	Typed string // filter as the user typed it
}

// with returns a copy of the choice in which a row is open or closed. The original stays unchanged because a
// job may be reading it.
func (c Choice) with(key string, open bool) Choice {
	if c.Open = maps.Clone(c.Open); c.Open == nil {
		c.Open = map[string]bool{}
	}
	c.Open[key] = open
	return c
}

// measuredRows is the maximum number of rows, from the top, on which the widths of columns are measured. A
// table may have a million rows.
const measuredRows = 2000

// Listed returns the listing of a table for a choice of the user. If the filter of the choice is invalid,
// Listed applies the last valid filter, `good`. If `plainColumns` is set, the widths of columns are not
// measured here, but when the rows are drawn.
func Listed(ctx context.Context, t *table.Table, c Choice, good string, plainColumns bool) (Listing, error) {
	l := Listing{Table: t, headed: t, Choice: c, good: c.Typed}
	if l.Choice.Filter, l.Err = t.ParseFilter(ctx, c.Typed); l.Err != nil {
		l.good = good
		l.Choice.Filter, _ = t.ParseFilter(ctx, good) // if good is invalid for this table, all rows are shown
	}
	if !t.Sortable(c.Sort) { // the table lacks this column, or the column is empty
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
	// Measure all rows that pass the filter, including rows inside closed ones. Opening a row then does not
	// move any column.
	every, err := t.Select(ctx, table.Selection{All: true, Filter: l.Choice.Filter})
	if err != nil {
		return l, err
	}
	if len(l.Rows) == 0 {
		return l, nil
	}
	of := every
	if l.good != "" { // neither the set of columns nor the scale of bars may depend on the filter
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

// measure returns the maximum cell width of each column. It caches the widths of each row in `measured`.
func (l *Listing) measure(ctx context.Context, rows []int, measured map[int][]int) ([]int, error) {
	widths := make([]int, len(l.Table.Columns))
	for c := range widths {
		widths[c] = Width(l.Table.TotalCell(c).Text)
	}
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

// measureRow returns the width of each cell of a row. If a cell has a short text, measureRow also increases
// `least` of its column to the width of the short text.
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

// longest returns, for each column of bars, the largest number, which is drawn as a full bar.
func (l *Listing) longest(ctx context.Context, rows []int) ([]float64, error) {
	t := l.Table
	most := make([]float64, len(t.Columns))
	for i, r := range rows[:min(len(rows), measuredRows)] {
		if i%100 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for c := range t.Columns {
			if !t.Columns[c].Bar {
				continue
			}
			if cell := t.Cell(r, c); cell.Has {
				most[c] = max(most[c], cell.Number)
			}
		}
	}
	return most, nil
}

// count counts the rows and the shown leaves of each row. It returns a description of the filter's result, or
// "" without a filter.
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
	l.Leaves, l.Shown = make([]int, len(rows)), make([]int, len(rows)) // a leaf counts as one leaf
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
		passed += l.Leaves[r] // of a closed row, all leaves count
		for up := r; up >= 0; up = rows[up].Parent {
			l.Shown[up] += l.Leaves[r]
		}
	}
	for _, r := range l.Rows {
		l.partial = l.partial || l.Shown[r] < l.Leaves[r]
	}
	return fmt.Sprintf("filter %s: %s of %s rows", l.good, Count(passed), Count(l.all))
}

// noted returns the notes of the table. If a filter is set and the table has notes about certain rows, noted
// leaves out the notes about rows with hidden leaves.
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

// firstFound returns the index of the first match of the filter. If all leaves of a parent match, the parent
// is the match instead of its children. Among matches of the same name, firstFound returns the match with the
// most leaves: the row of operator k in 14 identical layers rather than that of operator k in the first
// layer.
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

// whole goes from the row to its parent, and on to the parent of the parent, as long as the parent is not a
// group and all its leaves pass the filter. It returns the last row that it reached.
func (l *Listing) whole(row int) int {
	for up := l.Table.Rows[row].Parent; up >= 0; up = l.Table.Rows[up].Parent {
		if l.Table.Rows[up].Group || l.Shown[up] < l.Leaves[up] {
			break
		}
		row = up
	}
	return row
}

// nameOf returns the name of the row, which is its cell in the tree column.
func (l *Listing) nameOf(row int) string {
	i := slices.IndexFunc(l.Table.Columns, func(c table.Column) bool { return c.Tree })
	if i < 0 {
		return ""
	}
	return l.Table.Cell(row, i).Text
}

// text returns the displayed text of a cell. In the tree column, the text begins with the indentation.
func (l *Listing) text(row, col int) string { return l.placed(l.Table.Cell(row, col).Text, row, col) }

// placed returns s as displayed in a cell. In the tree column, it puts the indentation before s.
func (l *Listing) placed(s string, row, col int) string {
	if l.Table.Columns[col].Tree {
		return l.branch(row) + l.named(s, row)
	}
	return s
}

// named returns the name of a row, followed by the numbers "shown/all" of its leaves if a filter hides some.
func (l *Listing) named(name string, row int) string {
	if l.Shown == nil || l.Shown[row] == l.Leaves[row] {
		return name
	}
	return fmt.Sprintf("%s %d/%d", name, l.Shown[row], l.Leaves[row])
}

// branch returns the start of a cell in the tree column: the indentation and the marker of an open or closed
// row.
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

// order describes the sort order in words.
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

// Exported returns the table as it is exported to a file, always with the column that the rows are sorted by.
// If a filter hides some rows, an extra column marks each row whose sums include hidden rows.
func (l *Listing) Exported() *table.Table {
	columns := slices.Clone(l.Table.Columns)
	if by := l.Table.Column(l.Choice.Sort); by >= 0 {
		columns[by].Width = 0 // 0 means that the column is for screens of any width and is dropped last
	}
	if l.partial {
		of := table.ColumnsAt(func(row int) *int { return &row }).
			Where(func(row *int) bool { return l.Shown[*row] != l.Leaves[*row] })
		columns = append(columns, of.Text(0, "sums_of", "sums of",
			"if a filter hides rows inside this row: number of rows that this row's sums include, and how many of them are shown",
			func(row *int) string {
				all, here := Plural(l.Leaves[*row], "row"), Count(l.Shown[*row])
				return fmt.Sprintf("all %s, %s here", all, here)
			}))
	}
	t := l.Table.WithColumns(columns)
	t.Notes = l.Notes
	return t
}
