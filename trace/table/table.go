// Package table implements tables of typed columns. It selects the rows of a tree by folding, filtering and
// sorting, and prints tables as text, CSV, JSON and Markdown. It also formats sizes, shapes, grids and times
// for tables and sentences. It does not know what its tables are about.
//
// A table has a list of columns and a list of rows. A column has a name, a unit, and a Basis, which says
// where its numbers come from. It also has a function that computes the cell of a row. This function is
// called only for the cells that are needed.
//
//	of := table.ColumnsOf(runners)
//	t := table.New("runners", []table.Column{
//		of.Text(80, "name", "name", "who ran", func(r *runner) string { return r.name }),
//		of.Cell(80, table.Measured, "s", "s", "s", "time of a lap", ...),
//	}, rows)
//	rows, err := t.Select(ctx, table.Selection{Sort: "s"})
//	...
//	err = t.Print(ctx, os.Stdout, "text", rows, 80)
//
// Tables are immutable and may be read from several goroutines. Functions whose run time grows with the
// table accept a context and stop when it is cancelled.
package table

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gpuscope/internal/printable"
	"gpuscope/trace/tree"
)

// Table is what a screen shows and what a command prints. It has columns, rows (which may form a tree), a
// title above them and notes below them. A cell is computed only when it is needed, so the cost of a long
// table depends on how many cells are shown.
type Table struct {
	Name    string // "dispatches"
	Title   []Line // lines of text above the columns
	Columns []Column
	Rows    []Row    // in pre-order if the rows form a tree
	Flat    bool     // the rows are not a tree; CSV then has no column for the depth
	Notes   []string // lines below the rows
	// Total, if set, returns the cells of a line below the rows with the sums of all rows, by the name of the
	// column. A filter and the order do not change it. CSV has no such line, so that a program can add up the
	// rows.
	Total func(column string) Cell
	// From is the data from which the rows were made. Code that knows the table uses it to show more about a
	// row than the table contains.
	From any
	// Finder, if set, makes filters search another table.
	Finder *Finder

	empty []bool    // for each row, whether Apart took all rows from this heading; nil without Apart
	below []int32   // for each row, the number of rows inside it
	kept  *sync.Map // cache of the cells of rows with many rows inside; the key is a place
}

// place identifies a cell by its row and its column.
type place struct{ row, col int }

// manyRows is the number of inner rows from which on the cells of a row are cached. Each of these cells takes
// as long to compute as the cells of all inner rows.
const manyRows = 64

// Column is a column of a table: its description, and the function that computes its cells.
type Column struct {
	Name  string // name in CSV, JSON and filters: "sum_us"
	Title string // title on the screen: "total"
	Unit  string // unit of Cell.Number: "us", "GB/s", "%"; "" for text
	Is    Basis  // where the numbers come from
	Right bool   // right-aligned
	// TextUnit is the unit in which Cell.Text shows the number: "ms" for long times whose Unit is "us". If it
	// is "", the text is in Unit.
	TextUnit string
	// Width is the width in cells from which a screen shows the column: 80, 110, 140 or 200. It is Unseen if
	// no screen does.
	Width int
	// Bar is set if the screen draws a bar for each number. A full bar stands for the largest number in all
	// rows.
	Bar  bool
	Doc  string
	Tree bool // the text is indented to show the tree of rows
	// Part returns the part of a whole, from 0 to 1, that the number of a row stands for. The screen shows
	// large parts by heat (see HeatOf). It is nil in columns without heat.
	Part func(row int) float64
	// Of returns the cell of a row. It must be safe for several goroutines at once.
	Of func(row int) Cell
}

// Unseen is the Width of a column that no screen shows. It exists for filters and for programs that read the
// table.
const Unseen = 1 << 20

// Kept is the Width of a column that screens of every width show, and that is dropped after all others if the
// columns do not fit.
const Kept = 0

// Basis says where the numbers of a column come from.
type Basis string

// These are the possible bases of numbers.
const (
	Words    Basis = ""         // the column has no numbers
	Exact    Basis = "exact"    // counted, or known from the graph and the plans
	Measured Basis = "measured" // measured by a clock
	Modelled Basis = "modelled" // computed under an assumption; shown with ~
)

// Row is the place of a row in the tree of rows.
type Row = tree.Row

// Cell is the content of a table at one row and one column. If it has no number, Has is false: the number was
// not measured or makes no sense here.
type Cell struct {
	Text   string  // displayed text
	Short  string  // what a narrow column shows instead of Text; "" if Text may be cut
	Name   string  // text that filters compare instead of Text; "" if they compare Text
	Number float64 // number in the column's unit
	Has    bool
	Mark   string // mark before a number that is not reliable; see Marks
	// Then is the key by which two cells without a reliable number are sorted: cells with the mark Zero,
	// and cells without a number. The cell with the largest key comes first, in ascending and in descending
	// order.
	Then float64
}

// found returns the text that filters compare.
func (c Cell) found() string { return cmp.Or(c.Name, c.Text) }

// Unknown is the mark of a number whose error is not known. Sorting and filtering ignore such a number.
const Unknown = "?"

// Zero is the mark of a number that is not significantly different from 0. Such a number is sorted as 0,
// after a 0 without a mark.
const Zero = "="

// Unmeasured is the text in place of a time that was not measured.
const Unmeasured = "–"

// Text returns a cell of text.
func Text[S ~string](s S) Cell { return Cell{Text: string(s)} }

// Count returns a cell with a whole number.
func Count[N int | int64](n N) Cell {
	return Cell{Text: fmt.Sprint(n), Number: float64(n), Has: true}
}

// Number returns a cell with a number and this number of decimals.
func Number(v float64, decimals int) Cell {
	return Cell{Text: fmt.Sprintf("%.*f", decimals, v), Number: v, Has: true}
}

// Microseconds returns a cell with a time in µs in the format of Micros.
func Microseconds(us float64, decimals int) Cell {
	return Cell{Text: Micros(us, decimals), Number: us, Has: true}
}

// Missing returns a cell for a number that was not measured although it could have been.
func Missing() Cell { return Cell{Text: Unmeasured} }

// markSuffix is the end of the name of a column that Marks returns.
const markSuffix = "_mark"

// Marks returns a column with the marks that the screen shows before the numbers of the given column. It is
// for filters and programs.
func Marks(of Column) Column {
	return Column{
		Name: of.Name + markSuffix, Title: of.Title + " mark", Width: Unseen,
		Doc: "mark before the number in column " + of.Name + " if the number is unreliable; else empty",
		Of:  func(row int) Cell { return Text(of.Of(row).Mark) },
	}
}

// New returns a table. The rows must be in pre-order. New sets Children in each row that is the parent of
// another row.
func New(name string, columns []Column, rows []Row) *Table {
	for i := range rows {
		if p := rows[i].Parent; p >= 0 {
			rows[p].Children = true
		}
	}
	below := make([]int32, len(rows))
	for i := len(rows) - 1; i >= 0; i-- {
		if p := rows[i].Parent; p >= 0 {
			below[p] += below[i] + 1
		}
	}
	return &Table{Name: name, Columns: columns, Rows: rows, below: below, kept: new(sync.Map)}
}

// WithColumns returns a table with the same rows as t but other columns.
func (t *Table) WithColumns(columns []Column) *Table {
	return &Table{
		Name: t.Name, Title: t.Title, Columns: columns, Rows: t.Rows, Notes: t.Notes, From: t.From,
		Total: t.Total, Finder: t.Finder, empty: t.empty, below: t.below, kept: new(sync.Map),
	}
}

// Flat returns n rows that do not form a tree.
func Flat(n int, key func(row int) string) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = Row{Key: key(i), Parent: -1}
	}
	return rows
}

// Tree returns the rows of a table. The given function returns the place of an element in the tree.
func Tree[R any](list []R, of func(*R) Row) []Row {
	rows := make([]Row, len(list))
	for i := range list {
		rows[i] = of(&list[i])
	}
	return rows
}

// Apart returns a table in which rows are listed without their headings, so that all of them can be sorted
// together. In this table, the name of a row is Row.Apart. If that is "", the row stays below its heading. A
// heading is left out if no rows stay below it. The indices of rows do not change. If every row stays below
// its heading, Apart returns t.
func (t *Table) Apart() *Table {
	if t.empty != nil || !slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Apart != "" }) {
		return t
	}
	apart := t.WithColumns(slices.Clone(t.Columns))
	apart.Rows = slices.Clone(t.Rows)
	apart.empty = make([]bool, len(t.Rows))
	for i := range t.Rows {
		apart.empty[i] = t.Rows[i].Group && t.Rows[i].Children
	}
	for i := len(t.Rows) - 1; i >= 0; i-- { // backward, so children come before their parents
		if r := &t.Rows[i]; r.Parent >= 0 && r.Apart == "" && !apart.empty[i] {
			apart.empty[r.Parent] = false
		}
	}
	for i := range apart.Rows {
		r := &apart.Rows[i]
		if r.Apart != "" {
			r.Parent = -1
		}
		r.Joint = false
		if r.Depth = 0; r.Parent >= 0 {
			r.Depth = apart.Rows[r.Parent].Depth + 1
		}
	}
	for i := range apart.Columns {
		if c := &apart.Columns[i]; c.Tree {
			of := c.Of
			c.Of = func(row int) Cell {
				if name := t.Rows[row].Apart; name != "" {
					return Text(name)
				}
				return of(row)
			}
		}
	}
	return apart
}

// Cell returns the cell that is shown at a row and a column. Its text has one line and no control characters,
// because text from a file may have several lines and such characters.
func (t *Table) Cell(row, col int) Cell {
	if t.below[row] < manyRows {
		return t.make(row, col)
	}
	c, there := t.kept.Load(place{row, col})
	if !there {
		c = t.make(row, col)
		t.kept.Store(place{row, col}, c)
	}
	return c.(Cell)
}

func (t *Table) make(row, col int) Cell { return shown(t.Columns[col].Of(row)) }

// TotalCell returns the cell of the line Total. It is empty if there is no such line, or if the column has no
// sum.
func (t *Table) TotalCell(col int) Cell {
	if t.Total == nil {
		return Cell{}
	}
	return shown(t.Total(t.Columns[col].Name))
}

// shown returns a cell as it is displayed: in one line, without control characters.
func shown(c Cell) Cell {
	c.Text, c.Short = printable.Clean(c.Text), printable.Clean(c.Short)
	return c
}

// Column returns the index of the column with this name or title, or -1 if there is none.
func (t *Table) Column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool {
		return strings.EqualFold(c.Name, name) || strings.EqualFold(c.Title, name)
	})
}

// errNoColumn is wrapped by the error for a column that a table does not have.
var errNoColumn = errors.New("no such column")

// noColumn returns the error for a name that is not a column of the table. The error lists the columns of
// the table, and then those of `more` whose names are not yet in the list.
func (t *Table) noColumn(name string, more ...Column) error {
	var names []string
	for _, c := range slices.Concat(t.Columns, more) {
		// Leave out columns of marks, because each of them belongs to another column.
		if !strings.HasSuffix(c.Name, markSuffix) && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return columnError(fmt.Sprintf("table %s has no column %q; its columns are %s", t.Name,
		printable.Short(name, 40), strings.Join(names, ", ")))
}

// columnError is an error message that wraps errNoColumn.
type columnError string

func (e columnError) Error() string { return string(e) }

func (e columnError) Unwrap() error { return errNoColumn }
