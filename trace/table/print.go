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

// outputFormat is a way to print a table.
type outputFormat struct {
	name, suffix string // as --format takes it; of a file that holds it
	// print writes rows. Of what people read it takes the columns that a screen of so many cells shows.
	print func(t *Table, ctx context.Context, w *bufio.Writer, rows []int, width int) error
}

// outputFormats are all there are: to add one is to add a row.
var outputFormats = []outputFormat{
	{"text", ".txt", (*Table).printText},
	{"csv", ".csv", (*Table).printCSV},
	{"json", ".json", (*Table).printJSON},
	{"md", ".md", (*Table).printMarkdown},
}

// Formats are the forms in which a table can be printed.
var Formats = each(func(f outputFormat) string { return f.name })

// Suffixes are what the name of a file with a table may end in.
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

// FormatOf is the form that a file's name says.
func FormatOf(path string) (string, error) {
	for _, f := range outputFormats {
		if strings.HasSuffix(strings.ToLower(path), f.suffix) {
			return f.name, nil
		}
	}
	return "", fmt.Errorf("%s: unknown table format: want a name ending in %s", printable.Short(path, 120),
		strings.Join(Suffixes(), ", "))
}

// Print writes rows of a table in one of Formats. Text has the columns that a screen of so many cells shows,
// and no line is wider (0: of any width); Markdown has those of any, in lines as long as they are; CSV and
// JSON are for programs and have all columns, with numbers as they are.
func (t *Table) Print(ctx context.Context, w io.Writer, format string, rows []int, width int) error {
	i := slices.Index(Formats, format)
	if i < 0 {
		return fmt.Errorf("unknown format %q: want %s", printable.Short(format, 40),
			strings.Join(Formats, ", "))
	}
	out := bufio.NewWriter(w)
	if err := outputFormats[i].print(t, ctx, out, rows, width); err != nil {
		return err
	}
	return out.Flush()
}

// Shown lists the columns that a screen of a width shows; 0 is one of any width.
func (t *Table) Shown(width int) []int {
	var cols []int
	for i, c := range t.Columns {
		if width == 0 && c.Width != Unseen || c.Width <= max(width, 80) {
			cols = append(cols, i)
		}
	}
	return cols
}

// label is the text of a cell with the indentation of its row.
func (t *Table) label(row, col int) string {
	s := t.Cell(row, col).Text
	if t.Columns[col].Tree {
		s = strings.Repeat("  ", t.Rows[row].Depth) + s
	}
	return s
}

// heading is what stands over a column's numbers. Where a screen draws them the title has no unit.
func (c *Column) heading() string {
	if c.Bar {
		return c.Title + " " + c.Unit
	}
	return c.Title
}

// widths are those of columns over rows; 0 where no row has anything, or nothing was measured.
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
	return widths, nil
}

func (t *Table) printText(ctx context.Context, w *bufio.Writer, rows []int, width int) error {
	shown := t.Shown(width)
	uniform, err := t.Uniform(ctx, rows)
	if err != nil {
		return err
	}
	all, err := t.widths(ctx, rows, shown)
	if err != nil {
		return err
	}
	var cols, widths []int
	for k, c := range shown {
		if !slices.Contains(uniform, c) && all[k] > 0 {
			cols, widths = append(cols, c), append(widths, max(all[k], Width(t.Columns[c].heading())))
		}
	}
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
	var same []string
	for _, c := range uniform {
		if text := t.Cell(rows[0], c).Text; slices.Contains(shown, c) && text != Unmeasured {
			same = append(same, t.Columns[c].heading()+" "+text)
		}
	}
	if len(same) > 0 {
		say("all rows: " + strings.Join(same, " · "))
	}
	t.printRow(w, cols, widths, func(c int) string { return t.Columns[c].heading() })
	for i, r := range rows {
		if i%stride == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t.printRow(w, cols, widths, func(c int) string { return t.label(r, c) })
	}
	for _, n := range t.Notes {
		say(n)
	}
	return nil
}

// printRow prints a row of cells in columns of so many cells each. Words that are longer go on below.
func (t *Table) printRow(w *bufio.Writer, cols, widths []int, cell func(col int) string) {
	broken, high := make([][]string, len(cols)), 1
	for k, c := range cols {
		s := cell(c)
		if broken[k] = []string{s}; Width(s) > widths[k] {
			hanging := 0
			if k == 0 || t.Columns[c].Tree { // what goes on is no row of its own
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

// value is a cell for a program: the number where the column has numbers, the text where it has none, ""
// where there is nothing. A number that is not finite is a word: NaN, Infinity or -Infinity.
func (t *Table) value(row, col int) (s string, number bool) {
	c := t.Columns[col].Of(row)
	switch {
	case t.Columns[col].Unit == "":
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

// printJSON writes {"table", "title", "columns", "rows", "notes"}; a row has its key, its depth and the
// columns that it has something in. JSON has no numbers that are not finite: those are words.
func (t *Table) printJSON(ctx context.Context, w *bufio.Writer, rows []int, _ int) error {
	quote := func(v any) string {
		s, err := json.Marshal(v)
		if err != nil {
			panic(err) // strings and lists of them
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
	for i, r := range rows {
		if i%stride == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintf(w, "  {\"key\": %s, \"depth\": %d", quote(t.Rows[r].Key), t.Rows[r].Depth)
		for c, col := range t.Columns {
			s, number := t.value(r, c)
			if s == "" {
				continue
			}
			if !number {
				s = quote(s)
			}
			fmt.Fprintf(w, ", %s: %s", quote(col.Name), s)
		}
		fmt.Fprintf(w, "}%s\n", comma(i, len(rows)))
	}
	fmt.Fprintf(w, "],\n\"notes\": %s}\n", quote(append([]string{}, t.Notes...)))
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
	return nil
}
