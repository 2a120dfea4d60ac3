package table

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gpuscope/internal/printable"
)

// Formats are the forms in which a table can be printed.
var Formats = []string{"text", "csv", "json", "md"}

// Print writes rows of a table in one of Formats. Text has the columns that a screen of so many cells shows
// (0: all); the others are for programs and have all columns, with numbers as they are.
func (t *Table) Print(w io.Writer, format string, rows []int, width int) error {
	switch format {
	case "text":
		return t.printText(w, rows, width)
	case "csv":
		return t.printCSV(w, rows)
	case "json":
		return t.printJSON(w, rows)
	case "md":
		return t.printMarkdown(w, rows)
	}
	return fmt.Errorf("format %q: it is one of %s", format, strings.Join(Formats, ", "))
}

// Shown lists the columns that a screen of a width shows; 0 is all of them.
func (t *Table) Shown(width int) []int {
	var cols []int
	for i, c := range t.Columns {
		if width == 0 || c.Width <= max(width, 80) {
			cols = append(cols, i)
		}
	}
	return cols
}

// label is the text of a cell with the indentation of its row.
func (t *Table) label(row, col int) string {
	s := printable.Clean(t.Cell(row, col).Text)
	if t.Columns[col].Tree {
		s = strings.Repeat("  ", t.Rows[row].Depth) + s
	}
	return s
}

func (t *Table) printText(w io.Writer, rows []int, width int) error {
	cols := t.Shown(width)
	uniform := t.Uniform(rows)
	cols = slices.DeleteFunc(cols,
		func(c int) bool { return slices.Contains(uniform, c) || t.empty(rows, c) })
	var b strings.Builder
	for _, line := range t.Title {
		fmt.Fprintln(&b, printable.Clean(line))
	}
	var same []string
	for _, c := range uniform {
		if slices.Contains(t.Shown(width), c) {
			same = append(same, t.Columns[c].Title+" "+printable.Clean(t.Cell(rows[0], c).Text))
		}
	}
	if len(same) > 0 {
		fmt.Fprintf(&b, "all rows: %s\n", strings.Join(same, " · "))
	}
	widths := make([]int, len(cols))
	for k, c := range cols {
		widths[k] = utf8.RuneCountInString(t.Columns[c].Title)
		for _, r := range rows {
			widths[k] = max(widths[k], utf8.RuneCountInString(t.label(r, c)))
		}
	}
	line := func(cell func(col int) string) {
		var row strings.Builder
		for k, c := range cols {
			s := cell(c)
			pad := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(s))
			if k > 0 {
				row.WriteString("  ")
			}
			if t.Columns[c].Right {
				row.WriteString(pad + s)
			} else {
				row.WriteString(s + pad)
			}
		}
		fmt.Fprintln(&b, strings.TrimRight(row.String(), " "))
	}
	line(func(c int) string { return t.Columns[c].Title })
	for _, r := range rows {
		line(func(c int) string { return t.label(r, c) })
	}
	for _, n := range t.Notes {
		fmt.Fprintln(&b, printable.Clean(n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// empty says that no row has anything in a column.
func (t *Table) empty(rows []int, col int) bool {
	for _, r := range rows {
		if t.Cell(r, col).Text != "" {
			return false
		}
	}
	return true
}

// value is a cell for a program: the number where the column has numbers, the text where it has none, ""
// where there is nothing.
func (t *Table) value(row, col int) string {
	c := t.Cell(row, col)
	switch {
	case t.Columns[col].Unit == "":
		return c.Text
	case c.Has:
		return strconv.FormatFloat(c.Number, 'f', -1, 64)
	}
	return ""
}

func (t *Table) printCSV(w io.Writer, rows []int) error {
	out := csv.NewWriter(w)
	head := []string{"key", "depth"}
	for _, c := range t.Columns {
		head = append(head, c.Name)
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, r := range rows {
		line := []string{t.Rows[r].Key, strconv.Itoa(t.Rows[r].Depth)}
		for c := range t.Columns {
			line = append(line, t.value(r, c))
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// printJSON writes {"table", "title", "columns", "rows", "notes"}; a row has its key, its depth and the
// columns that it has something in.
func (t *Table) printJSON(w io.Writer, rows []int) error {
	var b strings.Builder
	quote := func(v any) string {
		s, err := json.Marshal(v)
		if err != nil {
			panic(err) // strings and lists of them
		}
		return string(s)
	}
	fmt.Fprintf(&b, "{\"table\": %s,\n\"title\": %s,\n\"columns\": [\n", quote(t.Name),
		quote(append([]string{}, t.Title...)))
	for i, c := range t.Columns {
		fmt.Fprintf(&b, "  {\"name\": %s, \"title\": %s, \"unit\": %s, \"doc\": %s}%s\n", quote(c.Name),
			quote(c.Title), quote(c.Unit), quote(c.Doc), comma(i, len(t.Columns)))
	}
	b.WriteString("],\n\"rows\": [\n")
	for i, r := range rows {
		fmt.Fprintf(&b, "  {\"key\": %s, \"depth\": %d", quote(t.Rows[r].Key), t.Rows[r].Depth)
		for c, col := range t.Columns {
			s := t.value(r, c)
			if s == "" {
				continue
			}
			if col.Unit == "" {
				s = quote(s)
			}
			fmt.Fprintf(&b, ", %s: %s", quote(col.Name), s)
		}
		fmt.Fprintf(&b, "}%s\n", comma(i, len(rows)))
	}
	fmt.Fprintf(&b, "],\n\"notes\": %s}\n", quote(append([]string{}, t.Notes...)))
	_, err := io.WriteString(w, b.String())
	return err
}

func comma(i, n int) string {
	if i+1 < n {
		return ","
	}
	return ""
}

func (t *Table) printMarkdown(w io.Writer, rows []int) error {
	escape := strings.NewReplacer("|", "\\|", "\n", " ")
	var b strings.Builder
	cols := slices.DeleteFunc(t.Shown(0), func(c int) bool { return t.empty(rows, c) })
	b.WriteString("|")
	for _, c := range cols {
		fmt.Fprintf(&b, " %s |", escape.Replace(t.Columns[c].Title))
	}
	b.WriteString("\n|")
	for _, c := range cols {
		if t.Columns[c].Right {
			b.WriteString(" ---: |")
		} else {
			b.WriteString(" --- |")
		}
	}
	b.WriteString("\n")
	for _, r := range rows {
		b.WriteString("|")
		for _, c := range cols {
			s := strings.ReplaceAll(t.label(r, c), "  ", "&nbsp;&nbsp;")
			fmt.Fprintf(&b, " %s |", escape.Replace(s))
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
