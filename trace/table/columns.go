package table

// ColumnsOf returns a builder of columns over typed rows. Each column is one call of a builder method:
//
//	of := table.ColumnsOf(runners)
//	t := table.New("runners", []table.Column{
//		of.Text(80, "name", "name", "who ran", func(r *runner) string { return r.name }),
//		of.Int(80, "laps", "laps", "laps", "laps that were run", func(r *runner) int64 { return r.laps }),
//	}, rows)
//
// Every builder method takes the width of the narrowest screen that shows the column. It also takes the
// column's name in CSV, JSON and filters, its title and its doc. Methods for columns of numbers also take the
// unit, before the doc. To change the column, call methods of Column such as AsTree, which return a changed
// copy.
func ColumnsOf[R any](rows []R) Columns[R] {
	return ColumnsAt(func(row int) *R { return &rows[row] })
}

// ColumnsAt is ColumnsOf for rows that are not in a slice. The function `at` returns the row at an index.
func ColumnsAt[R any](at func(row int) *R) Columns[R] { return Columns[R]{at: at} }

// Columns builds the columns of a table whose rows have the type R.
type Columns[R any] struct {
	at  func(row int) *R
	has func(*R) bool // whether a row has a cell; nil if all rows do
}

// Where returns a builder of columns that only have cells in rows that satisfy a condition. If Where was
// called before, only the new condition applies.
func (b Columns[R]) Where(has func(*R) bool) Columns[R] { return Columns[R]{b.at, has} }

// cells returns a function from the index of a row to its cell. If the row has no cell in this column, the
// cell is empty.
func (b Columns[R]) cells(of func(*R) Cell) func(int) Cell {
	return func(row int) Cell {
		if r := b.at(row); b.has == nil || b.has(r) {
			return of(r)
		}
		return Cell{}
	}
}

// Text returns a column of text.
func (b Columns[R]) Text(width int, name, title, doc string, of func(*R) string) Column {
	return Column{
		Name: name, Title: title, Doc: doc, Width: width,
		Of: b.cells(func(r *R) Cell { return Text(of(r)) }),
	}
}

// Int returns a column of counts. It is aligned to the right.
func (b Columns[R]) Int(width int, name, title, unit, doc string, of func(*R) int64) Column {
	return Column{
		Name: name, Title: title, Unit: unit, Doc: doc, Width: width, Is: Exact, Right: true,
		Of: b.cells(func(r *R) Cell { return Count(of(r)) }),
	}
}

// Cell returns a column of numbers, aligned to the right. `is` says where the numbers come from, and `of`
// returns the cell of a row.
func (b Columns[R]) Cell(width int, is Basis, name, title, unit, doc string, of func(*R) Cell) Column {
	return Column{
		Name: name, Title: title, Unit: unit, Doc: doc, Width: width, Is: is, Right: true,
		Of: b.cells(of),
	}
}

// Words returns a column of text whose cells have more than a text, such as a short form.
func (b Columns[R]) Words(width int, name, title, doc string, of func(*R) Cell) Column {
	return Column{
		Name: name, Title: title, Doc: doc, Width: width,
		Of: b.cells(of),
	}
}

// AsTree returns the column as the tree column: the indentation of its text shows the tree of rows.
func (c Column) AsTree() Column { c.Tree = true; return c }

// WithBars returns the column with a bar next to each number.
func (c Column) WithBars() Column { c.Bar = true; return c }

// AlignLeft returns the column, aligned to the left. Without this, columns of numbers are aligned to the
// right.
func (c Column) AlignLeft() Column { c.Right = false; return c }

// AlignRight returns the column, aligned to the right. Without this, columns of text are aligned to the left.
func (c Column) AlignRight() Column { c.Right = true; return c }
