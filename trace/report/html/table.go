package html

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

// mostRows is the maximum number of rows of a table on the page. It bounds the size of the page.
const mostRows = 1000

// columnsFor is a width in characters. The page shows the columns that a screen of this width shows.
const columnsFor = 140

// tableView is a table of the page.
type tableView struct {
	Name, Doc string
	Lines     []string // title
	Columns   []columnView
	Rows      []rowView
	Notes     []string
	Tree      bool // rows are in a tree
	Open      bool // initially unfolded
}

// columnView is a column of a table. Class is "n" for a column of numbers, and "t" for
// the column with the tree of rows.
type columnView struct{ Name, Title, Unit, Doc, Class string }

// rowView is a row of a table. Class holds its depth, and whether it is a heading or dimmed.
type rowView struct {
	Class string
	Cells []cellView
}

// cellView is a cell. Value is the number to sort by, unless Text is already this number. Bar is the CSS
// class that sets the length of the cell's bar.
type cellView struct{ Class, Text, Value, Bar string }

// view returns the table `name` of a selection. It returns nil if the table does not apply to the
// selection, or if it has no rows.
func (p *Page) view(ctx context.Context, x *analyze.Index, name string,
	o analyze.Options,
) (*tableView, error) {
	kind, err := report.TableNamed(name)
	if err != nil {
		return nil, err
	}
	made, err := kind.Of(ctx, x, o)
	if errors.Is(err, report.ErrSelection) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.viewOf(ctx, made, kind.Doc)
}

// viewOf returns a table as the page shows it: with the rows that are initially unfolded. It returns nil if
// the table has no rows.
func (p *Page) viewOf(ctx context.Context, t *table.Table, doc string) (*tableView, error) {
	rows, err := t.Select(ctx, table.Selection{})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	v := &tableView{Name: t.Name, Doc: doc, Notes: cleaned(t.Notes)}
	if n := len(rows); n > mostRows {
		v.Notes = append(v.Notes, fmt.Sprintf(
			"only the first %s of %s rows; gpuscope trace show --table %s prints all",
			table.Integer(mostRows), table.Integer(n), t.Name))
		rows = rows[:mostRows]
	}
	layout, err := t.Layout(ctx, rows, columnsFor)
	if err != nil {
		return nil, err
	}
	for _, l := range t.Title {
		if said := l.String(); said != "" {
			v.Lines = append(v.Lines, said)
		}
	}
	if layout.Same != "" {
		v.Lines = append(v.Lines, printable.Clean(layout.Same))
	}
	most := make([]float64, len(layout.Columns)) // largest number of each column with bars
	for k, c := range layout.Columns {
		col := &t.Columns[c]
		class := ""
		if col.Right {
			class = "n"
		} else if col.Tree {
			class = "t"
		}
		v.Columns = append(v.Columns, columnView{col.Name, col.Title, unitOf(col), col.Doc, class})
		for _, r := range rows {
			if cell := t.Cell(r, c); hasBar(col) && cell.Has && !t.Rows[r].Group {
				most[k] = max(most[k], cell.Number)
			}
		}
	}
	for _, r := range rows {
		v.Rows = append(v.Rows, p.row(t, r, layout.Columns, most))
		v.Tree = v.Tree || t.Rows[r].Depth > 0
	}
	return v, nil
}

// unitOf returns the unit that the heading of a column shows: that of the texts. Only columns of measured or
// modelled numbers show one, and only if the title does not contain it already.
func unitOf(c *table.Column) string {
	unit := strings.Replace(cmp.Or(c.TextUnit, c.Unit), "us", "µs", 1)
	if c.Is != table.Measured && c.Is != table.Modelled || strings.Contains(c.Title, unit) {
		return ""
	}
	return unit
}

// hasBar reports whether the numbers of a column have bars: shares of a step, and columns that have bars on
// the screen.
func hasBar(c *table.Column) bool { return c.Bar || c.Name == "share" && c.Unit == "%" }

func (p *Page) row(t *table.Table, r int, cols []int, most []float64) rowView {
	place := &t.Rows[r]
	class := "d" + strconv.Itoa(min(place.Depth, 6))
	if place.Group {
		class += " g"
	}
	if place.Quiet {
		class += " q"
	}
	row := rowView{Class: class, Cells: make([]cellView, len(cols))}
	for k, c := range cols {
		col, cell := &t.Columns[c], t.Cell(r, c)
		v := cellView{Text: cell.Text}
		if col.Right {
			v.Class = "n"
		} else if col.Tree {
			v.Class = "t"
		}
		if col.Unit != "" && cell.Has && cell.Mark != table.Unknown {
			if !isRounded(cell.Text, cell.Number) {
				v.Value = strconv.FormatFloat(cell.Number, 'g', 6, 64)
			}
			if hasBar(col) && most[k] > 0 && cell.Mark == "" && cell.Number > 0 && !place.Group {
				v.Bar = p.places.width(cell.Number / most[k])
			}
		}
		row.Cells[k] = v
	}
	return row
}

// isRounded reports whether a text is the given number, rounded to the decimals of the text. A number in
// another unit than the text is not.
func isRounded(text string, number float64) bool {
	plain, err := strconv.ParseFloat(text, 64)
	_, decimals, _ := strings.Cut(text, ".")
	return err == nil && math.Abs(plain-number) <= 0.501*math.Pow10(-len(decimals))
}

// tableList lists the tables that no section shows. They are at the end of the page.
var tableList = []struct {
	name string
	open bool
}{
	{"profile", true},
	{"cost-groups", false},
	{"dispatches", true},
	{"steps", false},
	{"events", false},
	{"blocks", false},
	{"experts", false},
	{"gaps", false},
	{"kernels", false},
	{"memory", false},
	{"trials", false},
	{"lengths", false},
	{"candidates", false},
}

// selectionFor returns the steps that a table of the page shows: all of `main`, only its last step, or no
// particular steps.
func selectionFor(kind *report.Table, main analyze.Selection) analyze.Selection {
	switch {
	case kind.Takes == report.AnySteps:
		return main
	case kind.Takes == report.OneStep && len(main.Steps) > 0:
		return analyze.Selection{Steps: main.Steps[len(main.Steps)-1:], Name: main.Name}
	}
	return analyze.Selection{}
}
