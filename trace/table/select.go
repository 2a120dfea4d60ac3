package table

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// Selection says which rows of a table are shown and in which order.
type Selection struct {
	// Open holds, by key, whether the user has unfolded or folded a row. All other rows keep their default.
	// If All is set, every row is unfolded.
	Open map[string]bool
	All  bool
	// Filter selects rows. The rows above and below a matching row in the tree are shown too. A folded row is
	// unfolded if a row inside it matches but the row itself does not.
	Filter Filter
	// Sort is the name of the column by which rows with the same parent are sorted. If Sort is "", rows keep
	// the order of the table. Rows without a number come last in any case. To sort all rows together, see
	// Table.Apart.
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

// Select returns the indices of the rows to show, in order. If the sort column is not in the table, the error
// lists the columns. If ctx is cancelled, the error is that of ctx.
func (t *Table) Select(ctx context.Context, s Selection) ([]int, error) {
	sortBy := -1
	if s.Sort != "" {
		if sortBy = t.Column(s.Sort); sortBy < 0 {
			return nil, t.noColumn(s.Sort)
		}
	}
	children := make([][]int, len(t.Rows)+1) // children of row i are in element i+1
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
			// The filter unfolds a row if a row inside it matches, but not if only the row itself matches.
			if open && (hit || inside) || hit && parent >= 0 && !m.self[parent] {
				out = append(out, i)
				walk(i, inside || m.self[i])
			}
		}
	}
	walk(-1, false)
	return out, nil
}

// matches says for each row whether it matches (self), and whether a row inside it does (below).
type matches struct{ self, below []bool }

func (t *Table) match(ctx context.Context, s *Selection) (matches, error) {
	m := matches{make([]bool, len(t.Rows)), make([]bool, len(t.Rows))}
	for i := range t.Rows {
		if i%stride == 0 && ctx.Err() != nil {
			return m, ctx.Err()
		}
		hidden := false // if a folded parent row is excluded, so are the rows inside it
		if p := t.Rows[i].Parent; p >= 0 && !t.Rows[p].Group && !s.open(&t.Rows[p]) {
			hidden = s.Filter.excludes(t, p)
		}
		m.self[i] = len(s.Filter.terms) == 0 || !hidden && s.Filter.Match(t, i)
	}
	if len(s.Filter.terms) == 0 {
		return m, nil // without a filter, all rows match, and none need be unfolded
	}
	for i := len(t.Rows) - 1; i >= 0; i-- {
		if p := t.Rows[i].Parent; p >= 0 && (m.self[i] || m.below[i]) {
			m.below[p] = true
		}
	}
	return m, nil
}

// sort sorts each of the lists of rows by a column. It computes the cells of the column only once.
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
				return cmp.Compare(y.Then, x.Then)
			}
			c := cmp.Compare(x.order(), y.order())
			if !numbers {
				c = strings.Compare(x.Text, y.Text)
			}
			if reverse {
				c = -c
			}
			if c == 0 && numbers && x.Mark != y.Mark { // equal numbers, but one has the mark Zero
				c = strings.Compare(x.Mark, y.Mark)
			} else if c == 0 && x.Mark == Zero {
				c = cmp.Compare(y.Then, x.Then)
			}
			return c
		})
	}
	return ctx.Err()
}

// Sortable reports whether the table can be sorted by a column: it exists, and at least one row has something
// to compare.
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

// LargestFirst reports whether a table that is sorted by this column should have the largest value first.
// This is so for columns of numbers.
func (t *Table) LargestFirst(name string) bool {
	c := t.Column(name)
	return name != "" && c >= 0 && t.Columns[c].Right
}

// order returns the number by which a cell is sorted.
func (c *Cell) order() float64 {
	if c.Mark == Zero {
		return 0
	}
	return c.Number
}

// ranked reports whether the cell has a number by which rows can be sorted.
func (c *Cell) ranked() bool { return c.Has && c.Number == c.Number && c.Mark != Unknown }

// Uniform returns the columns that have the same text in all of these rows. A title can show this text
// instead. Columns without text and the tree column are not among them.
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
