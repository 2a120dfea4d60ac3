package slopes_test

import (
	"testing"

	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/report/slopes"
	"gpuscope/trace/table"
)

func TestSlopeShowsNoNegativeTime(t *testing.T) {
	c := &curves.Curves{Rows: []curves.CurveRow{
		{Name: "step", Fit: &curves.Fit{A: 9000, B: 10, SE: 1, N: 20, First: 0, Last: 100}},
		{Name: "falls", Fit: &curves.Fit{A: 1000, B: -20, SE: 1, N: 20, First: 0, Last: 100}},
		{Name: "rises", Fit: &curves.Fit{A: -1000, B: 20, SE: 1, N: 20, First: 0, Last: 100}},
	}}
	tab := slopes.Table(c)
	for row, known := range [][2]bool{{true, true}, {true, false}, {false, true}} {
		for i, column := range []string{"first_us", "last_us"} {
			cell := tab.Cell(row, tab.Column(column))
			if cell.Has != known[i] || !cell.Has && cell.Text != table.Unmeasured {
				t.Errorf("%s of %s is %+v", column, c.Rows[row].Name, cell)
			}
		}
	}
}
