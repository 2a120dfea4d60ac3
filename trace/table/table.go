// Package table is tables of typed columns: which rows of a tree are shown (folded, filtered, sorted), and
// their printing as text, CSV, JSON and Markdown. It also writes what tables and sentences share: sizes,
// shapes, grids, times. It knows nothing of what its tables are about.
//
// A table is a list of columns over a list of rows. A column is a literal with its name, its unit, where its
// numbers come from, and a function from the row's index to a cell, which is called for what is looked at.
//
//	at := table.By(runners)
//	t := table.New("runners", []table.Column{
//		{Name: "name", Title: "name", Of: at(func(r *runner) table.Cell { return table.Text(r.name) })},
//		{Name: "s", Title: "s", Unit: "s", Is: table.Measured, Right: true, Of: at(...)},
//	}, rows)
//	rows, err := t.Select(ctx, table.Selection{Sort: "s"})
//	...
//	err = t.Print(ctx, os.Stdout, "text", rows, 80)
//
// Tables do not change once they are made, and may be read from several goroutines. What takes as long as the
// table is takes a context and ends with it.
package table

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"gpuscope/internal/printable"
	"gpuscope/trace/tree"
)

// Table is what a view shows and a command prints: columns, rows that may be a tree, and what is said above
// and below. Cells are made when they are asked for, so a long table costs what is looked at.
type Table struct {
	Name    string // "dispatches"
	Title   []Line // lines above
	Columns []Column
	Rows    []Row    // a tree in pre-order
	Flat    bool     // never a tree: as CSV a row has no depth
	Notes   []string // lines below
	// From is what the rows were made from, for those who know the table and say more of a row than it does.
	From any

	empty []bool    // headings that their rows have left; nil before
	below []int32   // by row, how many rows stand in it
	kept  *sync.Map // cells of rows that stand for many, by place: each costs what they all do
}

// place is where a cell is.
type place struct{ row, col int }

// manyRows is how many rows stand in one whose cells are kept once they were made.
const manyRows = 64

// Column describes a column and gives its cells.
type Column struct {
	Name  string // of CSV, JSON and filters: "sum_us"
	Title string // on the screen: "Σµs"
	Unit  string // of Cell.Number: "us", "GB/s", "%"; "" where cells are words
	Is    Basis  // of the numbers
	Right bool   // aligned right
	// Width is the width of the screen from which on the column is shown: 80, 110, 140 or 200, or Unseen.
	Width int
	// Bar reports that the screen draws the numbers as bars, the largest of the rows that are no headings
	// full.
	Bar  bool
	Doc  string
	Tree bool // carries the indentation of the rows
	// Of is the cell of a row. It may be called from several goroutines.
	Of func(row int) Cell
}

// Unseen is the Width of a column that no screen shows: filters and programs read it.
const Unseen = 1 << 20

// Basis is where the numbers of a column come from.
type Basis string

// The baselines.
const (
	Words    Basis = ""         // there are none
	Exact    Basis = "exact"    // counted, or known from the graph and its plans
	Measured Basis = "measured" // by a clock
	Modelled Basis = "modelled" // computed from what is exact or measured, under an assumption; marked ~
)

// Row is a place in the tree of rows.
type Row = tree.Row

// Cell is one field of a table. A number that was not measured, or does not apply, is absent: Has is false.
type Cell struct {
	Text   string  // as shown
	Short  string  // what of Text must not be lost, where there is no room for all of it; "" where it is cut
	Number float64 // in the column's unit
	Has    bool
	Mark   string // what Text begins with where the number is not significant; Marks has it for programs
}

// Unknown is the mark of a number of which it is not known what it may be off by: rows are neither ordered
// nor filtered by it.
const Unknown = "?"

// Zero is the mark of a number that cannot be told from 0: it is ordered as 0, after a 0 without a mark.
const Zero = "="

// Unmeasured is shown where a time could stand and none was measured.
const Unmeasured = "–"

// Text is a cell of words.
func Text[S ~string](s S) Cell { return Cell{Text: string(s)} }

// Count is a cell of a whole number.
func Count[N int | int64](n N) Cell {
	return Cell{Text: fmt.Sprint(n), Number: float64(n), Has: true}
}

// Number is a cell of a number with so many decimals.
func Number(v float64, decimals int) Cell {
	return Cell{Text: fmt.Sprintf("%.*f", decimals, v), Number: v, Has: true}
}

// Microseconds is a cell of a time in µs, as Micros writes it.
func Microseconds(us float64, decimals int) Cell {
	return Cell{Text: Micros(us, decimals), Number: us, Has: true}
}

// Missing is a cell where something could have been measured and was not.
func Missing() Cell { return Cell{Text: Unmeasured} }

// markSuffix ends the names of the columns that Marks makes.
const markSuffix = "_mark"

// Marks is a column of the marks that stand before the numbers of another on the screen, for filters and
// programs.
func Marks(of Column) Column {
	return Column{
		Name: of.Name + markSuffix, Title: of.Title + " mark", Width: Unseen,
		Doc: "mark shown before " + of.Name + " where it is not a reliable number; empty otherwise",
		Of:  func(row int) Cell { return Text(of.Of(row).Mark) },
	}
}

// By turns a function of a typed row into one of the row's index, for Column.Of.
func By[R any](rows []R) func(func(*R) Cell) func(int) Cell {
	return func(of func(*R) Cell) func(int) Cell {
		return func(row int) Cell { return of(&rows[row]) }
	}
}

// New is a table of rows, which stand in pre-order. Their Children are found from their parents.
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

// WithColumns is the table with other columns over the same rows.
func (t *Table) WithColumns(columns []Column) *Table {
	return &Table{
		Name: t.Name, Title: t.Title, Columns: columns, Rows: t.Rows, Notes: t.Notes, From: t.From,
		empty: t.empty, below: t.below, kept: new(sync.Map),
	}
}

// Flat are n rows without a tree.
func Flat(n int, key func(row int) string) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = Row{Key: key(i), Parent: -1}
	}
	return rows
}

// Tree are the rows of a table whose typed rows say themselves where they stand.
func Tree[R any](list []R, of func(*R) Row) []Row {
	rows := make([]Row, len(list))
	for i := range list {
		rows[i] = of(&list[i])
	}
	return rows
}

// Apart is the table with its rows out of their headings, under the names that they have apart, so that one
// order goes through all of them. Rows have the indices that they had; headings that are empty then are not
// shown. A table whose rows never leave their headings stays as it is.
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
	for i := len(t.Rows) - 1; i >= 0; i-- { // rows come after what they stand in
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

// Cell is the field at a row and a column as it is shown: what a file put into its text is on one line and
// holds nothing that a terminal obeys.
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

// Column is the index of a column by its name or title, or -1.
func (t *Table) Column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool {
		return strings.EqualFold(c.Name, name) || strings.EqualFold(c.Title, name)
	})
}

func (t *Table) noColumn(name string) error {
	var names []string
	for _, c := range t.Columns {
		if !strings.HasSuffix(c.Name, markSuffix) { // they go with the columns that they are of
			names = append(names, c.Name)
		}
	}
	return fmt.Errorf("table %s has no column %q; it has %s", t.Name, printable.Short(name, 40),
		strings.Join(names, ", "))
}
