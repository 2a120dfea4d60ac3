package report_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// tablesHead holds the first paragraphs of docs/reference/tables.md.
var tablesHead = []string{
	"# Tables",
	"Made from the tables of `trace/report` by `go test ./trace/report -run TablesDoc " +
		"-update`. Do not edit.",
	"`gpuscope trace show FILE --table NAME` prints a table; the screen shows the same tables. " +
		"`--steps` takes " +
		analyze.SelectionWords +
		". A table of several steps shows medians. If a dispatch also ran with other numbers of " +
		"tokens than in the last selected step, it has a row for each number. Of the steps with " +
		"equally many tokens, Dispatches, Graph and the baseline of Dispatches, Graph and the " +
		"list of steps cover only the last step and " +
		"the steps with its routes. Cold steps are left out unless all selected steps are cold.",
	"A number is *exact* (counted, or known from the graph and its plans), *measured*, or " +
		"*modelled* (marked with `~`). A number that was not measured is `–` on the screen, and " +
		"absent from JSON and CSV. A number that is not reliable has the mark `=` or `?` before " +
		"it. For filters and programs, the column `NAME_mark` holds this mark; no screen shows " +
		"this column.",
	"A filter finds the same operators in Graph and in Dispatches. Its words apply to the rows " +
		"of Dispatches with the same selection and grouping: `#4` is dispatch 4, and `us` is the " +
		"time of one dispatch. Graph then shows the operators of these dispatches. Words about " +
		"columns that only Graph has, such as `kind:linear` or `role:constant`, apply to the rows " +
		"of Graph. For an operator without dispatches, all words apply to its row in Graph.",
	"In the format text, no line is wider than `--width`, whose default is the width of the " +
		"terminal. If a table is wider, columns of words are wrapped. If that is not enough, " +
		"columns are left out, beginning with those for wide screens. Markdown, CSV and JSON " +
		"always have all columns.",
	"In JSON a table is an object with these fields. `table` is its name, and `title` holds " +
		"lines of text. `columns` lists for each column its `name`, `title`, `unit`, `is` and " +
		"`doc`. `rows` has for each row its `key`, its `depth`, and a field for each column that " +
		"is not empty in this row. `notes` holds lines of text. A column with a unit has numbers. " +
		"A number that is not finite is `\"NaN\"`, `\"Infinity\"` or `\"-Infinity\"`, as in a " +
		"trace: if a dispatch matches its reference exactly, `gap_db` is `\"Infinity\"`. CSV has " +
		"the same fields; the key and the depth come first.",
	"Names come from the model or the engine and may contain control characters. Text and " +
		"Markdown show `·` in their place, and so does every format on a terminal. In a file or a " +
		"pipe, CSV and JSON have the exact names: do not send such a CSV file to a terminal as it " +
		"is.",
}

// tableOf returns a table of its default steps.
func tableOf(t *testing.T, x *analyze.Index, kind report.Table) *table.Table {
	t.Helper()
	selection, err := kind.Selection(x, "")
	if err != nil {
		t.Fatal(err)
	}
	made, err := kind.Of(ctx, x, analyze.Options{Selection: selection})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// tablesDoc returns docs/reference/tables.md.
func tablesDoc(t *testing.T) string {
	var b strings.Builder
	write := func(text string) { b.WriteString(ansi.Wordwrap(text, 110, "") + "\n\n") }
	for _, text := range tablesHead {
		write(text)
	}
	x := analyze.NewIndex(tracetest.Llama(1, 3))
	for _, kind := range report.Tables() {
		made := tableOf(t, x, kind)
		write("## " + kind.Name)
		write(strings.ToUpper(kind.Doc[:1]) + kind.Doc[1:] + ". Takes " + kind.Takes.String() + ".")
		b.WriteString("| name | on the screen | unit | | what it is |\n| --- | --- | --- | --- | --- |\n")
		for _, c := range made.Columns {
			title := c.Title
			if title != "" {
				title = "`" + title + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.Name, title, c.Unit, c.Is, c.Doc)
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func TestTablesDocIsFresh(t *testing.T) {
	const path = "../../docs/reference/tables.md"
	want := tablesDoc(t)
	if wordingtest.Updating() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("docs/reference/tables.md is outdated: go test ./trace/report -run TablesDoc -update (%v)",
			err)
	}
	for _, kind := range report.Tables() {
		x := analyze.NewIndex(tracetest.Llama(1, 3))
		made, err := kind.Of(ctx, x, analyze.Options{Selection: x.Step(1)})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range made.Columns {
			if c.Doc == "" || strings.HasSuffix(c.Doc, ".") || strings.Contains(c.Doc, "|") {
				t.Errorf("%s.%s is described as %q", kind.Name, c.Name, c.Doc)
			}
		}
	}
}

// A table without rows explains why.
func TestTablesWithoutRowsSayWhy(t *testing.T) {
	x := analyze.NewIndex(TimedWhole(tracetest.Run(2, 40, 1)))
	for _, kind := range report.Tables() {
		made := tableOf(t, x, kind)
		if len(made.Rows)+len(made.Title)+len(made.Notes) == 0 {
			t.Errorf("%s is empty without an explanation", kind.Name)
		}
	}
}
