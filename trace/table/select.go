package table

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// Selection says which rows of a table to show, in which order.
type Selection struct {
	// Open overrides, by key, whether a row is unfolded. All unfolds every row.
	Open map[string]bool
	All  bool
	// Filter keeps the rows that match, what they stand in, and what stands in them. It unfolds the way to
	// what it finds in a closed row that does not match itself.
	Filter Filter
	// Sort is the name of a column by which rows are ordered among those that stand in the same row; "" is
	// the table's own order. Rows that have no number come last either way. (Table.Apart is for an order of
	// all rows, whatever heading they are under.)
	Sort    string
	Reverse bool
}

// open reports whether a row is unfolded.
func (s *Selection) open(r *Row) bool {
	if s.All {
		return true
	}
	if open, ok := s.Open[r.Key]; ok {
		return open
	}
	return r.Open
}

// Rows between two looks at a context.
const stride = 1024

// Select lists the indices of the rows to show. An unknown sort column is an error that names the columns; a
// cancelled context is its error.
func (t *Table) Select(ctx context.Context, s Selection) ([]int, error) {
	sortBy := -1
	if s.Sort != "" {
		if sortBy = t.Column(s.Sort); sortBy < 0 {
			return nil, t.noColumn(s.Sort)
		}
	}
	children := make([][]int, len(t.Rows)+1) // of row i at i+1
	for i := range t.Rows {
		if !t.Rows[i].Joint && (t.empty == nil || !t.empty[i]) {
			parent := t.Rows[i].Parent + 1
			children[parent] = append(children[parent], i)
		}
	}
	if sortBy >= 0 {
		if err := t.sort(ctx, children, sortBy, s.Reverse); err != nil {
			return nil, err
		}
	} else if s.Reverse {
		for _, siblings := range children {
			slices.Reverse(siblings)
		}
	}
	m, err := t.match(ctx, &s)
	if err != nil {
		return nil, err
	}
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

func (t *Table) match(ctx context.Context, s *Selection) (matches, error) {
	m := matches{make([]bool, len(t.Rows)), make([]bool, len(t.Rows))}
	for i := range t.Rows {
		if i%stride == 0 && ctx.Err() != nil {
			return m, ctx.Err()
		}
		hidden := false // in a closed row that an exclusion hides: it hides all that the row stands for
		if p := t.Rows[i].Parent; p >= 0 && !t.Rows[p].Group && !s.open(&t.Rows[p]) {
			hidden = s.Filter.excludes(t, p)
		}
		m.self[i] = len(s.Filter.terms) == 0 || !hidden && s.Filter.Match(t, i)
	}
	if len(s.Filter.terms) == 0 {
		return m, nil // nothing is hidden, so nothing needs to be unfolded
	}
	for i := len(t.Rows) - 1; i >= 0; i-- {
		if p := t.Rows[i].Parent; p >= 0 && (m.self[i] || m.below[i]) {
			m.below[p] = true
		}
	}
	return m, nil
}

// sort orders the rows of each list by a column, whose cells are made once.
func (t *Table) sort(ctx context.Context, lists [][]int, col int, reverse bool) error {
	cells := make([]Cell, len(t.Rows))
	for row := range cells {
		if row%stride == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		cells[row] = t.Cell(row, col)
	}
	numbers := t.Columns[col].Unit != ""
	for _, rows := range lists {
		slices.SortStableFunc(rows, func(a, b int) int {
			x, y := &cells[a], &cells[b]
			if numbers && !(x.ranked() && y.ranked()) {
				switch {
				case x.ranked():
					return -1
				case y.ranked():
					return 1
				}
				return 0
			}
			c := cmp.Compare(x.order(), y.order())
			if !numbers {
				c = strings.Compare(x.Text, y.Text)
			}
			if reverse {
				c = -c
			}
			if c == 0 && numbers && x.Mark != y.Mark { // one of both is Zero
				c = strings.Compare(x.Mark, y.Mark)
			}
			return c
		})
	}
	return ctx.Err()
}

// Sortable reports whether there is a column of a name with something in it to sort by.
func (t *Table) Sortable(name string) bool {
	c := t.Column(name)
	if name == "" || c < 0 {
		return false
	}
	for row := range t.Rows {
		if cell := t.Cell(row, c); cell.ranked() || t.Columns[c].Unit == "" && cell.Text != "" {
			return true
		}
	}
	return false
}

// LargestFirst reports whether who sorts by a column wants to see its largest first: where it has numbers.
func (t *Table) LargestFirst(name string) bool {
	c := t.Column(name)
	return name != "" && c >= 0 && t.Columns[c].Right
}

// order is by what rows are ordered that have a number.
func (c *Cell) order() float64 {
	if c.Mark == Zero {
		return 0
	}
	return c.Number
}

// ranked reports that a cell has a number that can be compared.
func (c *Cell) ranked() bool { return c.Has && c.Number == c.Number && c.Mark != Unknown }

// Uniform lists the columns that say the same in all of the rows, and something: they can stand in the title.
// The tree's column never does.
func (t *Table) Uniform(ctx context.Context, rows []int) ([]int, error) {
	var cols []int
	for c := range t.Columns {
		if t.Columns[c].Tree || t.Columns[c].Width == Unseen || len(rows) < 2 {
			continue
		}
		first := t.Cell(rows[0], c).Text
		same := first != ""
		for i := 1; same && i < len(rows); i++ {
			if i%stride == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			same = t.Cell(rows[i], c).Text == first
		}
		if same {
			cols = append(cols, c)
		}
	}
	return cols, nil
}
