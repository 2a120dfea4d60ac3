package table

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
)

// outputFormat is a format in which a table can be printed.
type outputFormat struct {
	name, suffix string // value of the flag --format, and suffix of file names
	// print writes the given rows. Only the format "text" leaves out columns for screens wider than
	// `width`.
	print func(t *Table, ctx context.Context, w *bufio.Writer, rows []int, width int) error
}

// outputFormats lists the output formats. A format that is added here is available everywhere.
var outputFormats = []outputFormat{
	{"text", ".txt", (*Table).printText},
	{"csv", ".csv", (*Table).printCSV},
	{"json", ".json", (*Table).printJSON},
	{"md", ".md", (*Table).printMarkdown},
}

// Formats lists the names of the formats in which a table can be printed.
var Formats = each(func(f outputFormat) string { return f.name })

// Suffixes returns the file name suffixes of all output formats.
func Suffixes() []string {
	return slices.Sorted(slices.Values(each(func(f outputFormat) string { return f.suffix })))
}

func each(of func(outputFormat) string) []string {
	list := make([]string, len(outputFormats))
	for i, f := range outputFormats {
		list[i] = of(f)
	}
	return list
}

// FormatOf returns the name of the output format that belongs to the suffix of a file name.
func FormatOf(path string) (string, error) {
	for _, f := range outputFormats {
		if strings.HasSuffix(strings.ToLower(path), f.suffix) {
			return f.name, nil
		}
	}
	return "", fmt.Errorf("%s: unknown table format; known suffixes: %s", printable.Short(path, 120),
		strings.Join(Suffixes(), ", "))
}

// Print writes the given rows in one of Formats. The format "text" has the columns for a screen of this
// width, and its lines are not wider; a width of 0 means no limit. The Markdown format has the columns of
// all screens and lines of any length. CSV and JSON are for programs: they have all columns, and numbers
// are not rounded.
func (t *Table) Print(ctx context.Context, w io.Writer, format string, rows []int, width int) error {
	i := slices.Index(Formats, format)
	if i < 0 {
		return fmt.Errorf("unknown format %q; known formats: %s", printable.Short(format, 40),
			strings.Join(Formats, ", "))
	}
	out := bufio.NewWriter(w)
	if err := outputFormats[i].print(t, ctx, out, rows, width); err != nil {
		return err
	}
	return out.Flush()
}

// Shown returns the indices of the columns for a screen of this width. If the width is 0, these are the
// columns of all screens.
func (t *Table) Shown(width int) []int {
	var cols []int
	for i, c := range t.Columns {
		if width == 0 && c.Width != Unseen || c.Width <= max(width, 80) {
			cols = append(cols, i)
		}
	}
	return cols
}

// label returns the text of a cell. In the tree column the text is indented by the row's depth.
func (t *Table) label(row, col int) string {
	s := t.Cell(row, col).Text
	if t.Columns[col].Tree {
		s = strings.Repeat("  ", t.Rows[row].Depth) + s
	}
	return s
}

// heading returns the heading of a column in print. If the column has bars, the title has no unit on the
// screen, so heading adds the unit.
func (c *Column) heading() string {
	if c.Bar {
		return c.Title + " " + c.Unit
	}
	return c.Title
}

// widths returns the largest width that each column needs in the given rows. It is 0 for a column in which no
// row has a measured cell.
func (t *Table) widths(ctx context.Context, rows, cols []int) ([]int, error) {
	widths := make([]int, len(cols))
	for i, r := range rows {
		if i%stride == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for k, c := range cols {
			if s := t.label(r, c); s != Unmeasured {
				widths[k] = max(widths[k], Width(s))
			}
		}
	}
	for k, c := range cols {
		widths[k] = max(widths[k], Width(t.TotalCell(c).Text))
	}
	return widths, nil
}

// Layout says which columns of a table are worth showing for some of its rows.
type Layout struct {
	// Columns holds the indices of the columns that differ between the rows and have a measured cell.
	Columns []int
	// Same lists the columns that have the same text in all rows: "all rows: kernel add · wg 64". It is ""
	// if there are none.
	Same string

	widths []int // width of each of Columns in print
}

// Layout returns the columns that a screen of this width shows for the given rows. If the width is 0, it
// returns the columns of all screens.
func (t *Table) Layout(ctx context.Context, rows []int, width int) (l Layout, err error) {
	shown := t.Shown(width)
	uniform, err := t.Uniform(ctx, rows)
	if err != nil {
		return l, err
	}
	all, err := t.widths(ctx, rows, shown)
	if err != nil {
		return l, err
	}
	for k, c := range shown {
		if !slices.Contains(uniform, c) && all[k] > 0 {
			l.Columns = append(l.Columns, c)
			l.widths = append(l.widths, max(all[k], Width(t.Columns[c].heading())))
		}
	}
	var same []string
	for _, c := range uniform {
		if text := t.Cell(rows[0], c).Text; slices.Contains(shown, c) && text != Unmeasured {
			same = append(same, t.Columns[c].heading()+" "+text)
		}
	}
	if len(same) > 0 {
		l.Same = "all rows: " + strings.Join(same, " · ")
	}
	return l, nil
}

func (t *Table) printText(ctx context.Context, w *bufio.Writer, rows []int, width int) error {
	shown, err := t.Layout(ctx, rows, width)
	if err != nil {
		return err
	}
	cols, widths := shown.Columns, shown.widths
	if width > 0 {
		cols, widths = t.fitted(cols, widths, width)
	}
	say := func(text string) {
		for _, line := range Wrap(printable.Clean(text), width, 2) {
			fmt.Fprintln(w, line)
		}
	}
	for _, line := range t.Title {
		if said := line.String(); said != "" {
			say(said)
		}
	}
	if shown.Same != "" {
		say(shown.Same)
	}
	t.printRow(w, cols, widths, func(c int) string { return t.Columns[c].heading() })
	for i, r := range rows {
		if i%stride == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t.printRow(w, cols, widths, func(c int) string { return t.label(r, c) })
	}
	if t.Total != nil {
		t.printRow(w, cols, widths, func(c int) string { return t.TotalCell(c).Text })
	}
	for _, n := range t.Notes {
		say(n)
	}
	return nil
}

// printRow prints a row of cells in columns of the given widths. Text that is too long continues on the
// next line.
func (t *Table) printRow(w *bufio.Writer, cols, widths []int, cell func(col int) string) {
	broken, high := make([][]string, len(cols)), 1
	for k, c := range cols {
		s := cell(c)
		if broken[k] = []string{s}; Width(s) > widths[k] {
			hanging := 0
			if k == 0 || t.Columns[c].Tree { // so that a wrapped line does not look like a new row
				hanging = 2
			}
			if broken[k] = Wrap(s, widths[k], hanging); t.Columns[c].Right {
				broken[k] = []string{Cut("…", widths[k])}
			}
		}
		high = max(high, len(broken[k]))
	}
	for i := range high {
		var row strings.Builder
		for k, c := range cols {
			s := ""
			if i < len(broken[k]) {
				s = broken[k][i]
			}
			pad := strings.Repeat(" ", max(0, widths[k]-Width(s)))
			if k > 0 {
				row.WriteString(strings.Repeat(" ", gutter))
			}
			if t.Columns[c].Right {
				row.WriteString(pad + s)
			} else {
				row.WriteString(s + pad)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(row.String(), " "))
	}
}

// value returns the content of a cell for a program: the number if the column has a unit, or the text if not.
// An empty cell is "". A number that is not finite is NaN, Infinity or -Infinity.
func (t *Table) value(row, col int) (s string, number bool) {
	return valueOf(t.Columns[col].Of(row), &t.Columns[col])
}

// valueOf returns the same as method value. Its arguments are the cell and the column of the cell.
func valueOf(c Cell, of *Column) (s string, number bool) {
	switch {
	case of.Unit == "":
		return c.Text, false
	case !c.Has:
		return "", false
	case math.IsNaN(c.Number):
		return "NaN", false
	case math.IsInf(c.Number, 1):
		return "Infinity", false
	case math.IsInf(c.Number, -1):
		return "-Infinity", false
	}
	return strconv.FormatFloat(c.Number, 'f', -1, 64), true
}

func (t *Table) printCSV(ctx context.Context, w *bufio.Writer, rows []int, _ int) error {
	out := csv.NewWriter(w)
	head := []string{"key"}
	if !t.Flat {
		head = append(head, "depth")
	}
	for _, c := range t.Columns {
		head = append(head, c.Name)
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for i, r := range rows {
		if i%stride == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line := []string{t.Rows[r].Key}
		if !t.Flat {
			line = append(line, strconv.Itoa(t.Rows[r].Depth))
		}
		for c := range t.Columns {
			s, _ := t.value(r, c)
			line = append(line, s)
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// printJSON writes an object with the fields table, title, columns, rows, total and notes. A row has its key,
// its depth and its cells that are not empty. total has the sums of all rows, for tables with a line of sums.
// A number that is not finite is written as a string, because JSON has no such numbers.
func (t *Table) printJSON(ctx context.Context, w *bufio.Writer, rows []int, _ int) error {
	quote := func(v any) string {
		s, err := json.Marshal(v)
		if err != nil {
			panic(err) // no error: v is a string or a list of strings
		}
		return string(s)
	}
	title := []string{}
	for _, l := range t.Title {
		title = append(title, l.String())
	}
	fmt.Fprintf(w, "{\"table\": %s,\n\"title\": %s,\n\"columns\": [\n", quote(t.Name), quote(title))
	for i, c := range t.Columns {
		fmt.Fprintf(w, "  {\"name\": %s, \"title\": %s, \"unit\": %s, \"is\": %s, \"doc\": %s}%s\n",
			quote(c.Name), quote(c.Title), quote(c.Unit), quote(string(c.Is)), quote(c.Doc),
			comma(i, len(t.Columns)))
	}
	w.WriteString("],\n\"rows\": [\n")
	// field returns a function that writes the value of a column, unless it is empty.
	field := func(col int) func(s string, number bool) {
		return func(s string, number bool) {
			if s == "" {
				return
			}
			if !number {
				s = quote(s)
			}
			fmt.Fprintf(w, ", %s: %s", quote(t.Columns[col].Name), s)
		}
	}
	for i, r := range rows {
		if i%stride == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintf(w, "  {\"key\": %s, \"depth\": %d", quote(t.Rows[r].Key), t.Rows[r].Depth)
		for c := range t.Columns {
			field(c)(t.value(r, c))
		}
		fmt.Fprintf(w, "}%s\n", comma(i, len(rows)))
	}
	w.WriteString("],\n")
	if t.Total != nil {
		w.WriteString("\"total\": {\"key\": \"total\"")
		for c := range t.Columns {
			field(c)(valueOf(t.Total(t.Columns[c].Name), &t.Columns[c]))
		}
		w.WriteString("},\n")
	}
	fmt.Fprintf(w, "\"notes\": %s}\n", quote(append([]string{}, t.Notes...)))
	return nil
}

func comma(i, n int) string {
	if i+1 < n {
		return ","
	}
	return ""
}

func (t *Table) printMarkdown(ctx context.Context, w *bufio.Writer, rows []int, _ int) error {
	escape := strings.NewReplacer("|", "\\|", "\n", " ")
	shown := t.Shown(0)
	widths, err := t.widths(ctx, rows, shown)
	if err != nil {
		return err
	}
	var cols []int
	for k, c := range shown {
		if widths[k] > 0 {
			cols = append(cols, c)
		}
	}
	w.WriteString("|")
	for _, c := range cols {
		fmt.Fprintf(w, " %s |", escape.Replace(t.Columns[c].heading()))
	}
	w.WriteString("\n|")
	for _, c := range cols {
		if t.Columns[c].Right {
			w.WriteString(" ---: |")
		} else {
			w.WriteString(" --- |")
		}
	}
	w.WriteString("\n")
	for i, r := range rows {
		if i%stride == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		w.WriteString("|")
		for _, c := range cols {
			s := strings.ReplaceAll(t.label(r, c), "  ", "&nbsp;&nbsp;")
			fmt.Fprintf(w, " %s |", escape.Replace(s))
		}
		w.WriteString("\n")
	}
	if t.Total != nil {
		w.WriteString("|")
		for _, c := range cols {
			fmt.Fprintf(w, " %s |", escape.Replace(t.TotalCell(c).Text))
		}
		w.WriteString("\n")
	}
	return nil
}
