package widget

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"gpuscope/trace/table"
)

// changes returns a pane with this many rows, a line of sums, and the column of differences.
func changes(t *testing.T, rows int) *TablePane {
	t.Helper()
	of := table.ColumnsAt(func(row int) *int { return &row })
	tab := table.New("changes", []table.Column{
		of.Text(80, "op", "op", "", func(row *int) string { return fmt.Sprintf("row %d", *row) }).AsTree(),
		of.Cell(table.Kept, table.Measured, "delta_us", "Δµs", "us", "", func(row *int) table.Cell {
			return table.Number(float64(-*row-1), 0)
		}),
	}, table.Flat(rows, func(row int) string { return fmt.Sprint(row) }))
	tab.Total = func(column string) table.Cell {
		if column == "op" {
			return table.Text("total")
		}
		return table.Number(-1234, 0)
	}
	p := &TablePane{}
	l, err := Listed(context.Background(), tab, Choice{}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	p.place(l)
	return p
}

// The sums are below the rows and stay visible while the rows scroll. The cursor cannot reach them.
func TestTotalStaysBelowTheRows(t *testing.T) {
	for _, rows := range []int{3, 100} {
		p := changes(t, rows)
		for range 2 {
			lines := p.Render(&Theme{}, 40, 10, true, "")
			if got := strings.Fields(lines[len(lines)-1]); strings.Join(got, " ") != "total -1234" {
				t.Errorf("%d rows: the last line is %q", rows, lines[len(lines)-1])
			}
			if want := min(rows+2, 10); len(lines) != want {
				t.Errorf("%d rows: %d lines, want %d", rows, len(lines), want)
			}
			if row := p.RowAt(len(lines) - 1); row != -1 {
				t.Errorf("%d rows: the line of sums is row %d", rows, row)
			}
			p.Move(Bottom)
			if p.Cursor != rows-1 {
				t.Errorf("%d rows: the cursor is at %d", rows, p.Cursor)
			}
		}
	}
}

// Columns that compare stay when others are dropped.
func TestKeptColumnsAreDroppedLast(t *testing.T) {
	p := changes(t, 3)
	lines := p.Render(&Theme{}, 14, 10, true, "")
	if !strings.Contains(lines[0], "Δµs") {
		t.Errorf("%q", lines)
	}
	for _, l := range lines {
		if ansi.StringWidth(l) > 14 {
			t.Errorf("%q is too wide", l)
		}
	}
}

// Faster and slower have different paints, and what is not significant has neither.
func TestDifferencesAreColoredBySign(t *testing.T) {
	for _, c := range []struct {
		column, text string
		want         Paint
	}{
		{"delta_us", "  -12.5", Good},
		{"delta_us", "+12.5", Bad},
		{"delta_us", "= -12.5", Dim},
		{"delta_us", "? +12.5", Dim},
		{"delta_cost_us", "-3.0", Good},
		{"delta", "48→96 r -12%", Good},
		{"delta", "+8.0%", Bad},
		{"delta", "-", Accent}, // only in the baseline
		{"delta", "p =", Accent},
		{"sum_us", "-3", Plain},
	} {
		if got := cellPaint(c.column, c.text); got != c.want {
			t.Errorf("%s %q: paint %d, want %d", c.column, c.text, got, c.want)
		}
	}
}
