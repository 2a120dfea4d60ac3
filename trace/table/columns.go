package table

// ColumnsOf returns a builder of columns over typed rows. Each column is one call of a builder method:
//
//	of := table.ColumnsOf(runners)
//	t := table.New("runners", []table.Column{
//		of.Text(80, "name", "name", "who ran", func(r *runner) string { return r.name }),
//		of.Int(80, "laps", "laps", "laps", "laps that were run", func(r *runner) int64 { return r.laps }),
//	}, rows)
//
// Every builder method accepts the minimum screen width of the column, its name in CSV, JSON and filters,
// its title and its doc. Methods for columns of numbers also accept the unit, before the doc. The methods of
// Column that return a changed copy, such as AsTree, follow the call.
func ColumnsOf[R any](rows []R) Columns[R] {
	return ColumnsAt(func(row int) *R { return &rows[row] })
}

// ColumnsAt is like ColumnsOf for rows that are not the elements of a slice. The argument returns the row at
// an index.
func ColumnsAt[R any](at func(row int) *R) Columns[R] { return Columns[R]{at: at} }

// Columns builds columns over rows of one type.
type Columns[R any] struct {
	at  func(row int) *R
	has func(*R) bool // nil if every row has a cell
}

// Where returns a builder of columns that have cells only in the rows for which has returns true. It replaces
// the condition of an earlier Where.
func (b Columns[R]) Where(has func(*R) bool) Columns[R] { return Columns[R]{b.at, has} }

// cells turns a function of a typed row into a function of a row index. The new function returns an empty
// cell for rows without a cell.
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

// Int returns a right-aligned column of counts.
func (b Columns[R]) Int(width int, name, title, unit, doc string, of func(*R) int64) Column {
	return Column{
		Name: name, Title: title, Unit: unit, Doc: doc, Width: width, Is: Exact, Right: true,
		Of: b.cells(func(r *R) Cell { return Count(of(r)) }),
	}
}

// Cell returns a right-aligned column of numbers of any basis. The last argument is the function that
// computes the cells.
func (b Columns[R]) Cell(width int, is Basis, name, title, unit, doc string, of func(*R) Cell) Column {
	return Column{
		Name: name, Title: title, Unit: unit, Doc: doc, Width: width, Is: is, Right: true,
		Of: b.cells(of),
	}
}

// Words returns a column of cells without numbers, such as texts with a short form.
func (b Columns[R]) Words(width int, name, title, doc string, of func(*R) Cell) Column {
	return Column{
		Name: name, Title: title, Doc: doc, Width: width,
		Of: b.cells(of),
	}
}

// AsTree returns the column as the tree column, whose indentation shows the tree of rows.
func (c Column) AsTree() Column { c.Tree = true; return c }

// WithBars returns the column with a bar next to each number.
func (c Column) WithBars() Column { c.Bar = true; return c }

// AlignLeft returns the column left-aligned. Columns of numbers are right-aligned otherwise.
func (c Column) AlignLeft() Column { c.Right = false; return c }

// AlignRight returns the column right-aligned. Columns of text are left-aligned otherwise.
func (c Column) AlignRight() Column { c.Right = true; return c }
