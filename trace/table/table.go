// Package table is tables of typed columns: which rows of a tree are shown (folded, filtered, sorted), and
// their printing as text, CSV, JSON and Markdown. It also writes the quantities that tables and sentences
// share: sizes, shapes, grids. It knows nothing of what its tables are about.
package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Table is what a view shows and a command prints: columns, rows that may be a tree, and what is said above
// and below. Cells are made when they are asked for, so a long table costs what is looked at.
type Table struct {
	Name    string   // "dispatches"
	Title   []string // lines above
	Columns []Column
	Rows    []Row    // a tree in pre-order
	Notes   []string // lines below
}

// Column describes a column.
type Column struct {
	Name  string // of CSV, JSON and filters: "sum_us"
	Title string // on the screen: "Σµs"
	Unit  string // of Cell.Number: "us", "GB/s", "%", ""
	Right bool   // aligned right
	// Width is the width of the screen from which on the column is shown: 80, 140 or 200.
	Width int
	Doc   string
	Tree  bool // carries the indentation of the rows
	Of    func(row int) Cell
}

// Row is a place in the tree.
type Row struct {
	// Key names the row by what it stands for: the same in every step, so that a selection and what is
	// unfolded survive a change of step.
	Key    string
	Parent int // -1: none
	Depth  int
	// Children says that the row can be unfolded, Open that it is at first.
	Children, Open bool
	// Group is a heading: only the text of a filter looks at it, not its numbers.
	Group bool
}

// Cell is one field of a table. A number that was not measured, or does not apply, is absent: Has is false.
type Cell struct {
	Text   string  // as shown
	Number float64 // in the column's unit
	Has    bool
}

// Unmeasured is shown where a time could stand and none was measured.
const Unmeasured = "–"

// Text is a cell of words.
func Text(s string) Cell { return Cell{Text: s} }

// Count is a cell of a whole number.
func Count[N int | int64](n N) Cell {
	return Cell{Text: fmt.Sprint(n), Number: float64(n), Has: true}
}

// Number is a cell of a number with so many decimals.
func Number(v float64, decimals int) Cell {
	return Cell{Text: fmt.Sprintf("%.*f", decimals, v), Number: v, Has: true}
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
	return &Table{Name: name, Columns: columns, Rows: rows}
}

// Cell is the field at a row and a column.
func (t *Table) Cell(row, col int) Cell { return t.Columns[col].Of(row) }

// Column is the index of a column by its name or title, or -1.
func (t *Table) Column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool {
		return strings.EqualFold(c.Name, name) || strings.EqualFold(c.Title, name)
	})
}

// Selection says which rows of a table to show, in which order.
type Selection struct {
	// Open overrides, by key, whether a row is unfolded. All unfolds every row.
	Open map[string]bool
	All  bool
	// Filter keeps the rows that match, what they stand in, and what stands in them. What stands in a row
	// that is no heading, as the layers of a folded dispatch, is looked at only where that row is unfolded.
	Filter Filter
	// Sort is the name of a column by which rows are ordered among those that stand in the same row; "" is
	// the table's own order. Rows that have no number come last either way.
	Sort    string
	Reverse bool
}

// open says whether a row is unfolded.
func (s *Selection) open(r *Row) bool {
	if s.All {
		return true
	}
	if open, ok := s.Open[r.Key]; ok {
		return open
	}
	return r.Open
}

// Select lists the indices of the rows to show. An unknown sort column is an error that names the columns.
func (t *Table) Select(s Selection) ([]int, error) {
	sortBy := -1
	if s.Sort != "" {
		if sortBy = t.Column(s.Sort); sortBy < 0 {
			return nil, t.noColumn(s.Sort)
		}
	}
	children := make([][]int, len(t.Rows)+1) // of row i at i+1
	for i, r := range t.Rows {
		children[r.Parent+1] = append(children[r.Parent+1], i)
	}
	if sortBy >= 0 {
		for _, siblings := range children {
			t.sort(siblings, sortBy, s.Reverse)
		}
	} else if s.Reverse {
		for _, siblings := range children {
			slices.Reverse(siblings)
		}
	}
	m := t.match(&s)
	var out []int
	var walk func(parent int, inside bool)
	walk = func(parent int, inside bool) {
		open := parent < 0 || s.open(&t.Rows[parent])
		for _, i := range children[parent+1] {
			hit := m.self[i] || m.below[i]
			// A filter unfolds the way to what it found, but not what stands in a row that matches itself.
			if open && (hit || inside) || hit && parent >= 0 && !m.self[parent] {
				out = append(out, i)
				walk(i, inside || m.self[i])
			}
		}
	}
	walk(-1, false)
	return out, nil
}

// matches are by row: whether it matches, and whether one that stands in it does.
type matches struct{ self, below []bool }

func (t *Table) match(s *Selection) matches {
	m := matches{make([]bool, len(t.Rows)), make([]bool, len(t.Rows))}
	for i := range t.Rows {
		folded := false
		if p := t.Rows[i].Parent; p >= 0 {
			folded = !t.Rows[p].Group && !s.open(&t.Rows[p])
		}
		m.self[i] = len(s.Filter.terms) == 0 || !folded && s.Filter.match(t, i)
	}
	if len(s.Filter.terms) == 0 {
		return m // nothing is hidden, so nothing needs to be unfolded
	}
	for i := len(t.Rows) - 1; i >= 0; i-- {
		if p := t.Rows[i].Parent; p >= 0 && (m.self[i] || m.below[i]) {
			m.below[p] = true
		}
	}
	return m
}

func (t *Table) sort(rows []int, col int, reverse bool) {
	slices.SortStableFunc(rows, func(a, b int) int {
		x, y := t.Cell(a, col), t.Cell(b, col)
		if x.Has != y.Has && t.Columns[col].Unit != "" {
			if x.Has {
				return -1
			}
			return 1
		}
		c := cmp.Compare(x.Number, y.Number)
		if !x.Has || !y.Has {
			c = strings.Compare(x.Text, y.Text)
		}
		if reverse {
			c = -c
		}
		return c
	})
}

// Uniform lists the columns that say the same in all of the rows, and something: they can stand in the title.
// The tree's column never does.
func (t *Table) Uniform(rows []int) []int {
	var cols []int
	for c := range t.Columns {
		if t.Columns[c].Tree || len(rows) < 2 {
			continue
		}
		first := t.Cell(rows[0], c).Text
		same := first != ""
		for _, r := range rows[1:] {
			same = same && t.Cell(r, c).Text == first
		}
		if same {
			cols = append(cols, c)
		}
	}
	return cols
}

func (t *Table) noColumn(name string) error {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return fmt.Errorf("table %s has no column %q; it has %s", t.Name, name, strings.Join(names, ", "))
}
