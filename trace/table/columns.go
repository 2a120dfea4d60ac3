package table

// ColumnsOf makes columns over typed rows, a line each. The order of a table's columns is that of its list.
//
//	of := table.ColumnsOf(runners)
//	t := table.New("runners", []table.Column{
//		of.Text(80, "name", "name", "who ran", func(r *runner) string { return r.name }),
//		of.Int(80, "laps", "laps", "laps", "laps that were run", func(r *runner) int64 { return r.laps }),
//	}, rows)
//
// Every builder takes the screen width from which on the column is shown, its name for CSV, JSON and filters,
// its title and its doc; one of numbers takes their unit before the doc.
func ColumnsOf[R any](rows []R) Columns[R] { return Columns[R]{rows: rows} }

// Columns builds columns over rows of a type.
type Columns[R any] struct {
	rows []R
	has  func(*R) bool // nil: every row has cells
}

// Where is a builder of columns that are empty except for some rows.
func (b Columns[R]) Where(has func(*R) bool) Columns[R] { return Columns[R]{b.rows, has} }

// cells gives the cells of the rows that have some.
func (b Columns[R]) cells(of func(*R) Cell) func(int) Cell {
	return func(row int) Cell {
		if r := &b.rows[row]; b.has == nil || b.has(r) {
			return of(r)
		}
		return Cell{}
	}
}

// Text is a column of words.
func (b Columns[R]) Text(width int, name, title, doc string, of func(*R) string) Column {
	return Column{
		Name: name, Title: title, Doc: doc, Width: width,
		Of: b.cells(func(r *R) Cell { return Text(of(r)) }),
	}
}

// Int is a column of counts, aligned right.
func (b Columns[R]) Int(width int, name, title, unit, doc string, of func(*R) int64) Column {
	return Column{
		Name: name, Title: title, Unit: unit, Doc: doc, Width: width, Is: Exact, Right: true,
		Of: b.cells(func(r *R) Cell { return Count(of(r)) }),
	}
}

// Cell is a column of numbers of any basis, aligned right, whose cells are made by a function.
func (b Columns[R]) Cell(width int, is Basis, name, title, unit, doc string, of func(*R) Cell) Column {
	return Column{
		Name: name, Title: title, Unit: unit, Doc: doc, Width: width, Is: is, Right: true,
		Of: b.cells(of),
	}
}

// Words is a column of cells without a number, such as texts with a short form.
func (b Columns[R]) Words(width int, name, title, doc string, of func(*R) Cell) Column {
	return Column{
		Name: name, Title: title, Doc: doc, Width: width,
		Of: b.cells(of),
	}
}
