// Package table implements tables of typed columns. It selects the rows of a tree by folding, filtering and
// sorting. It prints tables as text, CSV, JSON and Markdown. It also formats sizes, shapes, grids and times
// for tables and sentences. It is independent of the contents of the tables.
//
// A table consists of a list of columns and a list of rows. A column has a name, a unit, a basis of its
// numbers, and a function that computes the cell of a row. The function is called only for cells that are
// needed.
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
	"fmt"
	"slices"
	"strings"
	"sync"

	"gpuscope/internal/printable"
	"gpuscope/trace/tree"
)

// Table is shown by a screen and printed by a command. It has columns, rows that may form a tree, a title
// above and notes below. Cells are computed on demand, so a long table costs only the cells that are looked
// at.
type Table struct {
	Name    string // "dispatches"
	Title   []Line // lines above the columns
	Columns []Column
	Rows    []Row    // rows in pre-order if they form a tree
	Flat    bool     // the table is never a tree, so its CSV has no depth column
	Notes   []string // lines below the rows
	// From is the data that the rows were made from. Code for a specific table uses it to show more about a
	// row than the table has.
	From any

	empty []bool    // by row: whether it is a heading that Apart left without rows; nil without Apart
	below []int32   // by row: number of rows inside the row
	kept  *sync.Map // cached cells of rows that have many rows inside; the key is a place
}

// place is the position of a cell.
type place struct{ row, col int }

// manyRows is the number of inner rows from which on the cells of a row are cached. Such a cell is expensive:
// it costs as much as the cells of all inner rows.
const manyRows = 64

// Column describes a column and computes its cells.
type Column struct {
	Name  string // name in CSV, JSON and filters: "sum_us"
	Title string // title on the screen: "Σµs"
	Unit  string // unit of Cell.Number: "us", "GB/s", "%"; "" for text
	Is    Basis  // basis of the numbers
	Right bool   // right-aligned
	// Width is the minimum width of a screen that shows the column: 80, 110, 140 or 200 cells, or Unseen.
	Width int
	// Bar reports whether the screen draws the numbers as bars. A full bar represents the largest number of
	// all rows except headings.
	Bar  bool
	Doc  string
	Tree bool // the column shows the tree by indentation
	// Of returns the cell of a row. Several goroutines may call it.
	Of func(row int) Cell
}

// Unseen is the Width of a column that is not shown on any screen. Filters and programs can read the
// column.
const Unseen = 1 << 20

// Basis is the origin of the numbers in a column.
type Basis string

// These are the bases of numbers.
const (
	Words    Basis = ""         // the column has no numbers
	Exact    Basis = "exact"    // counted, or known from the graph and its plans
	Measured Basis = "measured" // measured by a clock
	Modelled Basis = "modelled" // computed from exact or measured numbers under an assumption; marked ~
)

// Row is a position in the tree of rows.
type Row = tree.Row

// Cell is one field of a table. Has is false if the number was not measured or does not apply.
type Cell struct {
	Text   string  // displayed text
	Short  string  // essential part of Text for narrow columns; "" if Text may be cut
	Number float64 // number in the column's unit
	Has    bool
	Mark   string // prefix of Text that marks an insignificant number; see Marks
}

// Unknown is the mark of a number whose error is not known. Rows are neither sorted nor filtered by such a
// number.
const Unknown = "?"

// Zero is the mark of a number that does not differ significantly from 0. It is sorted as 0, after an
// unmarked 0.
const Zero = "="

// Unmeasured is displayed in place of a time that was not measured.
const Unmeasured = "–"

// Text returns a cell of text.
func Text[S ~string](s S) Cell { return Cell{Text: string(s)} }

// Count returns a cell of a whole number.
func Count[N int | int64](n N) Cell {
	return Cell{Text: fmt.Sprint(n), Number: float64(n), Has: true}
}

// Number returns a cell of a number with the given number of decimals.
func Number(v float64, decimals int) Cell {
	return Cell{Text: fmt.Sprintf("%.*f", decimals, v), Number: v, Has: true}
}

// Microseconds returns a cell of a time in µs, formatted by Micros.
func Microseconds(us float64, decimals int) Cell {
	return Cell{Text: Micros(us, decimals), Number: us, Has: true}
}

// Missing returns a cell for a figure that could have been measured but was not.
func Missing() Cell { return Cell{Text: Unmeasured} }

// markSuffix ends the name of every column that Marks returns.
const markSuffix = "_mark"

// Marks returns a column with the marks that the screen shows before the numbers of another column. Filters
// and programs read this column.
func Marks(of Column) Column {
	return Column{
		Name: of.Name + markSuffix, Title: of.Title + " mark", Width: Unseen,
		Doc: "mark before the number in " + of.Name + " if the number is not reliable; otherwise empty",
		Of:  func(row int) Cell { return Text(of.Of(row).Mark) },
	}
}

// New returns a table of rows in pre-order. It sets the Children field of each row that is a parent.
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

// WithColumns returns a table with different columns over the same rows.
func (t *Table) WithColumns(columns []Column) *Table {
	return &Table{
		Name: t.Name, Title: t.Title, Columns: columns, Rows: t.Rows, Notes: t.Notes, From: t.From,
		empty: t.empty, below: t.below, kept: new(sync.Map),
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

// Tree returns the rows of a table whose typed rows know their position in the tree.
func Tree[R any](list []R, of func(*R) Row) []Row {
	rows := make([]Row, len(list))
	for i := range list {
		rows[i] = of(&list[i])
	}
	return rows
}

// Apart returns a table in which rows are listed outside of their headings, so that one order can apply to
// all rows. A row outside of its heading is shown under the name Row.Apart. A row whose Apart is "" stays
// under its heading. The row indices stay the same. Headings without remaining rows are not shown. If all
// rows stay under their headings, Apart returns the table itself.
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
	for i := len(t.Rows) - 1; i >= 0; i-- { // rows come after their parents
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

// Cell returns the displayed field at a row and a column. It puts the text on one line and removes control
// characters, because the text may come from a file.
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

func (t *Table) make(row, col int) Cell {
	c := t.Columns[col].Of(row)
	c.Text, c.Short = printable.Clean(c.Text), printable.Clean(c.Short)
	return c
}

// Column returns the index of a column by its name or title, or -1.
func (t *Table) Column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool {
		return strings.EqualFold(c.Name, name) || strings.EqualFold(c.Title, name)
	})
}

func (t *Table) noColumn(name string) error {
	var names []string
	for _, c := range t.Columns {
		if !strings.HasSuffix(c.Name, markSuffix) { // omit mark columns; they belong to their number columns
			names = append(names, c.Name)
		}
	}
	return fmt.Errorf("table %s has no column %q; its columns are %s", t.Name, printable.Short(name, 40),
		strings.Join(names, ", "))
}
