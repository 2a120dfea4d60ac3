package table

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// Selection determines which rows of a table are shown, and their order.
type Selection struct {
	// Open maps the keys of rows to whether they are unfolded; other rows keep their default. All unfolds
	// every row.
	Open map[string]bool
	All  bool
	// Filter keeps the matching rows, the rows that enclose them, and the rows inside them. It unfolds a
	// closed row that contains a match but does not match itself.
	Filter Filter
	// Sort is the name of the column that orders sibling rows; "" keeps the table's own order. Rows without
	// a number always come last. (Use Table.Apart to order all rows regardless of their headings.)
	Sort    string
	Reverse bool
}

// open reports whether the row is unfolded.
func (s *Selection) open(r *Row) bool {
	if s.All {
		return true
	}
	if open, ok := s.Open[r.Key]; ok {
		return open
	}
	return r.Open
}

// stride is the number of rows between two checks of a context.
const stride = 1024

// Select returns the indices of the rows to show. For an unknown sort column it returns an error that lists
// the columns. For a cancelled context it returns the context's error.
func (t *Table) Select(ctx context.Context, s Selection) ([]int, error) {
	sortBy := -1
	if s.Sort != "" {
		if sortBy = t.Column(s.Sort); sortBy < 0 {
			return nil, t.noColumn(s.Sort)
		}
	}
	children := make([][]int, len(t.Rows)+1) // children of row i are at index i+1
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
			// A filter unfolds the rows that enclose a match, but it does not unfold the match itself.
			if open && (hit || inside) || hit && parent >= 0 && !m.self[parent] {
				out = append(out, i)
				walk(i, inside || m.self[i])
			}
		}
	}
	walk(-1, false)
	return out, nil
}

// matches holds, for each row, whether the row itself matches and whether a row inside it does.
type matches struct{ self, below []bool }

func (t *Table) match(ctx context.Context, s *Selection) (matches, error) {
	m := matches{make([]bool, len(t.Rows)), make([]bool, len(t.Rows))}
	for i := range t.Rows {
		if i%stride == 0 && ctx.Err() != nil {
			return m, ctx.Err()
		}
		hidden := false // the closed parent row is excluded, which also hides its rows
		if p := t.Rows[i].Parent; p >= 0 && !t.Rows[p].Group && !s.open(&t.Rows[p]) {
			hidden = s.Filter.excludes(t, p)
		}
		m.self[i] = len(s.Filter.terms) == 0 || !hidden && s.Filter.Match(t, i)
	}
	if len(s.Filter.terms) == 0 {
		return m, nil // no row is hidden, so no row needs to be unfolded
	}
	for i := len(t.Rows) - 1; i >= 0; i-- {
		if p := t.Rows[i].Parent; p >= 0 && (m.self[i] || m.below[i]) {
			m.below[p] = true
		}
	}
	return m, nil
}

// sort orders the rows of each list by a column. It computes each cell of the column once.
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
			if c == 0 && numbers && x.Mark != y.Mark { // one of the marks is Zero
				c = strings.Compare(x.Mark, y.Mark)
			}
			return c
		})
	}
	return ctx.Err()
}

// Sortable reports whether the named column exists and has a cell to sort by.
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

// LargestFirst reports whether sorting by a column should start with the largest value. This holds for
// columns of numbers.
func (t *Table) LargestFirst(name string) bool {
	c := t.Column(name)
	return name != "" && c >= 0 && t.Columns[c].Right
}

// order returns the sort key of a cell with a number.
func (c *Cell) order() float64 {
	if c.Mark == Zero {
		return 0
	}
	return c.Number
}

// ranked reports whether the cell has a number that can be compared.
func (c *Cell) ranked() bool { return c.Has && c.Number == c.Number && c.Mark != Unknown }

// Uniform returns the columns whose text is equal and not empty in all of the rows. Such a column can move
// to the title. The tree column is never uniform.
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
