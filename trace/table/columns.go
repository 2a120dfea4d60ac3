package table

// ColumnsOf returns a builder of columns over typed rows. Each builder call is one line:
//
//	of := table.ColumnsOf(runners)
//	t := table.New("runners", []table.Column{
//		of.Text(80, "name", "name", "who ran", func(r *runner) string { return r.name }),
//		of.Int(80, "laps", "laps", "laps", "laps that were run", func(r *runner) int64 { return r.laps }),
//	}, rows)
//
// Every builder method accepts the minimum screen width of the column, its name in CSV, JSON and filters,
// its title and its doc. Methods for columns of numbers also accept the unit, before the doc.
func ColumnsOf[R any](rows []R) Columns[R] { return Columns[R]{rows: rows} }

// Columns builds columns over rows of one type.
type Columns[R any] struct {
	rows []R
	has  func(*R) bool // nil if every row has a cell
}

// Where returns a builder of columns that have cells only in the rows for which has returns true.
func (b Columns[R]) Where(has func(*R) bool) Columns[R] { return Columns[R]{b.rows, has} }

// cells turns a function of a typed row into a function of a row index. The new function returns an empty
// cell for rows without a cell.
func (b Columns[R]) cells(of func(*R) Cell) func(int) Cell {
	return func(row int) Cell {
		if r := &b.rows[row]; b.has == nil || b.has(r) {
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
